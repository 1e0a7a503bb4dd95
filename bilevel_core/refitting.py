"""What x is worth: the lower level solved at x from a cold start, since the y of a run need not be y*(x)."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bilevel_core.checks import COUNT, RADIUS
from bilevel_core.counting import count, counting
from bilevel_core.directions import derivatives, leaf
from bilevel_core.problem import BilevelProblem, check_problem, check_scalar, check_vector, full_samples

STEPS_AT_ONCE = 20  # of L-BFGS, from one look at the clock to the next


@dataclass(frozen=True)
class Refit:
    """y fitted afresh, what `problem.evaluate` says of it, whether it converged, its cost, and a sentence if not."""

    y: Tensor
    numbers: dict[str, float]
    converged: bool
    gradients: int
    warnings: tuple[str, ...]


def refit(
    problem: BilevelProblem,
    x: Tensor,
    seed: int = 0,
    *,
    max_steps: int = 500,
    seconds: float = math.inf,
    optimiser: Callable[[list[Tensor]], torch.optim.Optimizer] | None = None,
) -> Refit:
    """Solve the lower level at `x` on `problem.full()` from the y_0 of `seed`, until ||grad_y g|| is at most its first
    value times the root of the machine epsilon, or `max_steps` or `seconds` are over; then evaluate.

    By L-BFGS, or by another optimiser of torch: optimiser=lambda ys: torch.optim.Adam(ys, 1e-2).
    """
    RADIUS._replace(words="a positive number (inf: as long as it takes)").check(seconds=seconds)
    COUNT.check(max_steps=max_steps)
    x0, y = check_problem(problem, seed)
    check_vector("x", x, like=x0)
    norm, tolerance = torch.linalg.vector_norm, torch.finfo(y.dtype).eps ** 0.5
    g, end = problem.lower_at(x.detach(), full_samples(problem).lower), time.monotonic() + seconds

    def value_and_slope(y: Tensor) -> tuple[Tensor, Tensor]:
        count(gradients=1)
        y = leaf(y)
        with torch.enable_grad():
            value = check_scalar("lower", g(y))
        return value.detach(), derivatives(value, y)[0]

    with counting() as calls:
        _, slope = value_and_slope(y)
        first, anchor = norm(slope).item(), None
        scale = 1.0 if optimiser else 1e8 / (first or 1.0)  # the constants in torch's L-BFGS are for large gradients

        def loss() -> Any:
            value, here_slope = value_and_slope(y)
            y.grad = scale * here_slope
            # Close to y*, g is flat to rounding before its gradient is; then its change is taken from the latter.
            return scale * value if anchor is None else (y.grad + scale * slope) @ (y - anchor) / 2

        def lbfgs(ys: list[Tensor]) -> torch.optim.Optimizer:
            return torch.optim.LBFGS(ys, 1, 1, 10**9, 1e8 * tolerance / len(y) ** 0.5, 0.0, 20, "strong_wolfe")

        def descend(method: torch.optim.Optimizer, most: int) -> int:
            """Let a method take steps, at most so many, until it stands still or the time is up: how many it took."""
            taken, group = 0, method.param_groups[0]
            while taken < most and time.monotonic() < end:
                if "max_iter" in group:
                    group["max_iter"] = min(STEPS_AT_ONCE, most - taken)
                method.step(loss)
                # L-BFGS takes several steps at once and counts them: fewer than it may, and it stands still.
                before, taken = taken, method.state[y].get("n_iter", taken + 1)
                if taken < before + group.get("max_iter", 1) or norm(y.grad) <= scale * tolerance * first:
                    break
            return taken

        taken = descend((optimiser or lbfgs)([y]), max_steps)
        _, slope = value_and_slope(y)
        if optimiser is None and norm(slope) > tolerance * first:
            anchor = y.clone()
            descend(lbfgs([y]), max_steps - taken)
            _, slope = value_and_slope(y)
    left, cost = norm(slope).item() / (first or 1.0), calls.gradients
    what = f"after {cost} gradients ||grad_y g|| is {left:.2g} of its first value, above {tolerance:.2g}"
    cure = f"seconds={4 * seconds:g}" if time.monotonic() > end else f"max_steps={4 * max_steps}"
    sentence = f"the refit did not converge: {what}; call refit(problem, x, {cure})"
    return Refit(y, problem.evaluate(x.detach(), y), left <= tolerance, cost, () if left <= tolerance else (sentence,))
