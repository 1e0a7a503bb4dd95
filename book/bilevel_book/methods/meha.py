"""MEHA: F2SA with the Moreau envelope of g at y in the place of its minimum. First-order only, single loop.

Liu, Liu, Yao, Zeng, Zhang (2024), "Moreau envelope for nonconvex bi-level optimization: a single-loop and Hessian-free
solution strategy", ICML.

    z_{t+1} = z_t - gamma (grad_y g(x_t, z_t) + (z_t - y_t) / width)
    x_{t+1} = x_t - alpha (grad_x f(x_t, y_t) + ell (grad_x g(x_t, y_t) - grad_x g(x_t, z_{t+1})))
    y_{t+1} = y_t - beta (grad_y f(x_{t+1}, y_t) + ell (grad_y g(x_{t+1}, y_t) - (y_t - z_{t+1}) / width))

z follows the minimum of g + ||. - y||^2 / (2 width), which is near y, so that g need not be convex; with a large width
it is that of g, and the method F2SA. ell, c_k there, is `multiplier`, a schedule that grows; there the directions of x
and y are divided by it. Cost of a step: 6 gradients. There is no noise there; here one draw serves the whole step. v is
reported as ell (z - y), which tends to v*.
Read: the abstract, and the update as MOMEHA repeats it (Jiang, Huang, 2026, equations 11 to 13) and as the code of its
sibling LV-HBA has it (SUSTech-Optimization/LV-HBA, Toy-example); no code of MEHA by its authors.
"""

import math

from bilevel_book.methods.f2sa import Penalty
from bilevel_book.methods.losses import losses
from bilevel_core.solvers.base import POSITIVE, draw, method, option


@method
class MEHA(Penalty):
    width: float = option(2.0, POSITIVE, "how far from y the envelope looks")

    @classmethod
    def suggestions(cls, common, m):
        return super().suggestions(common, m) | {"width": (1 / m.L if m.L else math.inf, "1 / L")}

    def update(self, problem, state, generator):
        y, ell, samples = state.y, self.value("multiplier", state.t), draw(problem, generator)
        f, g = losses(problem, state.x, samples)
        state = self.move(problem, state, z=g.grad_y(state.z) + (state.z - y) / self.width)
        state = self.move(problem, state, x=f.grad_x(y) + ell * g.grad_x(y, minus=state.z))
        f, g = losses(problem, state.x, samples)
        state = self.move(problem, state, y=f.grad_y(y) + ell * (g.grad_y(y) - (y - state.z) / self.width))
        return state.replace(v=ell * (state.z - state.y))
