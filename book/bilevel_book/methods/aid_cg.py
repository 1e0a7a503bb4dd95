"""AID-CG: gradient descent on y, then conjugate gradients for v, from zero.

Pedregosa (2016), "Hyperparameter optimization with approximate gradient" (HOAG); Rajeswaran, Finn, Kakade, Levine
(2019), "Meta-learning with implicit gradients" (iMAML); Grazzi, Franceschi, Pontil, Salzo (2020), "On the iteration
complexity of hypergradient computation", who name it.

    y <- y - beta grad_y g(x, y)                                     `inner` times
    v  = the K-th iterate of conjugate gradients for H(x, y) v = grad_y f(x, y)
    x <- x - alpha (grad_x f(x, y) - J(x, y) v)

It stops before K where the residual is below `tol` times ||grad_y f||, or where H is not positive. Cost of a step:
inner + 2 gradients, at most K H v, 1 J v. Conjugate gradients need one symmetric H, so f, H and J are on one draw, or
with `full` on the whole data. HOAG lowers its tolerance from step to step and adapts alpha; here both are set.
"""

from functools import partial

from bilevel_book.methods.estimates import DoubleLoop
from bilevel_core.implicit import conjugate_gradients
from bilevel_core.solvers.base import COUNT, POSITIVE, method, option


@method
class AIDCG(DoubleLoop):
    K: int = option(10, COUNT, "iterations for v, at most")
    tol: float = option(1e-6, POSITIVE, "residual at which they stop, as a part of ||grad_y f||")

    def solve(self, problem, state, f_y, g, generator):
        product = partial(g.hessian_vector, state.y)
        return state.replace(v=conjugate_gradients(product, f_y, self.tol, self.K))
