"""The momentum estimators: expectations are exact averages over all samples, so every inequality must hold surely."""

import itertools

import pytest
import torch
from hypothesis import given

from bilevel_book.theory import statements
from bilevel_book.theory.examples import coins
from bilevel_book.theory.statements import Point
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


def test_bounds_on_the_errors_are_those_of_the_paper(generator):
    problem, step, q = step_with_its_squares(generator)
    k, eta, delta, keep = problem.constants, 0.4, 0.1, 0.36
    L_F2, L_R2 = 2 * (k.L_fx**2 + (k.L_gxy * k.r_v) ** 2), k.L_fy**2 + (k.L_gyy * k.r_v) ** 2
    sigma = problem.variances(step.to.x, step.to.y)
    move = 0.11**2 * q["h"] + 2 * 0.13**2 * (q["y"] + q["slope"])
    of_x = 12 * keep * (L_F2 * move / 2 + k.C_gxy * 0.17**2 * (q["v"] + k.L**2 * q["gap_v"]))
    of_v = keep * 48 * (L_R2 * move + (0.17 * k.L) ** 2 * (q["v"] + k.L**2 * q["gap_v"]))
    noise_x = 4 * eta**2 * (sigma.f_x + k.r_v**2 * sigma.g_xy)
    noise_v = 4 * eta**2 * (sigma.f_y + k.r_v**2 * sigma.g_yy)
    of_y = keep * q["y"] + 2 * eta**2 * sigma.g + 16 * keep * k.L**2 * move
    bias_x, bias_v = (slope * k.r_v**2 * delta for slope in (k.L_gxy, k.L_gyy))
    free_x = 4 * bias_x * (q["x"] + 1 + 4 * bias_x)
    free_v = 4 * bias_v * (q["v"] + 1 + 2 * bias_v)
    twice, wrong = 2 * (noise_v + of_v) + keep * q["v"], 96 * keep * 0.17**2 * k.L**4 * q["v"]
    for check, bound in (
        (statements.lower_error(problem, step, eta), of_y),
        (statements.lower_error_as_printed(problem, step, eta), of_y + keep * q["y"] * (q["y"] - 1)),
        (statements.upper_error(problem, step, eta), keep * q["x"] + noise_x + of_x),
        (statements.upper_error_free(problem, step, eta, delta), keep * q["x"] + 2 * noise_x + of_x + free_x),
        (statements.adjoint_error(problem, step, eta), keep * q["v"] + noise_v + of_v),
        (statements.adjoint_error_free(problem, step, eta, delta), twice + free_v),
        (statements.adjoint_error_free_as_printed(problem, step, eta, delta), twice + free_v + wrong),
    ):
        assert check.bound == pytest.approx(bound)


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
