"""F2SA-p: the hypergradient as a finite difference of order p in the price nu of the upper loss. First-order only.

Chen, Li, Chayti, Zhang (2026), "Faster gradient methods for highly-smooth stochastic bilevel optimization", ICLR.

    y_j -> argmin_y g(x, y) + j nu f(x, y)                 `inner` steps of gamma each, for a few whole numbers j
    x <- x - alpha / nu sum_j c_j grad_x (g + j nu f)(x, y_j)

where sum_j c_j phi(j nu) / nu is phi'(0) up to O(nu^p): p = 1 has j = 0, 1 and c = -1, 1, which is F2SA with
ell = 1 / nu; p = 2 has j = -1, 1; p = 3 has j = -1, 0, 1, 2. g + j nu f must stay strongly convex, also for j < 0.
Cost of a step: 2 (inner + 1) gradients for each j (half of it for j = 0). Every j sees the same draws, or the noise of
the difference would be 1 / nu times that of a gradient. v is reported as -sum_j c_j y_j / nu, which tends to v*.
Its authors normalise the step of x: here `alpha=Normalised(...)`.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from bilevel_core.directions import grad_x, grad_y
from bilevel_core.problem import BilevelProblem, Samples
from bilevel_core.schedules import Power, Rate, Step
from bilevel_core.solvers.solver import COUNT, POSITIVE, Solver, State, draw, method, option


def nodes(p: int) -> list[int]:
    """The j of order p: as near to 0 as p + 1 whole numbers are, without 0 if p is even, where its c is 0."""
    return [j for j in range(-((p - 1) // 2) - (p % 2 == 0), p // 2 + 1 + p % 2) if j or p % 2]


def weights(p: int, derivative: int) -> Tensor:
    """c with sum_j c_j phi(j) = phi(0) or phi'(0), for polynomials phi of a degree below the number of nodes."""
    j = np.array(nodes(p), dtype=float)
    return torch.as_tensor(np.linalg.solve(np.vander(j, increasing=True).T, np.eye(len(j))[derivative]))


@dataclass(frozen=True)
class F2SAPState(State):
    """Also z, the points y_j, a row for each j."""

    z: Tensor


@method
class F2SAP(Solver[F2SAPState]):
    alpha: Step = option(Power(0.2, p=1 / 2), POSITIVE, "step of x")
    gamma: Step = option(Power(0.5, p=1 / 2), POSITIVE, "step of every y_j")
    nu: Rate = option(0.1, POSITIVE, "the price of the upper loss")
    p: int = option(2, COUNT, "order of the difference")
    inner: int = option(5, COUNT, "steps of the y_j for one of x")

    def remember(self, state: State) -> F2SAPState:
        return F2SAPState(**vars(state), z=state.y.repeat(len(nodes(self.p)), 1))

    def update(self, problem: BilevelProblem, state: F2SAPState, generator: Generator) -> F2SAPState:
        x, nu = state.x, self.value("nu", state.t)

        def each(grad, samples: Samples) -> Tensor:
            """grad (g + j nu f)(x, y_j), a row for each j."""
            rows = []
            for j, y in zip(nodes(self.p), state.z, strict=True):
                row = grad(problem.lower, x, y, samples.lower)
                rows.append(row + j * nu * grad(problem.upper, x, y, samples.upper) if j else row)
            return torch.stack(rows)

        for _ in range(self.inner):
            state = self.move(problem, state, z=each(grad_y, draw(problem, generator)))
        value, slope = (weights(self.p, order).to(x) for order in (0, 1))
        d_x = slope @ each(grad_x, draw(problem, generator)) / nu
        return self.move(problem, state, x=d_x).moved(y=value @ state.z, v=-slope @ state.z / nu)
