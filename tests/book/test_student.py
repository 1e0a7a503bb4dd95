"""Student's t against closed forms."""

import math

import numpy as np
import pandas as pd
import pytest

from bilevel_book.verdicts.student import cdf, interval, quantile


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


def test_interval_of_a_mean_matches_the_closed_form():
    values = pd.Series(range(1, 9))  # the variance of 1, ..., 8 is 6
    half = 2.364624251592785 * 6**0.5 / 8**0.5
    assert interval(values) == pytest.approx((4.5, 4.5 - half, 4.5 + half), rel=1e-9)
    assert interval(values[:1]) == (1, 1, 1)
    columns = interval(pd.DataFrame({"a": [1.0, 3.0], "b": [1.0, float("nan")]}))
    assert columns[2]["a"] == pytest.approx(2 + 12.7062047, rel=1e-6)
    assert columns[0].isna().tolist() == [False, True]
