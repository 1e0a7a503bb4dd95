"""The lemmas about one point or one step, on random problems; corrected where the print is wrong."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bilevel_book.theory import statements
from bilevel_book.theory.examples import Coin, gentle_tilt, spring
from bilevel_book.theory.families import LogCoshFamily, normal, spd
from bilevel_book.theory.statements import Check, Point
from bilevel_core import hypergradient
from bilevel_core.directions import exact, finite_difference
from bilevel_core.problem import Samples
from theory.instances import instances, number, powers, rounding, step_with_its_squares, steps


def sharpness(check):
    """1 if the bound is attained."""
    return check.truth / check.bound


def test_check_forgives_rounding_and_no_more():
    assert Check(1.0, 1.0).holds(0.0, 0.0)
    assert [Check(1 + 1e-9 * over, 1.0).holds() for over in (1.9, 2.1)] == [True, False]
    assert [Check(1e-12 * over, 0.0).holds() for over in (0.9, 1.1)] == [True, False]


@pytest.mark.parametrize("delta", [None, 0.1])
def test_directions_of_the_family_are_those_of_the_library_on_every_sample(delta, generator):
    problem = LogCoshFamily.random(generator, dim_x=3, dim_y=2)
    x, y = problem.start(generator)
    v = normal(2, generator=generator)
    mine = problem.directions(x, y, v, delta)
    for i in range(problem.n):
        samples = Samples(i, torch.tensor([i]))  # an index and a tensor of indices
        theirs = (
            exact(problem, x, y, v, samples) if delta is None else finite_difference(problem, x, y, v, samples, delta)
        )
        for name in ("x", "y", "v"):
            torch.testing.assert_close(getattr(mine, name)[i], getattr(theirs, name), rtol=1e-11, atol=1e-12)


def test_truth_of_the_family_is_that_of_the_library(generator):
    problem = LogCoshFamily.random(generator, dim_x=3, dim_y=2)
    x, _ = problem.start(generator)
    found = hypergradient(problem, x, tol=1e-12)
    torch.testing.assert_close(problem.y_star(x), found.y, rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(problem.v_star(x, found.y), found.v, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(problem.hypergradient(x), found.gradient, rtol=1e-9, atol=1e-11)
    assert problem.g_y(x, problem.y_star(x)).mean(0).norm() < 1e-13 * problem.constants.L


@pytest.mark.slow
@given(instances())
def test_constants_by_formula_are_never_exceeded(instance):
    """The assumptions of Chapter 13: strong convexity of the mean, and mean-square smoothness of the samples."""
    problem, at, other, _ = instance
    k, z = problem.constants, math.hypot((at.x - other.x).norm(), (at.y - other.y).norm())
    for derivative, constant in (("g_y", k.L), ("f_x", k.L_fx), ("f_y", k.L_fy)):
        change = getattr(problem, derivative)(at.x, at.y) - getattr(problem, derivative)(other.x, other.y)
        assert change.square().sum(1).mean().sqrt() <= constant * z * (1 + 1e-9)
    for derivative, constant in (("g_yy", k.L_gyy), ("g_xy", k.L_gxy)):
        change = getattr(problem, derivative)(at.x, at.y) - getattr(problem, derivative)(other.x, other.y)
        assert torch.linalg.matrix_norm(change, ord=2).max() <= constant * z * (1 + 1e-9) + 1e-14
    assert torch.linalg.eigvalsh(problem.g_yy(at.x, at.y).mean(0)).min() >= k.mu * (1 - 1e-9)
    assert torch.linalg.matrix_norm(problem.g_xy(at.x, at.y), ord=2).square().mean() <= k.C_gxy * (1 + 1e-9)
    assert problem.f_y(at.x, at.y).mean(0).square().sum() <= k.C_fy * (1 + 1e-9)


@pytest.mark.checks("contributions:projection", "algorithms:projection")
@given(st.integers(1, 6), powers(-1, 1), powers(-1, 1), st.floats(0, 1), st.integers(0, 2**31))
def test_projection_brings_v_closer_to_every_point_of_the_ball(d, r_v, size, depth, seed):
    generator = torch.Generator().manual_seed(seed)
    w, u = size * normal(d, generator=generator), normal(d, generator=generator)
    assert statements.projection(w, u * (depth * r_v / u.norm()), r_v).holds()


@pytest.mark.checks("contributions:projection")
def test_projection_may_lead_away_from_a_point_outside_the_ball():
    w, u = torch.tensor([2.0, 0.0]), torch.tensor([3.0, 0.0])
    check = statements.projection(w.double(), u.double(), r_v=1.0)
    assert check == pytest.approx((2.0, 1.0))


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_constants_of_v_star_are_sharp(mu):
    steep = spring(curvature=mu)  # v* = tanh(y) / mu
    assert sharpness(statements.bound_of_v(steep, number(0), number(20))) == pytest.approx(1)
    assert statements.radius_as_printed(steep, number(0), number(20)).bound == 1 / mu
    near = Point(number(0), number(1e-4), None), Point(number(0), number(-1e-4), None)
    assert sharpness(statements.v_star_moves(steep, *near)) == pytest.approx(1)
    straight = gentle_tilt(bend=1e-3)  # here H moves, not grad_y f
    place = math.atanh(math.sqrt(1 / 3)) / 2
    near = (Point(number(place + step), number(place + step), None) for step in (1e-4, -1e-4))
    assert sharpness(statements.v_star_moves(straight, *near)) == pytest.approx(1, abs=2e-3)


@pytest.mark.slow
@pytest.mark.checks("lm:boundofgradf", "contributions:ball")
@given(instances(), powers(-3, 1))
def test_surrogate_is_lipschitz_while_v_is_in_the_ball(instance, delta):
    problem, at, other, _ = instance
    assert statements.surrogate_moves(problem, at, other).holds()
    room = 10 * rounding(problem, at, delta)
    assert statements.surrogate_moves(problem, at, other, delta).holds(slack=room)


@pytest.mark.slow
@pytest.mark.checks("lm:3ieq")
@given(instances())
def test_three_inequalities_hold_with_roots_and_at_v_star(instance):
    problem, at, other, _ = instance
    assert statements.surrogate_error(problem, at.x, at.y).holds(1e-8)
    assert statements.y_star_moves(problem, at.x, other.x).holds(1e-8)
    assert statements.hypergradient_moves(problem, at.x, other.x).holds(1e-8)


def test_constants_of_the_three_inequalities_are_sharp():
    problem = spring(coupling=100.0)
    assert sharpness(statements.surrogate_error(problem, number(0), number(1e-4))) == pytest.approx(1)
    assert sharpness(statements.y_star_moves(problem, number(0), number(2))) == pytest.approx(1)
    slopes = statements.hypergradient_moves(problem, number(1e-6), number(-1e-6))
    assert sharpness(slopes) == pytest.approx(1, abs=1e-4)  # c^2 against c sqrt(1 + c^2)


@pytest.mark.slow
@pytest.mark.checks("lm:boundofeJH", "contributions:ball", "algorithms:dimension")
@given(instances(), powers(-3, 1))
def test_central_differences_err_by_half_the_lipschitz_constant_of_the_second_derivative(instance, delta):
    problem, at, _, _ = instance
    room = rounding(problem, at, delta)
    for check in (
        statements.hessian_difference,
        statements.jacobian_difference,
        statements.hessian_difference_as_printed,
        statements.jacobian_difference_as_printed,
        statements.hessian_difference_smooth,
        statements.jacobian_difference_smooth,
    ):
        assert check(problem, at, delta).holds(slack=room), check.__name__


@pytest.mark.checks("lm:boundofeJH", "algorithms:unbounded-v")
@given(powers(-4, 0), powers(-1, 1))
def test_at_a_kink_the_bound_on_the_error_is_attained(delta, size):
    check = statements.hessian_difference(Coin(reach=100), Point(number(0), number(0), number(size)), delta)
    assert check.truth == pytest.approx(check.bound, rel=1e-9)  # so it has slope one in delta


@st.composite
def systems(draw):
    mu, d = draw(powers(-2, 1)), draw(st.integers(2, 6))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    H = spd(mu, mu * draw(powers(0, 2)), d, generator)
    vectors = torch.linalg.eigh(H).eigenvectors
    u = draw(st.sampled_from([vectors[:, 0], vectors[:, -1], normal(d, generator=generator)]))
    return H, u


@pytest.mark.checks("lm:vv", "prop:hessian_free_v", "lm:vv_free")
@given(systems(), st.floats(0, 1))
def test_step_on_the_linear_system_contracts(system, fraction):
    H, u = system
    spectrum = torch.linalg.eigvalsh(H)
    lam = 2 * fraction / (spectrum[0] + spectrum[-1]).item()
    sharp, simple = statements.contraction(H, u, lam), statements.contraction_simple(H, u, lam)
    assert sharp.holds()
    assert simple.holds()
    assert sharp.bound <= simple.bound * (1 + 1e-9) + 1e-12  # so the factor of the proofs follows from the sharp one


@pytest.mark.checks("lm:vv", "prop:hessian_free_v", "lm:vv_free")
@given(systems(), powers(-2, 2))
def test_co_coercivity_and_the_step_it_gives(system, lam):
    H, u = system
    assert statements.cocoercivity(H, u).holds()
    assert statements.contraction_step(H, u, lam).holds()  # for every lam


@given(systems(), powers(-2, 2))
def test_along_the_flattest_and_the_steepest_direction_all_of_these_are_attained(system, lam):
    H, _ = system
    spectrum, vectors = torch.linalg.eigh(H)
    flat, steep, best = 2 * vectors[:, 0], 2 * vectors[:, -1], 2 / (spectrum[0] + spectrum[-1]).item()
    checks = [statements.contraction(H, flat, lam)]
    for u in (flat, steep):
        checks += statements.contraction_simple(H, u, best), statements.contraction_step(H, u, lam)
        checks += (statements.cocoercivity(H, u),)
    for check in checks:
        assert check.truth == pytest.approx(check.bound, rel=1e-8, abs=1e-8)


def test_bounds_of_the_three_descents_are_those_of_the_paper(generator):
    """With every term, and as printed."""
    problem, step, q = step_with_its_squares(generator)
    k, g, g2 = problem.constants, 0.2, 0.7
    sure = problem.objective(step.at.x).item() - 0.055 * q["Phi"] - 0.055 * (1 - 0.11 * k.L_Phi) * q["h"]
    sure += 0.11 * q["x"] + 0.22 * k.C_gxy * q["gap_v"]
    of_y = (k.L_gxy * k.r_v) ** 2 + k.L_fx**2
    assert statements.function_descent(problem, step).bound == pytest.approx(sure + 0.22 * k.Lam**2 * q["gap_y"])
    assert statements.function_descent_as_printed(problem, step).bound == pytest.approx(sure + 0.44 * of_y * q["gap_y"])
    moves = statements.surrogate_moves(problem, step.at, step.to)
    assert moves.bound == pytest.approx((2 * of_y * statements.squared_distance(step.at, step.to)) ** 0.5)
    left = (1 - 0.26 * k.L_mu) * q["gap_y"] - (0.26 / (k.mu + k.L) - 0.13**2) * q["slope"]
    moved, error = 6 * k.L_y**2 * 0.11**2 * q["h"], 1.2 * (1 + 1 / 0.7) * 0.13**2 * q["y"]
    assert statements.lower_descent(problem, step, g, g2).bound == pytest.approx(1.2 * 1.7 * left + moved + error)
    move, error = 0.11**2 * q["h"] + 2 * 0.13**2 * (q["y"] + q["slope"]), 1.2 * (1 + 1 / 0.7) * 0.17**2 * q["v"]
    bend, right, wrong = (
        (k.L_gyy / k.mu) ** 2,
        (1 - 0.17 * k.mu) ** 2,
        1 - 0.34 * (1 + k.L**2) * k.L_mu + (0.17 * k.L) ** 2,
    )
    for check, factor, speed in (
        (statements.adjoint_descent, right, k.L_v**2),
        (statements.adjoint_descent_as_printed, wrong, 2 * (k.L_fy**2 + k.C_fy * bend) / k.mu**2),
        (statements.adjoint_descent_free_as_printed, wrong, 2 * (k.L_fy**2 + k.C_fy**2 * bend) / k.mu**2),
    ):
        bound = 1.2 * 1.7 * factor * q["gap_v"] + error + 6 * speed * move
        assert check(problem, step, g, g2).bound == pytest.approx(bound)


@pytest.mark.slow  # many examples
@pytest.mark.checks("lm:corefunction", "lm:corefunction_free")
@given(steps(), powers(-1, 3))
def test_objective_descends_up_to_the_errors_of_x_y_and_v(step, longer):
    problem, step = step
    assert statements.function_descent(problem, step).holds(1e-8)
    far = statements.take_step(problem, step.at, step.h, longer * step.alpha, step.beta, step.lam)
    assert statements.function_descent(problem, far).holds(1e-8)  # for every alpha


@pytest.mark.slow
@pytest.mark.checks("lm:yy", "lm:yy_free")
@given(steps(), powers(-3, 2), powers(-3, 2), powers(-1, 3))
def test_y_comes_closer_to_its_moving_target_for_all_weights(step, gamma, gamma2, longer):
    problem, step = step
    assert statements.lower_descent(problem, step, gamma, gamma2).holds(1e-8)
    far = statements.take_step(problem, step.at, step.h, step.alpha, longer * step.beta, step.lam)
    assert statements.lower_descent(problem, far, gamma, gamma2).holds(1e-8)  # for every beta


@pytest.mark.slow
@pytest.mark.checks("lm:vv", "prop:hessian_free_v", "lm:vv_free")
@given(steps(), powers(-3, 2), powers(-3, 2))
def test_v_comes_closer_to_its_moving_target_for_all_weights(step, gamma, gamma2):
    problem, step = step
    assert statements.adjoint_descent(problem, step, gamma, gamma2).holds(1e-8)
    twice = statements.take_step(problem, step.at, step.h, step.alpha, step.beta, 2 * step.lam)
    assert statements.adjoint_descent(problem, twice, gamma, gamma2).holds(1e-8)  # lam up to 2 / (mu + L)
