"""Every statement that is false as printed, on a small problem that shows it; the correction holds there."""

import dataclasses
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bilevel_book.theory import statements
from bilevel_book.theory.examples import coins, gentle_tilt, small_slope, spring, straight_coupling
from bilevel_book.theory.statements import Directions, Point, take_step
from bilevel_book.walk import walk
from bilevel_core import FMBO, FdeHBO
from theory.instances import powers


def vector(*values):
    return torch.tensor(values, dtype=torch.float64)


def true_directions(problem, at):
    return Directions(*(d.mean(0) for d in problem.directions(*at)))


@pytest.mark.checks("lm:vv", "prop:hessian_free_v", "lm:vv_free", "results:proposition-3")
@pytest.mark.parametrize(
    ("mu", "L", "lam", "truth", "printed"),
    [(1, 10, 0.01, 0.9801, -0.8264), (1, 2, 0.1, 0.81, 0.3733), (0.5, 1, 0.1, 0.9025, 0.8767)],
)
def test_printed_contraction_factor_is_below_the_true_one(mu, L, lam, truth, printed):
    H, u = torch.diag(vector(mu, L)), vector(2, 0)
    assert statements.contraction_as_printed(H, u, lam) == pytest.approx((4 * truth, 4 * printed), abs=2e-4)
    assert statements.contraction(H, u, lam).holds()


@given(powers(-2, 1), powers(0, 2))
def test_for_small_steps_the_printed_factor_is_wrong_exactly_when_the_cube_of_L_exceeds_mu(mu, condition):
    L, u = mu * condition, vector(1, 0)
    if abs(L**3 / mu - 1) > 0.01:
        lam = 1e-4 * min(1, 1 / L**2) / (mu + L)
        # tol = 0: the two factors differ by little when the step is small
        wrong = not statements.contraction_as_printed(torch.diag(vector(mu, L)), u, lam).holds(0.0, 0.0)
        assert wrong == (mu < L**3)


@pytest.mark.checks("lm:vv", "prop:hessian_free_v", "lm:vv_free")
def test_step_before_it_is_wrong_too():
    for mu, u, truth, printed in ((1, vector(0, 1), 0.81, -0.8264), (2, vector(0, 3), 7.29, -21.21)):
        wrong = statements.contraction_step_as_printed(torch.diag(vector(mu, 10)), u, 0.01)
        assert wrong == pytest.approx((truth, printed), abs=5e-5)


@pytest.mark.checks("lm:vv", "prop:hessian_free_v", "lm:vv_free", "results:proposition-3")
def test_descent_of_v_fails_as_printed_and_holds_as_corrected():
    """g = y^2/2 - 10 x y has mu = 1 and L = 10.05; nothing but v moves, without noise."""
    problem = spring(coupling=10.0)
    at = Point(vector(0), vector(0), vector(1))  # v* = 0
    step = take_step(problem, at, true_directions(problem, at), alpha=0.0, beta=0.0, lam=0.01)
    for printed in (statements.helper_descent_as_printed, statements.helper_descent_free_as_printed):
        wrong = printed(problem, step, gamma=1e-3, delta=1e-3)
        assert wrong.truth == pytest.approx(0.9801)
        assert wrong.bound < 0
    assert statements.helper_descent(problem, step, gamma=1e-3, delta=1e-3).holds()


@pytest.mark.slow
@pytest.mark.checks("th:main", "results:radius")
@pytest.mark.parametrize(("r_v", "x", "slope"), [(0.01, 2.797, 0.09), (0.1, -2.451, 0.0)])
def test_with_the_printed_radius_fmbo_stops_where_the_hypergradient_is_not_zero(r_v, x, slope):
    problem = small_slope()
    k = problem.constants
    assert k.C_fy / k.mu == pytest.approx(0.01)
    assert k.r_v == pytest.approx(0.1)
    end = walk(problem, FMBO(alpha=2.0, beta=0.5, lam=0.5, eta=0.5, r_v=r_v), 300)[-1]
    assert end.x.item() == pytest.approx(x, abs=1e-3)
    assert problem.hypergradient(end.x).norm().item() == pytest.approx(slope, abs=1e-4)
    assert not statements.radius_as_printed(problem, end.x, end.y).holds()
    assert statements.bound_of_v(problem, end.x, end.y).holds()


@pytest.mark.checks("lm:3ieq")
def test_first_inequality_fails_without_the_root_and_away_from_v_star():
    problem = spring(coupling=0.1)
    x, y = vector(-5), vector(0.5)  # y* = -0.5
    wrong = statements.surrogate_error_as_printed(problem, x, y, problem.v_star(x, y))
    assert wrong == pytest.approx((0.0924, 0.01), abs=5e-5)
    assert statements.surrogate_error(problem, x, y) == pytest.approx((0.0924, 0.1), abs=5e-5)
    y = problem.y_star(x)
    wrong = statements.surrogate_error_as_printed(problem, x, y, problem.v_star(x, y) + 1)
    assert wrong == pytest.approx((0.1, 0.0), abs=1e-9)


