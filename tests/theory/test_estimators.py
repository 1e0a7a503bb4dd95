"""The momentum estimators: expectations are exact averages over all samples, so every inequality must hold surely."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bilevel_book.theory import statements
from bilevel_book.theory.examples import coins
from bilevel_book.theory.families import LogCoshFamily
from bilevel_book.theory.statements import Point, take_step
from bilevel_core.directions import Directions
from theory.instances import instances, powers, steps

etas = powers(-3, 0)


@pytest.mark.slow
@pytest.mark.checks("lm:B", "contributions:ball")
@given(instances())
def test_variance_of_the_hypergradient_estimate_is_bounded_while_v_is_in_the_ball(instance):
    assert statements.surrogate_variance(instance.problem, instance.at).holds()


@pytest.mark.slow
@pytest.mark.checks("lm:errorg", "lm:errorg_free", "lm:errorf", "lm:errorR")
@given(steps(), etas)
def test_errors_of_the_three_estimates_shrink(step, eta):
    for check in (statements.lower_error, statements.upper_error, statements.helper_error):
        assert check(*step, eta).holds(), check.__name__
    for name, check in statements.momentum_sharp(*step, eta).items():  # with smaller constants than printed
        assert check.holds(), name


@pytest.mark.slow
@pytest.mark.checks(
    "prop:HFetf", "prop:hfetR", "lm:errorf_free", "lm:errorR_free", "results:proposition-1", "results:proposition-2"
)
@given(steps(), etas, powers(-3, 1))
def test_with_finite_differences_the_errors_shrink_up_to_terms_in_delta(step, eta, delta):
    problem, step = step
    room = 10 * statements.rounding(problem, step.to, delta)
    assert statements.upper_error_free(problem, step, eta, delta).holds(1e-7, room)
    assert statements.helper_error_free(problem, step, eta, delta).holds(1e-7, room)
    assert statements.helper_error_free_as_printed(problem, step, eta, delta).holds(1e-7, room)


@pytest.mark.parametrize(("moving", "lower", "helper", "upper"), [("alpha", 8, 4, 1), ("beta", 16, 8, 2)])
def test_how_many_times_more_than_needed_the_paper_charges_for_a_move(moving, lower, helper, upper, generator):
    """16 where 2 will do, 48 where 12 will do; for y twice that, as ||a + b||^2 <= 2 ||a||^2 + 2 ||b||^2."""
    problem = LogCoshFamily.random(generator)
    k, delta = problem.constants, 0.1
    at = Point(*problem.first, problem.v_star(*problem.first))
    h = Directions(*(d.mean(0) for d in problem.directions(*at)))  # no error, and eta = 0: the move is all that is left
    step = take_step(problem, at, h, **{"alpha": 0.0, "beta": 0.0, "lam": 0.0, moving: 0.1})
    sharp = {name: check.bound for name, check in statements.momentum_sharp(problem, step, 0.0).items()}
    assert statements.lower_error(problem, step, 0.0).bound == pytest.approx(lower * sharp["y"])
    assert statements.helper_error(problem, step, 0.0).bound == pytest.approx(helper * sharp["v"])
    assert statements.upper_error(problem, step, 0.0).bound == pytest.approx(upper * sharp["x"])
    b, c = k.L_gxy * k.r_v**2 * delta, k.L_gyy * k.r_v**2 * delta
    free = statements.helper_error_free(problem, step, 0.0, delta).bound
    assert free == pytest.approx(2 * helper * sharp["v"] + 4 * c + 8 * c**2)
    free = statements.upper_error_free(problem, step, 0.0, delta).bound
    assert free == pytest.approx(upper * sharp["x"] + 4 * b + 16 * b**2)


def at_rest(problem, e):
    """A step of length zero whose lower estimator is wrong by e."""
    at = Point(*problem.first, torch.zeros(1, dtype=torch.float64))
    h = Directions(*(d.mean(0) + e for d in problem.directions(*at)))
    return take_step(problem, at, h, alpha=0.0, beta=0.0, lam=0.0)


@pytest.mark.slow
@given(st.floats(0.01, 0.99), st.floats(0.1, 2))
def test_at_rest_and_without_noise_every_bound_on_an_error_is_attained(eta, e):
    """So none of the recursions holds with less than (1 - eta)^2; g is quadratic here, so delta costs nothing."""
    problem = coins(noise=0.0, wobble=0.0)
    step, expected = at_rest(problem, e), (1 - eta) ** 2 * e**2
    for check in (
        statements.lower_error(problem, step, eta),
        statements.helper_error(problem, step, eta),
        statements.upper_error(problem, step, eta),
        statements.helper_error_free(problem, step, eta, 0.1),
        statements.upper_error_free(problem, step, eta, 0.1),
        *statements.momentum_sharp(problem, step, eta).values(),
        *statements.momentum_sharp(problem, step, eta, 0.1).values(),
    ):
        assert check == pytest.approx((expected, expected), rel=1e-9)


@pytest.mark.checks("experiments:decay")
@pytest.mark.parametrize(("eta", "left"), [(0.9, 0.818), (0.5, 0.333), (0.1, 0.0526)])
def test_constant_eta_leaves_its_share_of_the_variance(eta, left):
    """All sequences of ten coins, exactly: eta = 0.9, as in the experiment of the paper, keeps 82 per cent."""
    assert statements.stationary_variance(eta) == pytest.approx(left, abs=5e-4)
    problem = coins(noise=1.0, wobble=0.0)
    noise = problem.g_y(*problem.first)  # -1 and +1, each twice
    flips = torch.tensor(list(itertools.product((0, 1), repeat=10)))
    h = torch.zeros(len(flips), dtype=torch.float64)
    for t in range(flips.shape[1]):
        # The point does not move, so that d(now) - d(before) = 0 on every sample.
        d = noise[flips[:, t], 0]
        h = d + (1 - eta) * (h - d)
    unfinished = (1 - eta) ** (2 * flips.shape[1])
    assert h.square().mean().item() == pytest.approx((1 - unfinished) * eta / (2 - eta), rel=1e-12)


@pytest.mark.checks("lm:boundofeJH")
@pytest.mark.parametrize("delta", [0.1, 0.01, 0.001])
def test_same_sample_at_both_signs_keeps_the_variance_independent_of_delta(delta):
    problem, v = coins(noise=1.0, wobble=0.3), 0.5
    at = Point(*problem.first, torch.tensor([v], dtype=torch.float64))
    same = statements.difference_variance(problem, at, delta)
    independent = statements.difference_variance(problem, at, delta, same=False)
    assert same == pytest.approx(v**2 * 0.3**2, rel=1e-9)
    assert independent == pytest.approx(v**2 * 0.3**2 / 2 + 1 / (2 * delta**2), rel=1e-9)
