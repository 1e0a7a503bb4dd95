"""The problems of the theory: each is the function that its docstring gives, with the constants of its formulas."""

import math

import pytest
import torch

from bilevel_book.theory.examples import Coin, Ridge, coins, gentle_tilt, scalar, small_slope, spring, straight_coupling
from bilevel_book.theory.families import MAX_TANH_2, LogCoshFamily, newton, spd


def lc(z):
    return math.log(math.cosh(z))


@pytest.mark.parametrize(
    ("problem", "g_and_f"),
    [
        (spring(), lambda x, y: (y**2 / 2 - x * y, lc(y))),
        (spring(0.5, 3.0), lambda x, y: (3 * y**2 / 2 - x * y / 2, lc(y))),
        (small_slope(), lambda x, y: (y**2 / 2 - x * y, lc(x - 3) / 20 + lc(y + 3) / 10)),
        (gentle_tilt(), lambda x, y: (y**2 / 2 + lc(y + x) / 2, y / 10)),
        (straight_coupling(), lambda x, y: (y**2 / 2 + 2 * lc(y) - x * y, 2 * lc(y - 2) + lc(x + 2) / 2)),
    ],
)
def test_examples_are_the_functions_that_they_say(problem, g_and_f, generator):
    at = [torch.tensor([z], dtype=torch.float64) for z in (0.7, -0.4)]
    assert (problem.lower(*at, None).item(), problem.upper(*at, None).item()) == pytest.approx(g_and_f(0.7, -0.4))
    assert [z.tolist() for z in problem.start(generator)] == [[0], [0]]


def test_coins_have_four_samples_with_all_signs():
    problem, y = coins(), torch.tensor([2.0], dtype=torch.float64)
    assert problem.g_y(0 * y, y).flatten().tolist() == pytest.approx([1.6, 3.6, 0.4, 2.4])  # 2 (1 +- 0.3) -+ 1
    assert [problem.upper(y, y, i).item() for i in range(4)] == pytest.approx([lc(2)] * 4)


def test_constants_of_one_ridge_on_each_level():
    """|(2, 1.5)| = 2.5 and |(3, 4)| = 5: all sizes are rational."""
    ridges_g, tanh_2 = (Ridge(0.5, 2.0, 1.5), Ridge(0.0, 1.0, 1.0)), MAX_TANH_2
    problem = scalar(3.0, 4.0, ridges_g=ridges_g, ridges_f=(Ridge(-2.0, 3.0, 4.0),), tilt=-1.0)
    k = problem.constants
    assert problem.n == 1
    assert (k.mu, k.L, k.C_gxy, k.L_gyy, k.L_gxy) == pytest.approx((3, 5 + 2.5, 5.5**2, 5 * tanh_2, 3.75 * tanh_2))
    assert (k.L_fx, k.L_fy, k.C_fy, k.M4_H, k.M4_J) == pytest.approx((40, 30, (6 + 1) ** 2, 16, 12))
    assert pytest.approx(40 + 30 * 5.5 / 3 + 7 / 3 * (3.75 + 5 * 5.5 / 3) * tanh_2) == k.Lam
    assert (k.M_v, k.M_x) == pytest.approx((5 * tanh_2 * 7 / 3 + 30, 3.75 * tanh_2 * 7 / 3 + 40))
    with pytest.raises(ValueError, match="not be negative"):
        scalar(ridges_g=(Ridge(-0.5, 2.0, 1.5),))


def test_random_members_are_always_the_same(generator):
    """The numbers of the chapters depend on every scale."""
    scales = {"mu": 2.0, "coupling": 3.0, "bending": 4.0, "scale_f": 5.0, "scale_f_x": 0.1, "dim_y": 1}
    for options, expected in (({}, (1.326197975, 0.570648696)), (scales, (4.883932334, 7.281447149))):
        problem = LogCoshFamily.random(generator, **options)
        x = problem.first[0]
        assert (problem.objective(x).item(), problem.hypergradient(x).norm().item()) == pytest.approx(expected)


def test_random_matrix_has_the_extreme_eigenvalues_asked_for(generator):
    for mu, L, d in ((3, 3, 1), (2, 5, 2), (2, 5, 30)):
        spectrum = torch.linalg.eigvalsh(spd(mu, L, d, generator))
        assert (spectrum[0], spectrum[-1]) == pytest.approx((mu, L))
    for mu, L, d in ((0, 1, 2), (2, 1, 2), (1, 2, 1)):
        with pytest.raises(ValueError, match="extreme eigenvalues"):
            spd(mu, L, d, generator)


def test_newton_halves_steps_that_lead_away():
    start = torch.tensor([3.0], dtype=torch.float64)  # from here a full step goes to -9.5, and the next one further
    assert newton(torch.atan, lambda z: torch.diag(1 / (1 + z**2)), start).abs() < 1e-15


COINS = (Coin(2.0, (Ridge(1, 2, 3),), reach=0.5, wobble=0.3), 0.7), (Coin(reach=1, mixed=2), 0.0)


@pytest.mark.parametrize(("problem", "x"), COINS)
def test_derivatives_of_the_coin_are_those_of_each_other(problem, x):
    x, y, h = torch.tensor([x], dtype=torch.float64), torch.tensor([0.2], dtype=torch.float64), 1e-6
    for derivative, of, along_x in (("g_yy", "g_y", False), ("g_xy", "g_y", True), ("g_xy", "g_x", False)):
        ends = [(x + s * h * along_x, y + s * h * (not along_x)) for s in (1, -1)]
        change = (getattr(problem, of)(*ends[0]) - getattr(problem, of)(*ends[1])) / (2 * h)
        found = getattr(problem, derivative)(x, y).flatten()
        torch.testing.assert_close(found, change.flatten(), rtol=1e-6, atol=1e-7)
    first, second = problem.factors.flatten().tolist()
    assert first + second == 2
    assert problem.f_y(x, y)[0] == pytest.approx(first / second * problem.f_y(x, y)[1])
    assert problem.constants.C_gxy == pytest.approx(
        (problem.coupling + problem.mixed) ** 2 * (first**2 + second**2) / 2
    )
