"""BOME: x and y go down f as long as g comes down too: a penalty whose multiplier is computed anew at every step.

Ye, Liu, Wright, Stone, Liu (2022), "BOME! Bilevel optimization made easy: a simple first-order approach", NeurIPS,
Algorithm 1.

    z = y after `inner` steps of gamma along grad_y g(x, .)
    q = (grad_x g(x, y) - grad_x g(x, z), grad_y g(x, y))      the gradient of g(x, y) - g(x, z), z held
    ell = max(0, barrier ||q||^2 - <grad f(x, y), q>) / ||q||^2
    (x, y) <- (x, y) - (alpha, beta) (grad f(x, y) + ell q)    so that g(x, y) - g(x, z) falls

Cost of a step: inner + 5 gradients. v is reported as ell (z - y). The paper has no noise; here z has draws of its own,
and the rest one draw, which makes ell a biased estimate.
"""

import torch
from torch import Generator

from bilevel_core.directions import grad_y, losses
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Step
from bilevel_core.solvers.solver import COUNT, POSITIVE, Solver, State, draw, lower_batches, method, option


@method
class BOME(Solver[State]):
    alpha: Step = option(Power(0.2, p=1 / 2), POSITIVE, "step of x")
    beta: Step = option(Power(0.2, p=1 / 2), POSITIVE, "step of y")
    gamma: float = option(0.3, POSITIVE, "step of z")
    barrier: float = option(0.5, POSITIVE, "how fast g(x, y) - g(x, z) must fall, in parts of ||q||^2")
    inner: int = option(10, COUNT, "steps of z for one of x and y")

    def update(self, problem: BilevelProblem, state: State, generator: Generator) -> State:
        x, y = state.x, state.y
        z = y
        for batch in lower_batches(problem, generator, self.inner):
            z = z - self.gamma * grad_y(problem.lower, x, z, batch)
        f, g = losses(problem, x, draw(problem, generator))
        (f_x, f_y), q_x, q_y = f.gradients(y), g.grad_x(y, minus=z), g.grad_y(y)
        size = q_x @ q_x + q_y @ q_y
        ell = torch.where(size > 0, (self.barrier * size - f_x @ q_x - f_y @ q_y).clamp(min=0) / size, size)
        return self.move(problem, state, x=f_x + ell * q_x, y=f_y + ell * q_y).moved(v=ell * (z - y))