@pytest.mark.checks("lm:3ieq")
def test_second_inequality_fails_without_the_root():
    problem = spring(coupling=0.1)
    assert statements.y_star_moves_as_printed(problem, vector(0), vector(2)) == pytest.approx((0.2, 0.02))
    assert statements.y_star_moves(problem, vector(0), vector(1)).holds()


@pytest.mark.checks("lm:3ieq")
def test_third_inequality_fails_without_the_root():
    problem = spring(coupling=0.1, curvature=0.5)  # grad Phi = 0.2 tanh(0.2 x)
    wrong = statements.hypergradient_moves_as_printed(problem, vector(0), vector(0.1))
    assert wrong == pytest.approx((0.004, 0.00204), rel=1e-3)
    assert statements.hypergradient_moves(problem, vector(0), vector(0.1)) == pytest.approx((0.004, 0.024), rel=1e-3)


@pytest.mark.checks("lm:corefunction", "lm:corefunction_free")
def test_function_lemma_fails_when_y_is_wrong_and_v_follows_it():
    problem = spring()
    x, y = vector(1), vector(-1)  # y* = 1
    at = Point(x, y, problem.v_star(x, y))
    step = take_step(problem, at, true_directions(problem, at), alpha=0.1, beta=0.0, lam=0.0)
    assert statements.function_descent_as_printed(problem, step) == pytest.approx((0.4930, 0.3816), abs=5e-5)
    assert statements.function_descent(problem, step) == pytest.approx((0.4930, 1.1816), abs=5e-5)


@pytest.mark.checks("lm:errorg", "lm:errorg_free")
def test_stray_square_in_the_lower_error_makes_it_false():
    problem = coins(noise=0.0, wobble=0.0)
    at = Point(*problem.first, vector(0))
    h = Directions(*(d + 0.1 for d in true_directions(problem, at)))
    step = take_step(problem, at, h, alpha=0.0, beta=0.0, lam=0.0)
    wrong = statements.lower_error_as_printed(problem, step, eta=0.01)
    assert wrong == pytest.approx((9.801e-3, 9.801e-5), rel=1e-9)
    assert statements.lower_error(problem, step, eta=0.01).holds()


@pytest.mark.checks("prop:hessian_free_v", "lm:vv_free")
def test_with_the_square_of_C_fy_the_solution_moves_faster_than_allowed():
    problem = gentle_tilt()
    place = math.atanh(math.sqrt(1 / 3))  # where the Hessian changes fastest, at y + x
    one, two = (Point(vector(x), vector(x), None) for x in (place / 2, place / 2 + 1e-4))
    distance = 2e-8  # squared
    wrong = statements.v_star_moves_as_printed(problem, one, two)
    right = statements.v_star_moves_squared(problem, one, two)
    assert wrong.truth / distance == right.truth / distance == pytest.approx(9.4e-4, abs=5e-6)
    assert wrong.bound / distance == pytest.approx(5.9e-5, abs=5e-7)
    assert right.bound / distance == pytest.approx(5.9e-3, abs=5e-5)


@pytest.mark.checks("th:hessianfree", "lm:mergeV_free", "results:delta")
def test_without_L_gyy_the_condition_on_delta_is_empty_when_the_jacobian_is_constant():
    problem = straight_coupling()
    k = problem.constants
    assert k.L_gxy == 0
    assert statements.delta_limit_as_printed(k, eta_f=0.5, eta_R=0.5) == math.inf
    limit = statements.delta_limit(k, eta_f=0.5, eta_R=0.5)
    assert limit == pytest.approx(0.0101, abs=1e-4)
    assert statements.difference_margin(k, 0.5, limit).holds()
    assert not statements.difference_margin(k, 0.5, 3.0).holds()


@pytest.mark.slow  # runs until it stands still
@pytest.mark.checks("th:hessianfree", "results:delta")
@pytest.mark.parametrize(("delta", "slope"), [(3.0, 0.1135), (0.01, 0.0)])
def test_fdehbo_with_a_delta_that_the_print_allows_ends_at_the_wrong_place(delta, slope):
    problem = straight_coupling()
    solver = FdeHBO(alpha=0.3, beta=0.4, lam=0.4, eta=0.5, delta=delta, r_v=problem.constants.r_v)
    end = walk(problem, solver, 250)[-1]
    assert problem.hypergradient(end.x).norm().item() == pytest.approx(slope, abs=1e-4)


@given(powers(-2, 2), powers(-2, 2), st.floats(0.01, 1), st.floats(0.01, 1))
def test_corrected_limit_on_delta_is_the_one_the_proof_needs(L_gxy, L_gyy, eta_f, eta_R):
    k = dataclasses.replace(straight_coupling().constants, L_gxy=L_gxy, L_gyy=L_gyy, C_fy=9.0)
    delta = statements.delta_limit(k, eta_f, eta_R)
    margin = statements.difference_margin(k, eta_R, delta)
    assert max(8 * L_gxy * k.r_v**2 * delta / eta_f, margin.truth / margin.bound) == pytest.approx(1)
    assert margin.bound == eta_R / 2
    printed = statements.delta_limit_as_printed(k, eta_f, eta_R)
    assert 8 * L_gxy * k.r_v**2 * printed == pytest.approx(min(eta_f, eta_R))
