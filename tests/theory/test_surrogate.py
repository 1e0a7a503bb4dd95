"""Finite differences are the exact directions of another problem, R_delta: what that problem is like."""

import math

import pytest
import torch
from hypothesis import given, settings

from bilevel_book.theory import statements
from bilevel_book.theory.examples import Kink, Ridge, scalar, straight_coupling
from bilevel_book.theory.families import MAX_TANH_2, LogCoshFamily
from bilevel_book.walk import walk
from bilevel_core import FdeHBO, hypergradient
from bilevel_core.directions import finite_difference
from theory.instances import instances, powers, rounding, steps

deltas = powers(-3, 1)


@given(instances(), powers(-2, 1))
@settings(max_examples=10)
def test_direction_seen_through_differences_is_a_gradient(instance, delta):
    problem, at, _, _ = instance
    v = at.v.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(problem.R_delta(at.x, at.y, v, delta), v)
    assert problem.R_delta(at.x, at.y, 0 * v, delta) == 0
    seen = problem.directions(*at, delta).v.mean(0)
    room = rounding(problem, at, delta)
    torch.testing.assert_close(gradient, seen, rtol=1e-8, atol=1e-10 + 10 * room)


@pytest.mark.slow
@pytest.mark.checks("th:hessianfree")
@given(instances(), deltas)
def test_surrogate_is_as_convex_and_as_smooth_as_the_linear_system(instance, delta):
    problem, at, other, _ = instance
    room = 10 * rounding(problem, at, delta)
    assert statements.surrogate_monotone(problem, at, other.v, delta).holds(slack=room)
    assert statements.surrogate_smooth(problem, at, other.v, delta).holds(slack=room)


@pytest.mark.slow  # many examples
@given(instances(), deltas)
def test_surrogate_has_its_minimiser_in_the_same_ball_and_nearby(instance, delta):
    problem, (x, y, v), _, _ = instance
    solution = problem.v_star_delta(x, y, delta)
    room = 10 * rounding(problem, statements.Point(x, y, v), delta) / problem.constants.mu
    assert problem.directions(x, y, solution, delta).v.mean(0).norm() <= 1e-10 + room * problem.constants.L
    assert statements.bound_of_v_delta(problem, x, y, delta).holds(slack=room)
    assert statements.shift_of_v(problem, x, y, delta).holds(slack=room)


@pytest.mark.slow  # many examples
@pytest.mark.checks("th:hessianfree")
@given(instances(), deltas)
def test_delta_enters_only_as_a_bias_of_the_hypergradient(instance, delta):
    problem, at, _, _ = instance
    k, y_star = problem.constants, instance.problem.y_star(at.x)
    room = 10 * rounding(problem, at, delta) * (1 + k.L_y)
    assert statements.surrogate_bias(problem, at.x, at.y, delta).holds(1e-8, room)
    settled = statements.surrogate_bias(problem, at.x, y_star, delta)
    assert settled.bound <= k.bias(delta) * (1 + 1e-9)  # nothing else is left once y = y*
    assert settled.holds(1e-8, room)


@pytest.mark.slow
@pytest.mark.checks("th:hessianfree", "lm:errorf_free", "lm:errorR_free")
@given(steps(), powers(-3, 0), deltas)
def test_measured_against_their_own_mean_the_errors_shrink_with_no_term_in_delta(step, eta, delta):
    problem, step = step
    room = 100 * rounding(problem, step.to, delta)
    for name, check in statements.momentum_sharp(problem, step, eta, delta).items():
        assert check.holds(1e-7, room), name


@pytest.mark.checks("contributions:bias", "contributions:bias-of-all")
def test_measured_against_the_true_direction_the_bias_shows():
    """At rest, without noise and from a perfect estimate, the true error of h^R grows from 0 to the bias squared."""
    problem, delta = straight_coupling(), 2.0
    x, y = problem.first
    at = statements.Point(x, y, problem.v_star(x, y))
    true, seen = problem.directions(*at).v[0], problem.directions(*at, delta).v[0]
    bias = (seen - true).norm().item()
    assert bias > 0.1
    h = statements.Directions(*(d.mean(0) for d in problem.directions(*at)))
    for _ in range(60):
        step = statements.take_step(problem, at, h, 0.0, 0.0, 0.0)
        assert statements.momentum_sharp(problem, step, 0.5, delta)["v"].holds()
        h = statements.Directions(*(d.mean(0) for d in statements.momentum(problem, step, 0.5, delta)))
    assert (h.v - true).norm().item() == pytest.approx(bias, rel=1e-9)
    assert (h.v - seen).norm().item() < 1e-12


