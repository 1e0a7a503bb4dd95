"""What x is worth: the lower level solved at x from a cold start, since the y of a run need not be y*(x)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from bilevel_core.counting import count, counting
from bilevel_core.directions import derivatives, leaf
from bilevel_core.problem import BilevelProblem, check_problem, check_scalar, check_vector, full_samples


@dataclass(frozen=True)
class Refit:
    """y fitted afresh, what `problem.evaluate` says of it, whether it converged, its cost, and a sentence if not."""

    y: Tensor
    numbers: dict[str, float]
    converged: bool
    gradients: int
    warnings: tuple[str, ...]


def refit(problem: BilevelProblem, x: Tensor, seed: int = 0, *, max_steps: int = 500) -> Refit:
    """Solve the lower level at `x` on `problem.full()`, from the y_0 of `seed`, by up to `max_steps` steps of L-BFGS,
    until ||grad_y g|| is at most its first value times the root of the machine epsilon; then evaluate."""
    x0, y = check_problem(problem, seed)
    check_vector("x", x, like=x0)
    norm, tolerance = torch.linalg.vector_norm, torch.finfo(y.dtype).eps ** 0.5
    g = problem.lower_at(x.detach(), full_samples(problem).lower)

    def value_and_slope(y: Tensor) -> tuple[Tensor, Tensor]:
        count(gradients=1)
        y = leaf(y)
        with torch.enable_grad():
            value = check_scalar("lower", g(y))
        return value.detach(), derivatives(value, y)[0]

    with counting() as calls:
        _, slope = value_and_slope(y)
        first, anchor, steps = norm(slope).item(), None, max_steps
        scale = 1e8 / (first or 1.0)  # the constants in torch's L-BFGS are for large gradients

        def loss() -> Tensor:
            value, here_slope = value_and_slope(y)
            y.grad = scale * here_slope
            # Close to y*, g is flat to rounding before its gradient is; then its change is taken from the latter.
            return scale * value if anchor is None else (y.grad + scale * slope) @ (y - anchor) / 2

        while norm(slope) > tolerance * first and steps > 0:
            lbfgs = torch.optim.LBFGS([y], 1, steps, None, 1e8 * tolerance / len(y) ** 0.5, 0.0, 20, "strong_wolfe")
            lbfgs.step(loss)
            steps = steps - lbfgs.state[y]["n_iter"] if anchor is None else 0
            anchor = y.clone()
            _, slope = value_and_slope(anchor)
    left, cost = norm(slope).item() / (first or 1.0), calls.gradients
    what = f"after {cost} gradients ||grad_y g|| is {left:.2g} of its first value, above {tolerance:.2g}"
    sentence = f"the refit did not converge: {what}; call refit(problem, x, max_steps={4 * max_steps})"
    return Refit(y, problem.evaluate(x.detach(), y), left <= tolerance, cost, () if left <= tolerance else (sentence,))
