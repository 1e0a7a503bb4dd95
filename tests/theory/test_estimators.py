"""The momentum estimators: expectations are exact averages over all samples, so every inequality must hold surely."""

import itertools

import pytest
import torch
from hypothesis import given

from bilevel_book.theory import statements
from bilevel_book.theory.examples import coins, spring
from bilevel_book.theory.families import LogCoshFamily, variance
from bilevel_book.theory.statements import Point, take_step
from bilevel_core.directions import Directions
from theory.instances import instances, number, powers, rounding, step_with_its_squares, steps

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
    for check in (statements.lower_error, statements.upper_error, statements.adjoint_error):
        assert check(*step, eta).holds(), check.__name__


@pytest.mark.slow
@pytest.mark.checks(
    "prop:HFetf", "prop:hfetR", "lm:errorf_free", "lm:errorR_free", "results:proposition-1", "results:proposition-2"
)
@given(steps(), etas, powers(-3, 1))
def test_with_finite_differences_the_errors_shrink_up_to_terms_in_delta(step, eta, delta):
    problem, step = step
    room = 10 * rounding(problem, step.to, delta)
    assert statements.upper_error_free(problem, step, eta, delta).holds(1e-7, room)
    assert statements.adjoint_error_free(problem, step, eta, delta).holds(1e-7, room)
    assert statements.adjoint_error_free_as_printed(problem, step, eta, delta).holds(1e-7, room)


def standing(problem, at, e_v=0.0, e=0.0, lam=0.0):
    """A step from `at` that moves v at most, whose estimators are wrong by e, that of v by e_v more."""
    d_y, d_v, d_x = (d.mean(0) + e for d in problem.directions(*at))
    return take_step(problem, at, Directions(d_y, d_v + e_v, d_x), alpha=0.0, beta=0.0, lam=lam)


@pytest.mark.parametrize(("eta", "e"), [(0.3, 0.1), (0.9, 2.0)])
def test_at_rest_and_without_noise_every_bound_on_an_error_is_attained(eta, e):
    """So none of the recursions holds with less than (1 - eta)^2; g is quadratic here, so delta costs nothing."""
    problem = coins(noise=0.0, wobble=0.0)
    step = standing(problem, Point(*problem.first, number(0)), e=e)
    checks = [getattr(statements, name)(problem, step, eta) for name in ("lower_error", "adjoint_error", "upper_error")]
    checks += [
        getattr(statements, name)(problem, step, eta, 0.1) for name in ("adjoint_error_free", "upper_error_free")
    ]
    for check in checks:
        assert check == pytest.approx(((1 - eta) ** 2 * e**2,) * 2, rel=1e-9)


def test_at_rest_and_without_error_the_noise_is_charged_two_four_or_eight_times():
    """Two samples, s = 1 and s = -1: g = (2 + s) y^2/2 - s x y - 3 s y, f = (4 + s) y + 2 s x, so that r_v = 2."""
    s, eta = torch.tensor([[1.0], [-1.0]], dtype=torch.float64), 0.1
    problem = LogCoshFamily(2 + s.unsqueeze(2), s.unsqueeze(2), b=3 * s, l=4 + s, m=2 * s)
    at = Point(*problem.first, number(2))
    step = standing(problem, at)
    lower, adjoint, upper = 3**2, (2 - 1) ** 2, (2 + 2) ** 2  # the variances of the directions
    for check, truth, bound in (
        (statements.lower_error(problem, step, eta), lower, 2 * lower),
        (statements.adjoint_error(problem, step, eta), adjoint, 4 * (2**2 + 1)),
        (statements.upper_error(problem, step, eta), upper, 4 * (2**2 + 2**2)),
        (statements.adjoint_error_free(problem, step, eta, 0.1), adjoint, 8 * (2**2 + 1)),
        (statements.upper_error_free(problem, step, eta, 0.1), upper, 8 * (2**2 + 2**2)),
    ):
        assert check == pytest.approx((truth * eta**2, bound * eta**2))
    assert statements.surrogate_variance(problem, at) == pytest.approx((upper, 2 * (2**2 + 2**2)))