def test_at_a_peak_of_the_second_derivative_half_of_every_bound_on_differences_is_used():
    """g = y^2 + lc(2 x + 3 y)/10^6: H and J are largest at 0, and their means over the segment +-d are tanh(d) / d."""
    problem, zero, d = scalar(2.0, ridges_g=(Ridge(1e-6, 3, 2),), tilt=0.1), torch.zeros(1, dtype=torch.float64), 1.5
    v = problem.v_star(zero, zero)
    at, delta = statements.Point(zero, zero, v), d / 3 / v.item()
    used = (1 - math.tanh(d) / d) / (MAX_TANH_2 * math.hypot(2, 3) / 3 * d / 2)
    for share, check in (
        (used, statements.hessian_difference(problem, at, delta)),
        (used, statements.jacobian_difference(problem, at, delta)),
        (used / 2, statements.hessian_difference_as_printed(problem, at, delta)),
        (used / 2, statements.jacobian_difference_as_printed(problem, at, delta)),
        (used, statements.shift_of_v(problem, zero, zero, delta)),
        (used, statements.surrogate_bias(problem, zero, zero, delta)),
        (1.0, statements.hessian_difference_smooth(problem, at, delta / 100)),
        (1.0, statements.jacobian_difference_smooth(problem, at, delta / 100)),
    ):
        assert check.truth / check.bound == pytest.approx(share, rel=1e-3)


def test_without_bending_the_surrogate_is_the_linear_system():
    three = torch.full((2, 1, 1), 3.0, dtype=torch.float64)  # two samples, g = 3 y^2 / 2, f = 3 y
    problem, v = LogCoshFamily(three, 0 * three, l=three[0]), three[0, 0]
    at = statements.Point(*problem.first, v)
    assert statements.surrogate_monotone(problem, at, -v, 0.1) == pytest.approx((3 * 36, 3 * 36))
    assert statements.surrogate_smooth(problem, at, -v, 0.1) == pytest.approx((3 * 6, 3 * 6))
    assert statements.bound_of_v_delta(problem, *problem.first, 0.1) == pytest.approx((1, 1))


@given(powers(-4, 0))
def test_at_a_kink_the_shift_and_the_bias_are_half_of_delta_to_first_order(delta):
    """With L_gyy = mu = C_fy = C_gxy = 1 and L_gxy = 0 both bounds are delta / 2."""
    problem, zero = Kink(), torch.zeros(1, dtype=torch.float64)
    v = torch.tensor([problem.v_star_delta(delta)], dtype=torch.float64)
    seen = finite_difference(problem, zero, zero, v, problem.full(), delta)
    assert seen.v.abs().item() < 1e-11  # v is the minimiser
    true = hypergradient(problem, zero)
    shift, bias = abs(v - true.v).item(), abs(seen.x - true.gradient).item()
    assert shift == pytest.approx(bias, abs=1e-11)
    assert delta / 2 * (1 - delta) <= shift <= delta / 2


def test_fdehbo_ends_where_the_surrogate_problem_is_stationary():
    problem = straight_coupling()
    solver = FdeHBO(alpha=0.3, beta=0.4, lam=0.4, eta=1.0, delta=2.0, r_v=problem.constants.r_v)
    state = walk(problem, solver, 200)[-1]
    v = problem.v_star_delta(state.x, problem.y_star(state.x), 2.0)
    torch.testing.assert_close(state.v, v, rtol=1e-6, atol=1e-6)
    seen = problem.directions(state.x, problem.y_star(state.x), v, 2.0).x.mean(0)
    slope = problem.hypergradient(state.x).norm().item()
    assert seen.norm() < 1e-6
    assert 0.01 < slope <= problem.constants.bias(2.0)
