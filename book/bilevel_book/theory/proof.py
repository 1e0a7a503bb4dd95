"""The proof of Theorem 13.1: each inequality as a row of coefficients, the constants, and what they add up to.

A row says: (change of something in one step) <= sum of coefficient * quantity. The quantities are

    grad2                squared slope of Phi
    dx2, dy2, dv2        squared moves of the step
    y2, v2               |y - y*(x)|^2 and |v - v*_delta(x, y)|^2
    ex2, ey2, ev2        squared errors of the estimates h_x, h_y, h_v, against the means that differences see
    nx2, ny2, nv2        variances of the sampled directions
    bias2                (theta delta)^2
    rx2, rv2             squared drifts of the means of d_x and d_v, if delta changes

The rows are plain arithmetic, so they can be evaluated with floats or with symbols of sympy. `k` has the constants of
the problem (mu, L, L_y, M_x, M_v, L_v, Lam, L_Phi, C_gxy), `s` the sizes of one step (`Sizes`). Names like thm-descent
are the labels of the formulas in Chapter 13.
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping
from math import log1p
from typing import Any, NamedTuple

from bilevel_book.theory.constants import ProblemConstants, ProofConstants, Sizes

Row = dict[str, Any]
ACCOUNTS = ("h2", "y2", "v2", "ex2", "ey2", "ev2")  # the squares that are left in its change; h2 = |h_x|^2


# The lemmas: changes of Phi, of the two gaps and of the three errors


def descent(k: Any, s: Sizes) -> Row:
    """Of Phi, thm-descent. Four errors share the square of a sum of four, hence 4 alpha / 2 each."""
    each = 2 * s.alpha
    return {
        "grad2": -s.alpha / 2,
        "dx2": -(1 - s.alpha * k.L_Phi) / (2 * s.alpha),
        "ex2": each,
        "v2": each * k.C_gxy,
        "y2": each * k.Lam**2,
        "bias2": each,
    }


def track_y(k: Any, s: Sizes) -> Row:
    """Of |y - y*|^2, thm-track-y."""
    rate = s.beta * k.mu
    return {"y2": -rate / 2, "ey2": s.beta / k.mu * (1 + rate), "dx2": (2 / rate - 1) * k.L_y**2}


def track_v(k: Any, s: Sizes) -> Row:
    """Of |v - v*_delta|^2, thm-track-v. The target moves with x and y, and drifts with delta."""
    rate = s.lam * k.mu
    follow = 2 * (2 / rate - 1)
    moved = follow * k.L_v**2
    return {
        "v2": -rate / 2,
        "ev2": s.lam / k.mu * (1 + rate),
        "dx2": moved,
        "dy2": moved,
        "rv2": follow / k.mu**2,
    }


def error_x(k: Any, s: Sizes) -> Row:
    """Of |e_x|^2, in expectation, thm-error-x."""
    kept = (1 - s.eta_x) ** 2
    move, of_v = 4 * kept * k.M_x**2, 4 * kept * k.C_gxy
    return {
        "ex2": -s.eta_x,
        "nx2": 2 * s.eta_x**2,
        "dx2": move,
        "dy2": move,
        "dv2": of_v,
        "rx2": kept / s.eta_x,
    }


def error_y(k: Any, s: Sizes) -> Row:
    """Of |e_y|^2, in expectation, thm-error-y."""
    move = 2 * (1 - s.eta_y) ** 2 * k.L**2
    return {"ey2": -s.eta_y, "ny2": 2 * s.eta_y**2, "dx2": move, "dy2": move}


def error_v(k: Any, s: Sizes) -> Row:
    """Of |e_v|^2, in expectation, thm-error-v."""
    kept = (1 - s.eta_v) ** 2
    move, of_v = 4 * kept * k.M_v**2, 4 * kept * k.L**2
    return {
        "ev2": -s.eta_v,
        "nv2": 2 * s.eta_v**2,
        "dx2": move,
        "dy2": move,
        "dv2": of_v,
        "rv2": kept / s.eta_v,
    }


def moves(k: Any, s: Sizes) -> dict[str, Row]:
    """The squared moves themselves, thm-moves."""
    return {
        "dx2": {"h2": s.alpha**2},
        "dy2": {"ey2": 2 * s.beta**2, "y2": 2 * s.beta**2 * k.L**2},
        "dv2": {"ev2": 2 * s.lam**2, "v2": 2 * s.lam**2 * k.L**2},
    }


LEMMAS = {"Phi": descent, "y": track_y, "v": track_v, "x error": error_x, "y error": error_y, "v error": error_v}


# The constants of the theorem


def choose(k: Any, iota: Any) -> ProofConstants:
    """All but w, thm-constants; iota = min(1/3, mu / (8 L L_y))."""
    p_y = iota**2 / (8 * k.L**2)
    p_v = iota**2 * k.mu**4 / (512 * k.M_v**2 * k.L**4)
    p_x = iota**2 * k.mu**2 / (512 * k.Lam**2 * k.L**2)
    return ProofConstants(
        a_y=k.Lam / k.L_y,
        a_v=iota * k.mu**2 * k.L_y / k.M_v,
        p_x=p_x,
        p_y=p_y,
        p_v=p_v,
        c_beta=8 * k.Lam * k.L_y / k.mu,
        c_lam=8 * k.L_y * k.M_v / (k.mu * iota),
        c_x=1 + 2 / p_x,
        c_y=1 + 14 * k.Lam**2 / (k.mu**2 * p_y),
        c_v=1 + 14 * k.L_y**2 / p_v,
    )


def theorem(k: ProblemConstants) -> ProofConstants:
    """The constants of Theorem 13.1, with the smallest w that meets the conditions."""
    if not (k.L_y > 0 and k.M_v > 0):
        raise ValueError(f"take C_gxy and L_fy positive: they are upper bounds; got {k}")
    return with_offset(k, choose(k, min(1 / 3, k.mu / (8 * k.L * k.L_y))))


def with_offset(k: ProblemConstants, c: ProofConstants) -> ProofConstants:
    """The same constants with the smallest w of at least 2 for which all `conditions` hold."""
    least = {name: value**power for name, (value, power) in _limits(k, c).items()}
    return dataclasses.replace(c, w=max(2.0, *least.values()))


def conditions(k: ProblemConstants, c: ProofConstants) -> dict[str, float]:
    """What the proof needs of w, thm-offset and thm-small-steps, each as a number that must be at most 1."""
    return {"2 <= w": 2 / c.w} | {n: value * c.w ** (-1 / power) for n, (value, power) in _limits(k, c).items()}


def _limits(k: ProblemConstants, c: ProofConstants) -> dict[str, tuple[float, float]]:
    """Each condition asks for w >= value^power."""
    return {
        "4 alpha L_Phi <= 1": (4 * k.L_Phi, 3),
        "2 beta L <= 1": (2 * c.c_beta * k.L, 3),
        "2 lam L <= 1": (2 * c.c_lam * k.L, 3),
        "eta <= 1": (max(c.c_x, c.c_y, c.c_v), 1.5),
    }


# The merge and the sum


def change(k: Any, c: ProofConstants, s: Sizes) -> dict[str, Row]:
    """E[V_{t+1} - V_t] is at most the sum of these rows: part of the potential -> row, thm-change.

    V_t = Phi + a_y y2 + a_v v2 + (p_x ex2 + p_y ey2 + p_v ev2) / alpha_{t-1}
    """
    weights = (1, c.a_y, c.a_v, c.p_x / s.alpha, c.p_y / s.alpha, c.p_v / s.alpha)
    rows = {part: times(weight, LEMMAS[part](k, s)) for part, weight in zip(LEMMAS, weights, strict=True)}
    for z, p in (("x", c.p_x), ("y", c.p_y), ("v", c.p_v)):
        rows[f"{z} error"] = plus(rows[f"{z} error"], {f"e{z}2": p * s.rise})
    return rows


def contributions(k: Any, c: ProofConstants, s: Sizes) -> dict[str, Row]:
    """The same over alpha, with the moves written out by thm-moves: who adds what to each account, thm-accounts."""
    written = {}
    for part, row in change(k, c, s).items():
        out = {name: value for name, value in row.items() if name not in moves(k, s)}
        for name, move in moves(k, s).items():
            out = plus(out, times(row.get(name, 0), move))
        written[part] = times(1 / s.alpha, out)
    return written


def accounts(k: Any, c: ProofConstants, s: Sizes) -> Row:
    """The six coefficients that must not be positive: the sums of `contributions`."""
    rows = contributions(k, c, s).values()
    return {name: sum(row.get(name, 0) for row in rows) for name in ACCOUNTS}


class Noise(NamedTuple):
    """The variances sigma_x^2, sigma_y^2, sigma_v^2 of the three sampled directions."""

    x: float
    y: float
    v: float


def start_value(k: Any, c: ProofConstants, gap: float, y2: float, v2: float, noise: Noise) -> float:
    """The bound on E V_0 - inf Phi, thm-start: gap = Phi(x_0) - inf Phi, and the two squared gaps at the start."""
    errors = c.p_x * noise.x + c.p_y * noise.y + c.p_v * noise.v
    return gap + c.a_y * y2 + c.a_v * v2 + c.w ** (1 / 3) * errors


def bound(k: Any, c: ProofConstants, T: float, start: float, noise: Noise, delta: float = 0.0) -> float:
    """Theorem 13.1 for a fixed delta, thm-fixed: what the mean of E |grad Phi(x_t)|^2 over t < T is at most."""
    loud = 2 * (c.p_x * c.c_x**2 * noise.x + c.p_y * c.c_y**2 * noise.y + c.p_v * c.c_v**2 * noise.v)
    travel = 2 * (c.w + T) ** (1 / 3) / T
    return travel * (start + loud * log1p(T / (c.w - 1))) + 6 * (k.theta * delta) ** 2


def drift_constant(k: Any, c: ProofConstants) -> float:
    """D of thm-rate: a change of delta by one step's difference costs D (w + t) (r_v^2 difference / 2)^2."""
    rv = 4 * c.a_v / (c.c_lam * k.mu**3) + c.p_v / c.c_v
    return rv * k.L_gyy**2 + c.p_x / c.c_x * k.L_gxy**2


def times(factor: Any, row: Mapping[str, Any]) -> Row:
    """factor * row."""
    return {name: factor * value for name, value in row.items()}


def plus(*rows: Mapping[str, Any]) -> Row:
    """The sum of rows."""
    total: Counter[str] = Counter()
    for row in rows:
        for name, value in row.items():
            total[name] += value
    return dict(total)
