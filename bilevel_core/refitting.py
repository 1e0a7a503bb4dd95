"""What x is worth: the lower level solved at x from a cold start, as if no run had ever been there.

The y at the end of a run has seen every x on the way, and need not be y*(x). Here y starts at the problem's own y_0
and goes down g(x, .) on all the data by L-BFGS with a strong Wolfe line search: there is no step size to choose.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bilevel_core.checks import COUNT
from bilevel_core.counting import count, counting
from bilevel_core.directions import derivatives, leaf
from bilevel_core.problem import BilevelProblem, check_problem, check_scalar, check_vector, full_samples, seeded


@dataclass(frozen=True)
class Refit:
    """y fitted afresh, what `problem.evaluate` says of it, whether it converged, how many gradients it took, and a
    sentence if it did not converge."""

    y: Tensor
    numbers: dict[str, float]
    converged: bool
    gradients: int
    warnings: tuple[str, ...]


def refit(
    problem: BilevelProblem, x: Tensor, seed: int = 0, *, max_steps: int = 500, tolerance: float | None = None
) -> Refit:
    """Solve the lower level at `x` on `problem.full()`, from the y_0 of `seed`, and evaluate.

    It has converged once ||grad_y g|| is at most `tolerance` times its first value (default: the square root of the
    machine epsilon), and gives up after `max_steps` steps. Where x makes some direction of y very stiff, the first
    gradient is large and says little about the others: pass a smaller tolerance there.
    """
    COUNT.check(max_steps=max_steps)
    check_problem(problem, seed)
    x0, y = problem.start(seeded(seed))
    check_vector("x", x, like=x0)
    goal = torch.finfo(y.dtype).eps ** 0.5 if tolerance is None else tolerance
    if not 0 < goal < 1:
        raise ValueError(f"tolerance is relative to the first gradient and must lie between 0 and 1, got {tolerance}")
    y, norm, steps = y.detach().clone(), torch.linalg.vector_norm, max_steps
    g = problem.lower_at(x.detach(), full_samples(problem).lower)

    def value_and_slope(y: Tensor) -> tuple[Tensor, Tensor]:
        count(gradients=1)
        y = leaf(y)
        with torch.enable_grad():
            value = check_scalar("lower", g(y))
        return value.detach(), derivatives(value, y)[0]

    with counting() as calls:
        _, slope = value_and_slope(y)
        first, anchor = norm(slope).item(), None
        scale = 1e8 / (first or 1.0)  # the constants in torch's L-BFGS are for large gradients

        def loss() -> Tensor:
            value, here_slope = value_and_slope(y)
            y.grad = scale * here_slope
            # Close to y*, g is flat to rounding before its gradient is; then its change is taken from the latter.
            return scale * value if anchor is None else (y.grad + scale * slope) @ (y - anchor) / 2

        while norm(slope) > goal * first and steps > 0:
            lbfgs = torch.optim.LBFGS([y], 1, steps, None, 1e8 * goal / len(y) ** 0.5, 0.0, 20, "strong_wolfe")
            lbfgs.step(loss)
            steps = steps - lbfgs.state[y]["n_iter"] if anchor is None else 0
            anchor = y.clone()
            _, slope = value_and_slope(anchor)
    left, cost = norm(slope).item() / (first or 1.0), calls.gradients
    sentence = (
        f"the refit did not converge: after {cost} gradients ||grad_y g|| is {left:.2g} of its first value, "
        f"above the tolerance {goal:.2g}; call refit(problem, x, max_steps={4 * max_steps}), or with a larger tolerance"
    )
    return Refit(y, problem.evaluate(x.detach(), y), left <= goal, cost, () if left <= goal else (sentence,))
