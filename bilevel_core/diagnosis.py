"""What looks wrong about a run, by its rows and its two ends: one sentence each, with the likely cause and the cure."""

import math
from collections.abc import Iterator
from statistics import mean, median
from typing import TYPE_CHECKING

import torch

from bilevel_core.directions import grad_x, grad_y
from bilevel_core.problem import UNSEEN, seeded
from bilevel_core.solvers.base import generator_at

if TYPE_CHECKING:
    from bilevel_core.runner import Result

FEWEST_STEPS = 10  # fewer say nothing (where f does not see x, x stands still until v has left v_0 = 0)
FEWEST_ROWS = 5  # after the start: fewer make no share, and show no growth
SHARE_ON_SPHERE = 0.9  # of the rows: where r_v < ||v*|| or lam is too large; 0.7 in stored runs that go well
GROWTH_FACTOR = 1e3  # of a norm above 1, over its largest in the first half of the rows; 36 in a run that goes well
HUGE_NORM = 1e6  # over 1 and the largest ||y|| in the first half of the rows
RISE_SHARE = 0.1  # of a loss, in parts of its start: more than noise makes on the problems of the book
LOST_SHARE = 0.25  # of what a loss had fallen by, at its lowest row, when the run ends
MOVING_SHARE = 0.25  # of the distance from x_0, gained in the second half of the rows: a settled x gains below 0.2
STRAIGHT_SHARE = 0.4  # likewise, x goes on as it went: a straight walk gains 0.5, one of noise 1 - sqrt(1/2) = 0.29
FALL_SHARE = 0.1  # of a loss or its range, in the second half of the rows: where 1 % of an exponential fall is left
SATURATED_ENTRY = 10.0  # of x - x_0: it takes a sigmoid from 1/2 to 5e-5
VANISHED_SHARE = 1e-3  # ||grad_x g|| at the last x over that at the first, for one y and one batch
JUMP_FACTOR = 10  # of ||x - x_0|| or 1 + ||y|| in one row: beyond it x or y is to blame for a loss that is not finite
ROUNDING_SHARE = 0.1  # the error of H v by finite differences, in parts of H v


def diagnose(result: "Result") -> Iterator[str]:
    """The sentences about a run, none if all is well. The first column is watched if named a loss or objective."""
    losses = [name for name in [result.loss_column] if name]
    step_of = {"x": "alpha", "y": "beta", "v": "lam" if "lam" in vars(result.solver) else "eta_series"}
    if result.nonfinite and (culprit := _nonfinite_loss(result)):
        yield f"the run diverged: {culprit}"
    elif result.nonfinite or result.stop == "blew up":
        what = f"{' and '.join(result.nonfinite)} ceased to be finite at step {result.diverged_at}"
        if not result.nonfinite:
            largest = max(zip(result.norms[-1], "xyv", strict=True))
            what = f"at step {result.state.t} ||{largest[1]}{' - x_0' * (largest[1] == 'x')}|| is {largest[0]:.1g}"
        steps = " and ".join(step_of[variable] for variable in result.nonfinite or largest[1])
        yield f"the run diverged: {what}, so a step is too large; try a tenth of {steps}, or what `suggest` finds"
    elif result.state.t >= FEWEST_STEPS:
        yield from _about_run(result, losses, step_of)
    if result.refit:
        yield from _about_refit(result, losses)


def _nonfinite_loss(result: "Result") -> str:
    """Which loss is not finite on the draw that ended a run, at x and y of the size that they had before; or ""."""
    state, here, norms = result.state, result.problem.local(), result.norms  # no message: others may not ask
    distance, norm_y, _ = next((row for row in reversed(norms) if row != norms[-1]), norms[0])  # of an earlier state
    is_far = (state.x - result.start.x).norm() > JUMP_FACTOR * (1 + distance)
    if is_far or state.y.norm() > JUMP_FACTOR * (1 + norm_y):
        return ""
    samples = result.problem.sample(generator_at(state))
    for name, loss, batch in (("upper", here.upper, samples.upper), ("lower", here.lower, samples.lower)):
        at = state.x, state.y, batch
        if not all(tensor.isfinite().all() for tensor in (loss(*at), grad_x(loss, *at), grad_y(loss, *at))):
            what = f"{name} or its gradient is not finite at step {state.t + 1}, though x and y are"
            return f"{what}: 0 / 0, or the log or root of what is not positive? A smaller step may not mend that"
    return ""


def _about_refit(result: "Result", losses: list[str]) -> Iterator[str]:
    refit = result.refit
    assert refit
    yield from refit.warnings
    if result.stop in ("diverged", "blew up") and not result.best:
        yield "the refit is of the last x of a run that diverged: x is lost, and so is what the refit says of it"
    row = result.best[1] if result.best else result.history.iloc[-1]
    for name in losses:
        before, after = row[name], refit.numbers[name]
        what = f"{name} is {before:.4g} at the y of the run and {after:.4g} with y fitted afresh"
        if after > before + RISE_SHARE * abs(before):
            cure = "take objective(problem), which solves for y at every step, or a larger beta"
            yield f"{what}: x has learned to go with a y that is not y*(x); {cure}"
        elif after < before - RISE_SHARE * abs(before):
            yield f"{what}: y lags behind y*(x); take the y of the refit, and in the run a larger beta or more steps"


