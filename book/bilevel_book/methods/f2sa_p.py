"""F2SA-p: F2SA with a difference of order p in the weight of f, which makes its bias O(1 / ell^p). First-order only.

Chen, Li, Chayti, Zhang (2026), "Faster gradient methods for highly-smooth stochastic bilevel optimization", ICLR.

    y_j <- y_j - beta grad_y (j f + ell g)(x, y_j)              `inner` times, for each of a few whole numbers j
    x <- x - alpha sum_j c_j grad_x (j f + ell g)(x, y_j)       at the new y_j

The c_j are those of the difference formula  phi'(0) = sum_j c_j phi(j) + an error of order p: p = 1 has j = 0, 1 and
c = -1, 1, which is F2SA with z = y_0; p = 2 has j = -1, 1 and c = -1/2, 1/2; p = 3 has j = -1, 0, 1, 2. ell is
`multiplier`, so large that j f + ell g is strongly convex for j < 0 too; beta ell L must stay below 2.
Cost of a step: 2 (inner + 1) gradients for each j other than 0, half of it for j = 0. v is reported as
-ell sum_j c_j y_j, which tends to v*, and y as what the same y_j say of j = 0.

Read: the abstract, and F2SA_p in the authors' code (TrueNobility303/F2BA, medium_sized/l2reg.py), whose c_j are these.
Each y_j has draws of its own there, and before every step of x those of one sign are set to their average; here all
see the same draws, so that most of the noise leaves the difference. It normalises the step: alpha = Normalised(...).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bilevel_book.methods.f2sa import Penalty
from bilevel_book.methods.losses import losses
from bilevel_core.schedules import Power, Rate, Step
from bilevel_core.solvers.base import COUNT, STEP, Solver, State, draw, method, option


def nodes(p: int) -> list[int]:
    """The j of order p, as near to 0 as can be; 0 itself is left out for even p, where its c is 0."""
    return [j for j in range(-(p // 2), (p + 1) // 2 + 1) if j or p % 2]


def weights(p: int, derivative: int) -> Tensor:
    """c with sum_j c_j phi(j) = phi(0), or phi'(0), for every polynomial phi of a degree below the number of nodes."""
    powers = torch.linalg.vander(torch.tensor(nodes(p), dtype=torch.float64)).T
    return torch.linalg.solve(powers, torch.eye(len(powers), dtype=torch.float64)[derivative])


@dataclass(frozen=True)
class F2SAPState(State):
    """Also the y_j, a row for each."""

    rows: Tensor


@method
class F2SAP(Solver[F2SAPState]):
    state_type = F2SAPState
    suggestions = Penalty.suggestions

    alpha: Step = option(Power(0.2, p=1 / 2), STEP, "step of x")
    beta: Step = option(Power(0.05, p=1 / 2), STEP, "step of every y_j")
    multiplier: Rate = option(10.0, STEP, "ell, the weight of the lower level")
    p: int = option(2, COUNT, "order of the difference")
    inner: int = option(5, COUNT, "steps of the y_j for one of x")

    def init_memory(self, state):
        return F2SAPState(**vars(state), rows=state.y.repeat(len(nodes(self.p)), 1))

    def update(self, problem, state, generator):
        x, ell, all_j = state.x, self.value("multiplier", state.t), nodes(self.p)
        if len(state.rows) != len(all_j):
            needed = f"F2SAP of order {self.p} needs {len(all_j)} rows of y"
            raise ValueError(f"{needed}, not {len(state.rows)}: make it by its own init")

        def each(rows: Tensor, of: str) -> Tensor:
            """grad_y or grad_x of j f + ell g at y_j, a row for each j, on one draw."""
            f, g = (getattr(loss, of) for loss in losses(problem, x, draw(problem, generator)))
            return torch.stack([ell * g(y) + j * f(y) if j else ell * g(y) for j, y in zip(all_j, rows, strict=True)])

        state = state.replace(y=state.rows)
        for _ in range(self.inner):
            state = self.move(problem, state, y=each(state.y, "grad_y"))
        rows, at_0, c = state.y, weights(self.p, 0).to(x), weights(self.p, 1).to(x)
        state = self.move(problem, state, x=c @ each(rows, "grad_x"))
        return state.replace(y=at_0 @ rows, v=-ell * c @ rows, rows=rows)
