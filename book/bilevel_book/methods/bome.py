"""BOME: x and y go down f as long as g comes down too: a penalty whose price is computed anew at every step.

Ye, Liu, Wright, Stone, Liu (2022), "BOME! Bilevel optimization made easy: a simple first-order approach", NeurIPS.

    z = y after `inner` steps of gamma along grad_y g(x, .)
    q = (grad_x g(x, y) - grad_x g(x, z), grad_y g(x, y))            the gradient of g(x, y) - g(x, z) with z held
    ell = max(0, barrier ||q||^2 - <grad f(x, y), q>) / ||q||^2      the least price with which q falls so fast
    (x, y) <- (x, y) - (alpha, beta) (grad f(x, y) + ell q)

q tends to 0 and ell grows as 1 / ||q||, so that x and y come to rest only as their steps do; v is reported as
ell (z - y), which then is the Neumann sum of `inner` terms. Cost of a step: inner + 5 gradients. There is no noise
there; here the steps of z have draws of their own, and the rest one, on which ell is a biased estimate.
Read: the authors' code (Cranial-XIX/BOME, toy/toy_convergence.py) and solvers/bome.py of benchopt/benchmark_bilevel.
"""

import torch

from bilevel_book.methods.estimates import lower_batches
from bilevel_book.methods.f2sa import F2SAState
from bilevel_book.methods.losses import losses
from bilevel_core.directions import grad_y
from bilevel_core.schedules import Power, Step
from bilevel_core.solvers.base import COUNT, POSITIVE, STEP, Solver, draw, method, option


@method
class BOME(Solver[F2SAState]):
    state_type = F2SAState

    alpha: Step = option(Power(0.2, p=1 / 2), STEP, "step of x")
    beta: Step = option(Power(0.2, p=1 / 2), STEP, "step of y")
    gamma: Step = option(0.3, STEP, "step of z")
    barrier: float = option(0.5, POSITIVE, "how fast g(x, y) - g(x, z) must fall, in parts of ||q||^2")
    inner: int = option(10, COUNT, "steps of z for one of x and y")

    def init_memory(self, state):
        return F2SAState(**vars(state), z=state.y)

    def update(self, problem, state, generator):
        x, y = state.x, state.y
        state = state.replace(z=y)
        for batch in lower_batches(problem, generator, self.inner):
            state = self.move(problem, state, z=grad_y(problem.lower, x, state.z, batch))
        f, g = losses(problem, x, draw(problem, generator))
        (f_x, f_y), q_x, q_y = f.gradients(y), g.grad_x(y, minus=state.z), g.grad_y(y)
        size = q_x @ q_x + q_y @ q_y
        needed = (self.barrier * size - f_x @ q_x - f_y @ q_y).clamp(min=0)
        ell = torch.where(size > 0, needed / size, size)  # where q = 0 nothing holds f back
        return self.move(problem, state, x=f_x + ell * q_x, y=f_y + ell * q_y).replace(v=ell * (state.z - y))