def _about_run(result: "Result", losses: list[str], step_of: dict[str, str]) -> Iterator[str]:
    start, state, options = result.start, result.state, vars(result.solver)
    is_enough, half = len(result.norms) > FEWEST_ROWS, max(1, len(result.norms) // 2)
    distances, norms_y, norms_v = zip(*result.norms, strict=True)
    if torch.equal(state.x, start.x):
        why = "does the upper loss see x or y, and the lower loss both, without detach, item or numpy on the way?"
        other = "(Or alpha is lost in rounding, or the method does not look at how y* moves with x)"
        yield f"x never moved in {state.t} steps, its direction is exactly zero: {why} {other}"
    r_v = options.get("r_v", math.inf)
    share = mean(norm > r_v * (1 - 1e-5) for norm in norms_v[1:])  # float32 rounds a projected norm
    if is_enough and share > SHARE_ON_SPHERE:
        what = f"v was on the sphere ||v|| = r_v = {r_v:g} at {share:.0%} of the rows"
        cure = "a smaller lam if v is unstable without the ball, else a larger r_v"
        yield f"{what}, so its length is not that of H^-1 grad_y f: {cure}"
    for variable, norms in (("y", norms_y), ("v", norms_v)):
        last, before = norms[-1], max(norms[:half])
        has_grown = is_enough and last > 1 and last > GROWTH_FACTOR * before > 0
        if has_grown or last > HUGE_NORM * max(1.0, *norms_y[:half]):
            what = f"||{variable}|| grew to {last:.2g}, from at most {before:.2g} in the first half of the rows"
            yield f"{what}: {step_of[variable]} is too large for the curvature of g, try a third of it"
    for name in losses:
        yield from _about_loss(name, result.history[name].tolist(), distances)
    here = result.problem.local()  # no message: with several processes perhaps one alone asks for the sentences
    batch, lower = here.sample(seeded(0)).lower, here.lower
    first, now = (grad_x(lower, x, state.y, batch).norm().item() for x in (start.x, state.x))
    furthest = (state.x - start.x).abs().max().item()
    if first == now == 0:
        yield f"lower does not depend on x{UNSEEN} Then y* stands still, and grad Phi is grad_x f alone"
    elif furthest > SATURATED_ENTRY and now < VANISHED_SHARE * first:
        what = f"entries moved by up to {furthest:.3g}, and the gradient of the lower loss there is"
        why = f"{now / first:.1g} of that at x_0, so x has no more effect. Perhaps one weight has taken all"
        yield f"x is saturated: {what} {why}: a smaller alpha, or a penalty on x in the upper loss"
    delta, dtype = result.solver.value("delta", state.t) if "delta" in options else None, state.y.dtype
    y, v = median(norms_y[1:]), median(norms_v[1:])
    error = torch.finfo(dtype).eps * y / (delta * v) if delta and v else 0.0  # y +- delta v are rounded to eps ||y||
    if error > ROUNDING_SHARE:
        why = f"rounding of y + delta v and y - delta v makes an error of about {error:.1g} of H v"
        cure = f"a larger delta{', or float64' * (dtype == torch.float32)}"
        yield f"delta = {delta:g} is too small for {dtype}: {why}; {cure}"


def _about_loss(name: str, losses: list[float], distances: tuple[float, ...]) -> Iterator[str]:
    middle = max(1, len(losses) // 2)
    first, before, last, low = losses[0], losses[middle], losses[-1], min(losses)
    gain = 1 - distances[middle] / distances[-1] if distances[-1] else 0.0  # in the second half, of the last one
    least = FALL_SHARE * min(abs(before), max(losses) - low) if gain < STRAIGHT_SHARE else 0.0
    if last > first + RISE_SHARE * abs(first):
        yield f"{name} ended above its start, {last:.4g} after {first:.4g}: take a smaller alpha"
    elif len(losses) <= FEWEST_ROWS:
        return
    elif last - low > max(LOST_SHARE * (first - low), RISE_SHARE * abs(low)):
        cure = f'a smaller alpha, or steps that decay; with best="{name}" a run keeps the state where it was lowest'
        yield f"{name} ended at {last:.4g} and had been {low:.4g}: {cure}"
    elif gain > MOVING_SHARE and before - last > least:
        what = f"in the second half of the run {name} fell from {before:.4g} to {last:.4g}"
        yield f"x is on its way: {what}, and x came {gain:.0%} further from x_0; take more steps, or a larger alpha"
