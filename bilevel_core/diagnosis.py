"""What looks wrong about a run that is over: one sentence each, with the likely cause and the cure.

The rules look at rows and at the two ends of a run, so that a step costs nothing more.
"""

import math
from collections.abc import Iterator
from statistics import median
from typing import Any, NamedTuple

import torch

from bilevel_core.directions import grad_x
from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers.base import Solver, State
from bilevel_core.solvers.fdehbo import FdeHBO

FEWEST = 10  # steps: fewer say nothing (where f does not see x, x stands still until v has left v_0 = 0)
ROWS = 5  # fewer than that after the start make no share, and show no growth
PINNED = 0.9  # of the rows, v on its sphere: where r_v < ||v*|| or lam is too large; 0.7 in stored runs that go well
GROWTH = 1e3  # of a norm above 1, over its largest in the first half of the rows; 36 in a stored run that goes well
HUGE = 1e6  # a norm, over 1 and the largest ||y|| in the first half of the rows
RISE = 0.1  # of a loss, in parts of its start: more than noise makes on the problems of the book
LOST = 0.25  # of what a loss had fallen by, at its lowest row, when the run ends
FAR = 0.25  # of the distance from x_0, gained in the second half of the rows: a settled x gains less than 0.2
FELL = 0.1  # of a loss or of its range, in the second half of the rows: where 1 % of an exponential fall is left
STRAIGHT = 0.4  # likewise, x goes on as it went: a straight walk gains 0.5, a walk of noise 1 - sqrt(1/2) = 0.29
MOVED = 10.0  # an entry of x: it takes a sigmoid from 1/2 to 5e-5
VANISHED = 1e-3  # ||grad_x g|| at the last x over that at the first, for one y and one batch
ROUNDING = 0.1  # the error of H v by finite differences, in parts of H v
LOSSES = ("loss", "objective")  # words in the name of a column that should go down


class Seen(NamedTuple):
    """A row: how far x is from its start, and the norms of y and v."""

    x: float
    y: float
    v: float

    @classmethod
    def at(cls, state: State, start: State) -> "Seen":
        return cls(*(torch.linalg.vector_norm(z).item() for z in (state.x - start.x, state.y, state.v)))


def warnings(
    problem: BilevelProblem, solver: Solver[Any], start: State, state: State, seen: list[Seen], diverged: str,
    name: str, numbers: list[float],
) -> Iterator[str]:  # fmt: skip
    """The sentences about a run: `diverged` names the variables that are not finite, `numbers` are the first column of
    `evaluate`, called `name`. Whether that is a loss is known by its name, which then has "loss" or "objective" in it.
    """
    steps = {"x": "alpha", "y": "beta", "v": "lam" if hasattr(solver, "lam") else "eta_series"}
    if diverged:
        yield (
            f"the run diverged: {' and '.join(diverged)} ceased to be finite at step {state.t + 1}, so a step is too "
            f"large; try a tenth of {' and '.join(steps[variable] for variable in diverged)}"
        )
    if diverged or state.t < FEWEST:
        return
    if torch.equal(state.x, start.x):
        yield (
            f"x never moved in {state.t} steps, its direction is exactly zero: does the upper loss see x or y, and the "
            "lower loss both, without detach, item or numpy on the way? (Or alpha is lost in rounding, or the method "
            "does not look at how y* moves with x)"
        )
    enough = len(seen) > ROWS
    r_v = getattr(solver, "r_v", math.inf)
    share = sum(row.v > r_v * (1 - 1e-5) for row in seen[1:]) / len(seen[1:])  # float32 rounds a projected norm
    if enough and share > PINNED:
        yield (
            f"v was on the sphere ||v|| = r_v = {r_v:g} at {share:.0%} of the rows, so its length is not that of "
            "H^-1 grad_y f: a smaller lam or a larger eta if v is unstable without the ball, else a larger r_v"
        )
    half = seen[: max(1, len(seen) // 2)]
    for variable in "yv":
        last, before = getattr(seen[-1], variable), max(getattr(row, variable) for row in half)
        huge = last > HUGE * max(1.0, *(row.y for row in half))
        if huge or (enough and last > 1 and last > GROWTH * before > 0):
            yield (
                f"||{variable}|| grew to {last:.2g}, from at most {before:.2g} in the first half of the rows: "
                f"{steps[variable]} is too large for the curvature of g, try a third of it"
            )
    is_loss, low = any(word in name for word in LOSSES), min(numbers, default=0.0)
    if is_loss and numbers[-1] > numbers[0] + RISE * abs(numbers[0]):
        yield (
            f"{name} ended above its start, {numbers[-1]:.4g} after {numbers[0]:.4g}: a smaller alpha, a larger beta "
            "so that y keeps up with x, or a longer run"
        )
    elif is_loss and enough and numbers[-1] - low > max(LOST * (numbers[0] - low), RISE * abs(low)):
        yield (
            f"{name} ended at {numbers[-1]:.4g} and had been {low:.4g}: a smaller alpha, or steps that decay; with "
            f'best="{name}" a run keeps the state where it was lowest'
        )
    elif is_loss and enough and (end := seen[-1].x) and (far := 1 - seen[len(half)].x / end) > FAR:
        before, last = numbers[len(half)], numbers[-1]
        least = FELL * min(abs(before), max(numbers) - min(numbers)) if far < STRAIGHT else 0.0
        if before - last > least:
            yield (
                f"x is on its way: in the second half of the run {name} fell from {before:.4g} to {last:.4g}, and x "
                f"came {far:.0%} further from x_0; take more steps, or a larger alpha"
            )
    moved = (state.x - start.x).abs().max().item()
    if moved > MOVED:
        batch = problem.sample(torch.Generator().manual_seed(0)).lower
        first, now = (grad_x(problem.lower, x, state.y, batch).norm().item() for x in (start.x, state.x))
        if now < VANISHED * first:
            yield (
                f"x is saturated: entries moved by up to {moved:.3g}, and the gradient of the lower loss there is "
                f"{now / first:.1g} of that at x_0, so x has no more effect. Perhaps one weight has taken all: a "
                "smaller alpha, or a penalty on x in the upper loss"
            )
    if isinstance(solver, FdeHBO):
        delta, dtype = solver.value("delta", state.t), state.y.dtype
        y, v = (median(getattr(row, variable) for row in seen[1:]) for variable in "yv")
        error = torch.finfo(dtype).eps * y / (delta * v) if v else 0.0  # y +- delta v are rounded to eps ||y||
        if error > ROUNDING:
            yield (
                f"delta = {delta:g} is too small for {dtype}: rounding of y + delta v and y - delta v makes an error "
                f"of about {error:.1g} of H v; a larger delta{', or float64' * (dtype == torch.float32)}"
            )


def cold(refit: Any, row: dict[str, float]) -> Iterator[str]:
    """The sentences about a cold start at the x of a row: its own, and one if it is worse than what the row says."""
    yield from refit.warnings
    for name, number in list(refit.numbers.items())[:1]:
        if any(word in name for word in LOSSES) and number > row[name] + RISE * abs(row[name]):
            yield (
                f"{name} is {row[name]:.4g} at the y of the run and {number:.4g} with y fitted afresh: x has learned "
                "to go with a y that is not y*(x); a smaller alpha, a larger beta, or AID-CG, which has inner steps"
            )
