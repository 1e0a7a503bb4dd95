"""FdeHBO: FMBO with the products H v and J v replaced by central differences of first-order gradients.

Yang, Xiao, Ji (2023), "Achieving O(eps^-1.5) complexity in Hessian/Jacobian-free stochastic bilevel
optimization", Algorithm 1, equations def:htg, def:htR_free, def:htf_free, def:H, def:J.

    H v ~ [grad_y g(x, y + delta v) - grad_y g(x, y - delta v)] / (2 delta)
    J v ~ [grad_x g(x, y + delta v) - grad_x g(x, y - delta v)] / (2 delta)      same batch at both signs

and the update of FMBO. Cost of a step: 14 gradients, no second derivative (7 at t = 0, or wherever eta_t = 1).
"""

from bilevel_core.schedules import Rate
from bilevel_core.solvers.base import STEP, method, option
from bilevel_core.solvers.fmbo import FMBO


@method
class FdeHBO(FMBO):
    delta: Rate = option(0.01, STEP, "the gradients are taken at y + delta v and y - delta v")
