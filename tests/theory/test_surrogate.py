"""Finite differences: how far they are from products, and where FdeHBO rests because of them."""

import math

import pytest
import torch

from bilevel_book.theory import statements
from bilevel_book.theory.examples import Coin, Ridge, scalar, straight_coupling
from bilevel_book.theory.families import MAX_TANH_2, LogCoshFamily
from bilevel_book.theory.trials import curl, facts
from bilevel_book.walk import walk
from bilevel_core import FdeHBO
from theory.instances import number


@pytest.mark.checks("contributions:bias", "contributions:bias-of-all")
def test_measured_against_the_true_direction_the_bias_shows():
    """At rest, without noise and from a perfect estimate, the true error of h_v grows from 0 to the bias squared."""
    problem, delta = straight_coupling(), 2.0
    x, y = problem.first
    at = statements.Point(x, y, problem.v_star(x, y))
    true, seen = problem.directions(*at).v[0], problem.directions(*at, delta).v[0]
    bias = (seen - true).norm().item()
    assert bias > 0.1
    h = statements.Directions(*(d.mean(0) for d in problem.directions(*at)))
    for _ in range(60):
        step = statements.take_step(problem, at, h, 0.0, 0.0, 0.0)
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
        (used, facts(problem, at, at, delta, delta)["shift of v*"]),
        (used, facts(problem, at, at, delta, delta)["bias of F"]),
        (1.0, statements.hessian_difference_smooth(problem, at, delta / 100)),
        (1.0, statements.jacobian_difference_smooth(problem, at, delta / 100)),
    ):
        assert check.truth / check.bound == pytest.approx(share, rel=1e-3)


@pytest.mark.parametrize("delta", [1e-4, 0.01, 0.3, 1.0])
def test_at_a_kink_the_solution_seen_through_differences_is_known(delta):
    """v + delta v |v| / 2 = 1, and the shift of v and the bias of d_x are delta / 2 to first order."""
    problem, zero = Coin(1.0, reach=10), number(0)
    v = problem.v_star(zero, zero, delta)
    assert v.item() == pytest.approx(2 / (1 + math.sqrt(1 + 2 * delta)), rel=1e-12)
    bias = problem.directions(zero, zero, v, delta).x.mean() - problem.hypergradient(zero)
    assert abs(bias.item()) == pytest.approx(1 - v.item(), abs=1e-12)
    assert delta / 2 * (1 - delta) <= 1 - v.item() <= delta / 2


def test_fdehbo_ends_where_its_own_linear_system_is_solved():
    problem = straight_coupling()
    solver = FdeHBO(alpha=0.3, beta=0.4, lam=0.4, eta=1.0, delta=2.0, r_v=problem.constants.r_v)
    state = walk(problem, solver, 200)[-1]
    y = problem.y_star(state.x)
    v = problem.v_star(state.x, y, 2.0)
    torch.testing.assert_close(state.v, v, rtol=1e-6, atol=1e-6)
    seen = problem.directions(state.x, y, v, 2.0).x.mean(0)
    slope = problem.hypergradient(state.x).norm().item()
    assert seen.norm() < 1e-6
    assert 0.01 < slope <= problem.constants.theta * 2.0


@pytest.mark.parametrize(("delta", "low", "high"), [(0.0, 0, 1e-8), (0.3, 1e-5, 1e-2), (3.0, 1e-3, 1)])
def test_field_in_which_x_rests_is_no_gradient(delta, low, high):
    """Its curl in two dimensions: so FdeHBO does not minimise another objective."""
    problem = LogCoshFamily.random(torch.Generator().manual_seed(0), n=1)
    assert low <= abs(curl(problem, problem.first[0], delta)) <= high
