"""Student's t against closed forms, and what the intervals and Holm's rule promise, on simulated seeds."""

import math

import numpy as np
import pandas as pd
import pytest

from bilevel_book.verdicts.deciding import Verdict, decide, holm
from bilevel_book.verdicts.student import cdf, quantile


@pytest.mark.parametrize("t", [-40.0, -1.3, 0.0, 0.2, 2.0, 150.0])
def test_student_t_has_its_closed_forms(t):
    assert cdf(t, 1) == pytest.approx(0.5 + math.atan(t) / math.pi, abs=1e-14)  # Cauchy: two seeds
    assert cdf(t, 2) == pytest.approx(0.5 + t / (2 * math.sqrt(2 + t * t)), abs=1e-14)
    u = t / math.sqrt(3)
    assert cdf(t, 3) == pytest.approx(0.5 + (u / (1 + u * u) + math.atan(u)) / math.pi, abs=1e-14)


@pytest.mark.parametrize(("nu", "table"), [(3, 3.1824), (4, 2.7764), (5, 2.5706), (9, 2.2622), (30, 2.0423)])
def test_student_t_is_the_integral_of_its_density(nu, table):
    end = quantile(0.975, nu)
    assert round(end, 4) == table
    nodes, weights = np.polynomial.legendre.leggauss(200)
    t = end * (nodes + 1) / 2
    log_constant = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - math.log(nu * math.pi) / 2
    area = end / 2 * weights @ np.exp(log_constant - (nu + 1) / 2 * np.log1p(t * t / nu))
    assert area == pytest.approx(0.475, abs=1e-12)
    assert (cdf(end, nu), cdf(-end, nu)) == pytest.approx((0.975, 0.025), abs=1e-12)


def test_quantiles_have_their_closed_forms():
    for p in (0.001, 0.3, 0.975, 0.9975):
        assert quantile(p, 1) == pytest.approx(math.tan(math.pi * (p - 0.5)), rel=1e-10)
        assert quantile(p, 2) == pytest.approx((2 * p - 1) / math.sqrt(2 * p * (1 - p)), rel=1e-10)
    assert (cdf(-math.inf, 9), cdf(math.inf, 9)) == (0.0, 1.0)


def compared(r):
    """Of log ratios, a row for each rival: the table that `compare` would make."""
    rows = {"rival": [f"rival {i}" for i in range(len(r))], "horizon": "end"}
    diverged = dict.fromkeys(("first_diverged", "rival_diverged", "both_diverged"), 0)
    n = r.shape[1]
    return pd.DataFrame(rows | diverged | {"n": n, "mean": r.mean(axis=1), "error": r.std(axis=1, ddof=1) / n**0.5})


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 5, 10])
def test_of_a_hundred_intervals_ninety_five_cover_the_truth(n):
    samples = 20_000
    r = 0.3 + np.random.default_rng(n).standard_normal((samples, n))
    decided = decide(compared(r).assign(rival="one"))  # so that Holm has nothing to correct
    covered = ((decided.low < math.exp(0.3)) & (math.exp(0.3) < decided.high)).mean()
    assert covered == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / samples))


def test_holm_tests_the_smallest_first_and_stops_at_the_first_that_fails():
    a = 0.025
    assert holm(np.array([0.02, 0.001, 0.012])) == pytest.approx([a, a / 3, a / 2])
    assert holm(np.array([0.02, 0.001, 0.013])) == pytest.approx([a / 2, a / 3, a / 2])  # 0.013 > a / 2: 0.02 stays
    assert holm(np.array([0.02])) == pytest.approx([a])


M = math.log(1.05)


@pytest.mark.slow  # hundreds of families
@pytest.mark.parametrize(
    ("truth", "spread", "most"),
    [
        ([-M] * 6, 0.1, 0.025),  # on the margin: only "holds" is wrong; without Holm in 14 sentences of a hundred
        ([-1.02 * M] * 6, 0.01, 0.025),  # just beyond: "alike" is wrong
        ([-M, M] * 3, 0.1, 0.025),
        ([0.0] * 6, 1.0, 0.05),  # both sides are wrong
        ([-1.0, 1.0, -1.0, -M, M, 0.0], 0.05, 0.05),  # three are easy, and leave the others a wider level
    ],
)
def test_a_wrong_word_is_said_in_at_most_one_sentence_of_twenty(truth, spread, most):
    families, rng, truth = 400, np.random.default_rng(1), np.array(truth)[:, None]
    true = np.select([truth[:, 0] < -M, truth[:, 0] > M], [Verdict.HOLDS, Verdict.FAILS], Verdict.ALIKE)
    wrong = 0
    for _ in range(families):
        said = decide(compared(truth + spread * rng.standard_normal((6, 5)))).verdict.to_numpy()
        wrong += any(word not in (right, Verdict.UNDECIDED) for word, right in zip(said, true, strict=True))
    assert 0 < wrong / families < most + 3 * math.sqrt(most * (1 - most) / families)


def test_true_differences_give_the_others_back_their_level():
    """Three rivals are clearly behind, so that Holm tests the fourth at the full level."""
    spread = np.array([-1.0, 0.0, 1.0])
    r = np.array([-1 + 0.001 * spread, -1.1 + 0.001 * spread, -1.2 + 0.001 * spread, -0.2 + 0.05 * spread])
    assert set(decide(compared(r)).verdict) == {Verdict.HOLDS}
    r[0] = 0.3 * spread
    assert list(decide(compared(r)).verdict) == [Verdict.UNDECIDED, *[Verdict.HOLDS] * 2, Verdict.UNDECIDED]


def test_the_word_can_be_read_from_the_interval():
    rng, margin, seen = np.random.default_rng(2), 1.05, set()
    for _ in range(40):
        mean, spread = rng.normal(0, 0.15, (3, 1)), 10 ** rng.uniform(-3, -1, (3, 1))
        for row in decide(compared(mean + spread * rng.standard_normal((3, 5)))).itertuples():
            inside = 1 / margin <= row.low and row.high <= margin
            read = {Verdict.HOLDS: row.high <= 1 / margin, Verdict.FAILS: row.low >= margin, Verdict.ALIKE: inside}
            assert [word for word in read if read[word]] == [row.verdict] * (row.verdict != Verdict.UNDECIDED)
            seen.add(row.verdict)
    assert len(seen) == 4
