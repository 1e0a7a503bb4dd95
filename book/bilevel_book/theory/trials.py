"""The inequalities of the proof on problems whose samples can be enumerated: the truth, and the bound on it."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from bilevel_book.theory.check import Check, Point, Step, distance, errors, sq
from bilevel_book.theory.constants import Sizes
from bilevel_book.theory.estimators import momentum
from bilevel_book.theory.families import LogCoshFamily, variance
from bilevel_book.theory.proof import LEMMAS, Row
from bilevel_core.directions import Directions


def facts(problem: LogCoshFamily, at: Point, other: Point, delta: float, longer: float) -> dict[str, Check]:
    """Steps (a) to (c) between two points with v in the ball, and between the steps delta < longer of differences."""
    k = problem.constants
    apart, of_v = math.hypot(distance(at.x, other.x), distance(at.y, other.y)), distance(at.v, other.v)
    here, there = (problem.v_star(z.x, z.y, delta) for z in (at, other))
    exact, y_star, far_y_star = problem.v_star(at.x, at.y), problem.y_star(at.x), problem.y_star(other.x)
    d, turned = (problem.directions(at.x, at.y, v, delta) for v in (at.v, other.v))
    moved = problem.directions(other.x, other.y, at.v, delta)
    wider = problem.directions(*at, longer)
    sigma, segment = problem.variances(at.x, at.y), problem.variances_along(at, delta)
    drift = k.r_v**2 * (longer - delta) / 2

    def rms(one, two):
        return (one - two).square().sum(1).mean().sqrt().item()

    def settled(z, delta=0.0):  # d_x where v is solved for
        return problem.directions(z.x, z.y, problem.v_star(z.x, z.y, delta), delta).x.mean(0)

    return {
        "size of v*": Check(here.norm().item(), k.r_v),
        "v* in z": Check(distance(here, there), k.L_v * apart),
        "v* in delta": Check(distance(here, problem.v_star(at.x, at.y, longer)), k.L_gyy * drift / k.mu),
        "y* in x": Check(distance(y_star, far_y_star), k.L_y * distance(at.x, other.x)),
        "G in v, from below": Check(k.mu * of_v, (d.v - turned.v).mean(0).norm().item()),
        "d_v in z": Check(rms(d.v, moved.v), k.M_v * apart),
        "d_v in v": Check(rms(d.v, turned.v), k.L * of_v),
        "d_x in z": Check(rms(d.x, moved.x), k.M_x * apart),
        "d_x in v": Check(rms(d.x, turned.x), math.sqrt(k.C_gxy) * of_v),
        "G in delta": Check((d.v - wider.v).mean(0).norm().item(), k.L_gyy * drift),
        "F in delta": Check((d.x - wider.x).mean(0).norm().item(), k.L_gxy * drift),
        "noise of d_v": Check(math.sqrt(variance(d.v)), math.sqrt(sigma.f_y) + k.r_v * math.sqrt(segment.g_yy)),
        "noise of d_x": Check(math.sqrt(variance(d.x)), math.sqrt(sigma.f_x) + k.r_v * math.sqrt(segment.g_xy)),
        "F at v*, in z": Check(distance(settled(at), settled(other)), k.Lam * apart),
        "slope of Phi in x": Check(
            distance(problem.hypergradient(at.x), problem.hypergradient(other.x)), k.L_Phi * distance(at.x, other.x)
        ),
        "shift of v*": Check(distance(here, exact), k.L_gyy * k.r_v**2 * delta / (2 * k.mu)),
        "bias of F": Check(distance(settled(at, delta), settled(at)), k.theta * delta),
    }


class Trial(NamedTuple):
    """One step: the changes of the parts of the potential, exact in expectation; the quantities in their bounds."""

    changes: dict[str, float]
    quantities: Row
    sizes: Sizes

    def parts(self, problem: LogCoshFamily, part: str) -> Row:
        """What each quantity adds to the bound on the change of a part."""
        row = LEMMAS[part](problem.constants, self.sizes)
        return {name: factor * self.quantities[name] for name, factor in row.items()}


def trial(problem: LogCoshFamily, step: Step, sizes: Sizes, delta: float = 0.0, after: float | None = None) -> Trial:
    """A step with errors against the means at delta; the new directions are seen through differences of `after`."""
    k, at, to, after = problem.constants, step.at, step.to, delta if after is None else after
    etas = Directions(y=sizes.eta_y, v=sizes.eta_v, x=sizes.eta_x)
    e, now = errors(problem, step, delta), problem.directions(*to, after)
    h = Directions(*(getattr(momentum(problem, step, eta, after), z) for z, eta in etas._asdict().items()))
    new = (float((each - d.mean(0)).square().sum(1).mean()) for each, d in zip(h, now, strict=True))
    old_errors, new_errors = Directions(*map(sq, e)), Directions(*new)
    (y2, v2), (new_y2, new_v2) = gaps(problem, at, delta), gaps(problem, to, after)
    changes = {
        "Phi": problem.objective(to.x).item() - problem.objective(at.x).item(),
        "y": new_y2 - y2,
        "v": new_v2 - v2,
        **{f"{z} error": getattr(new_errors, z) - getattr(old_errors, z) for z in ("x", "y", "v")},
    }
    drift = k.r_v**2 * (delta - after) / 2
    quantities = {
        "grad2": sq(problem.hypergradient(at.x)),
        "y2": y2,
        "v2": v2,
        "bias2": (k.theta * delta) ** 2,
        "rx2": (k.L_gxy * drift) ** 2,
        "rv2": (k.L_gyy * drift) ** 2,
        "h2": sq(step.h.x),
    }
    for z in ("x", "y", "v"):
        quantities[f"d{z}2"] = sq(getattr(to, z) - getattr(at, z))
        quantities[f"e{z}2"] = getattr(old_errors, z)
        quantities[f"n{z}2"] = variance(getattr(now, z))
    return Trial(changes, quantities, sizes)


def gaps(problem: LogCoshFamily, at: Point, delta: float) -> tuple[float, float]:
    """|y - y*(x)|^2 and |v - v*_delta(x, y)|^2."""
    return sq(at.y - problem.y_star(at.x)), sq(at.v - problem.v_star(at.x, at.y, delta))


def least_factors(tried: Iterable[tuple[str, LogCoshFamily, Trial]]) -> dict[tuple[str, str], float]:
    """For each coefficient of the lemma about a part of V, the share of it that these trials need: 1 if attained.

    A cost with a smaller factor than this, or an income with more than its inverse, is exceeded by one of them.
    """
    least: dict[tuple[str, str], float] = {}
    for part, problem, each in tried:
        parts = each.parts(problem, part)
        total, size = sum(parts.values()), sum(map(abs, parts.values()))
        for name, value in parts.items():
            if abs(value) > 1e-6 * size:
                needed = (each.changes[part] - total + value) / value  # the factor with which truth = bound
                least[part, name] = max(least.get((part, name), 0.0), needed if value > 0 else 1 / needed)
    return least


def curl(problem: LogCoshFamily, x: Tensor, delta: float, space: float = 1e-4) -> float:
    """d F_2 / d x_1 - d F_1 / d x_2 of the mean of d_x, once y and v are solved for; 0 if F is a gradient."""

    def field(x):
        y = problem.y_star(x)
        return problem.directions(x, y, problem.v_star(x, y, delta), delta).x.mean(0)

    first, second = ((field(x + e) - field(x - e)) / (2 * space) for e in space * torch.eye(2, dtype=x.dtype))
    return (first[1] - second[0]).item()