def test_what_the_recursions_charge_for_a_move_of_v():
    """g = 2 y^2 - 3 x y has L = 5 and C_gxy = 9; nothing but v moves, u away from v* = 0 and with the error e."""
    problem, u, e, lam, eta = spring(3.0, 4.0), 0.01, 0.2, 0.1, 0.5
    step = standing(problem, Point(*problem.first, number(u)), e_v=e, lam=lam)
    adjoint = statements.adjoint_error(problem, step, eta).bound
    free = statements.adjoint_error_free(problem, step, eta, 0.1).bound
    as_printed = statements.adjoint_error_free_as_printed(problem, step, eta, 0.1).bound
    for bound, rise, times in ((adjoint, 5**2, 48), (free, 5**2, 96), (as_printed, 5**4 + 5**2, 96)):
        assert bound == pytest.approx((1 - eta) ** 2 * (e**2 + times * lam**2 * (rise * e**2 + 5**4 * u**2)))
    for check in (statements.upper_error(problem, step, eta), statements.upper_error_free(problem, step, eta, 0.1)):
        assert check.bound == pytest.approx((1 - eta) ** 2 * 12 * 9 * lam**2 * (e**2 + 5**2 * u**2))


def test_bounds_on_the_errors_are_those_of_the_paper(generator):
    problem, step, q = step_with_its_squares(generator)
    k, eta, delta, keep = problem.constants, 0.4, 0.1, 0.36
    L_F2, L_R2 = 2 * (k.L_fx**2 + (k.L_gxy * k.r_v) ** 2), k.L_fy**2 + (k.L_gyy * k.r_v) ** 2
    sigma, now = problem.variances(step.to.x, step.to.y), problem.directions(*step.to)
    move = 0.11**2 * q["h"] + 2 * 0.13**2 * (q["y"] + q["slope"])
    of_x = 12 * keep * (L_F2 * move / 2 + k.C_gxy * 0.17**2 * (q["v"] + k.L**2 * q["gap_v"]))
    of_v = keep * 48 * (L_R2 * move + (0.17 * k.L) ** 2 * (q["v"] + k.L**2 * q["gap_v"]))
    noise_x = 4 * eta**2 * (sigma.f_x + k.r_v**2 * sigma.g_xy)
    noise_v = 4 * eta**2 * (sigma.f_y + k.r_v**2 * sigma.g_yy)
    of_y = keep * q["y"] + 2 * eta**2 * sigma.g + 16 * keep * k.L**2 * move
    bias_x, bias_v = (slope * k.r_v**2 * delta for slope in (k.L_gxy, k.L_gyy))
    free_x = 4 * bias_x * (q["x"] + 1 + 4 * bias_x)
    free_v = 4 * bias_v * (q["v"] + 1 + 2 * bias_v)
    twice = 2 * (noise_v + of_v) + keep * q["v"]
    for check, bound in (
        (statements.lower_error(problem, step, eta), of_y),
        (statements.lower_error_as_printed(problem, step, eta), of_y + keep * q["y"] * (q["y"] - 1)),
        (statements.upper_error(problem, step, eta), keep * q["x"] + noise_x + of_x),
        (statements.upper_error_free(problem, step, eta, delta), keep * q["x"] + 2 * noise_x + of_x + free_x),
        (statements.adjoint_error(problem, step, eta), keep * q["v"] + noise_v + of_v),
        (statements.adjoint_error_free(problem, step, eta, delta), twice + free_v),
        (
            statements.adjoint_error_free_as_printed(problem, step, eta, delta),
            twice + free_v + 96 * keep * 0.17**2 * k.L**4 * q["v"],
        ),
    ):
        assert check.bound == pytest.approx(bound)
    assert statements.lower_error(problem, step, 1.0).truth == pytest.approx(variance(now.y))  # all is forgotten


@pytest.mark.checks("experiments:decay")
@pytest.mark.parametrize(("eta", "left"), [(0.9, 0.818), (0.5, 0.333), (0.1, 0.0526)])
def test_constant_eta_leaves_its_share_of_the_variance(eta, left):
    """All sequences of ten coins, exactly: eta = 0.9, as in the experiment of the paper, keeps 82 per cent."""
    assert eta / (2 - eta) == pytest.approx(left, abs=5e-4)
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
    at = Point(*problem.first, number(v))
    same = statements.difference_variance(problem, at, delta)
    independent = statements.difference_variance(problem, at, delta, same=False)
    assert same == pytest.approx(v**2 * 0.3**2, rel=1e-9)
    assert independent == pytest.approx(v**2 * 0.3**2 / 2 + 1 / (2 * delta**2), rel=1e-9)
