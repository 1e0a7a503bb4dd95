"""Student's t distribution with a whole number nu of degrees of freedom, as finite sums, and the interval of a mean."""

import math
from functools import cache
from typing import Any

import pandas as pd


def cdf(t: float, nu: int) -> float:
    """P(T <= t), a sum of at most nu / 2 terms in theta = arctan(t / sqrt(nu)): Abramowitz and Stegun, 26.7.3-4."""
    theta, odd = math.atan(t / math.sqrt(nu)), nu % 2
    term, total = math.cos(theta) if odd else 1.0, 0.0
    for k in range(1 + odd, nu, 2):
        total += term
        term *= math.cos(theta) ** 2 * k / (k + 1)
    within = math.sin(theta) * total  # P(|T| <= |t|), with the sign of t
    if odd:
        within = (theta + within) * 2 / math.pi
    return min(max((1 + within) / 2, 0.0), 1.0)


@cache
def quantile(p: float, nu: int) -> float:
    """The t with P(T <= t) = p, by bisection in theta, in which the whole line is bounded."""
    low, high = -math.pi / 2, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if cdf(math.sqrt(nu) * math.tan(middle), nu) < p else (low, middle)
    return math.sqrt(nu) * math.tan((low + high) / 2)


def interval(values: pd.Series | pd.DataFrame) -> tuple[Any, Any, Any]:
    """Mean over the rows and the ends of its 95 % interval, mean -+ t s / sqrt(n); of one row, the row three times."""
    n, mean = len(values), values.mean(skipna=False)
    half = quantile(0.975, n - 1) * values.std(ddof=1) / math.sqrt(n) if n > 1 else 0.0
    return mean, mean - half, mean + half
