"""VRBO: SPIDER. Estimates start anew from many draws once a period, and are carried by differences in between.

Yang, Ji, Liang (2021), "Provably faster algorithms for bilevel optimization", Algorithm 2.

    if t is a multiple of `period`:   h = the mean of `large` draws of (G, grad_y g) at (x_t, y_t)
    x_{t+1} = x_t - alpha h_x
    carry h to (x_{t+1}, y_t);   then `inner` times:   y <- y - beta h_y, carry h to the new (x_{t+1}, y)

To carry h from one point to the next is  h <- h + d(next) - d(last),  on one draw for both, with d = (G, grad_y g)
and G as in MRBO. Cost of a step: 2 (inner + 1) times (3 gradients, Q H v, 1 J v), and `large` times more when a
period starts.

The paper has a large batch where we take the mean of `large` draws, which is the same. Its released code writes
and reads different blocks of the weights, and returns a y one step past its estimates; this follows the paper.
"""

from torch import Tensor

from bilevel_book.methods.estimates import Pair, PairSolver, lower_batches, neumann, surrogate
from bilevel_book.methods.losses import Loss, losses
from bilevel_core.schedules import Power, Step
from bilevel_core.solvers.base import COUNT, POSITIVE, STEP, draw, method, option


@method
class VRBO(PairSolver):
    alpha: Step = option(Power(0.4, p=1 / 2), STEP, "step of x")
    beta: Step = option(Power(0.5, p=1 / 2), STEP, "step of y")
    inner: int = option(1, COUNT, "steps of y for one of x")
    period: int = option(3, COUNT, "steps from one fresh start of the estimates to the next")
    large: int = option(5, COUNT, "draws in a fresh start")
    Q: int = option(10, COUNT, "factors of the longest product in the sum")
    eta_series: float = option(0.3, POSITIVE, "gamma of the sum, below 2 / L")

    def update(self, problem, state, generator):
        here, h = Pair(state.x, state.y), state.h

        def estimates(*points: Pair) -> list[tuple[Pair, Tensor]]:
            """(G, grad_y g) and the v in G, at each point on one draw; points with the same x share what it decides."""
            samples, batches = draw(problem, generator), list(lower_batches(problem, generator, self.Q))
            at_x = {id(x): losses(problem, x, samples) for x, _ in points}
            factors = {id(x): [Loss(problem, "lower", x, each) for each in batches] for x, _ in points}

            def estimate(x: Tensor, y: Tensor) -> tuple[Pair, Tensor]:
                f, g = at_x[id(x)]
                G, v = surrogate(f, g, y, lambda r: neumann(problem, x, y, r, factors[id(x)], self.eta_series))
                return Pair(G, g.grad_y(y)), v

            return [estimate(*point) for point in points]

        # 1. A fresh start of the estimates.
        if state.t % self.period == 0:
            fresh = [estimates(here)[0][0] for _ in range(self.large)]
            h = Pair(*(sum(parts[1:], parts[0]) / self.large for parts in zip(*fresh, strict=True)))
        # 2. One step of x, then `inner` of y, the estimates carried along.
        for name in ("x", *["y"] * self.inner):
            state = self.move(problem, state, **{name: getattr(h, name)})
            last, here = here, Pair(state.x, state.y)
            (now, v), (then, _) = estimates(here, last)
            h = Pair(h.x + now.x - then.x, h.y + now.y - then.y)
        return state.replace(v=v, before=here, h=h)
