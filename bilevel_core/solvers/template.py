"""Add your own method in twenty lines: copy this file, change three places, and write one line in `__init__.py`.

A method is a frozen dataclass with options, and a `step` that makes the next state and changes nothing.

1. Options: a default and what is allowed. A float may always be a schedule; `self.at(t, ...)` gives its value, checked.
2. Directions: any of `exact`, `finite_difference`, `grad_x`, `grad_y`, `hessian_vector`, `jacobian_vector`, on what
   you `draw`. They count their calls themselves.
3. The new state. What else your method must remember goes into a subclass of State, filled by `_first` (see fsla.py).

Then `"MyMethod": MyMethod` in SOLVERS, and the tests for all methods run it too. As an example, this one is SOBA with
v moved twice a step.
"""

from dataclasses import dataclass, replace

from bilevel_core.directions import exact
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.solver import POSITIVE, Solver, State, draw, generator_at, option


@dataclass(frozen=True, kw_only=True)
class MyMethod(Solver):
    alpha: Rate = option(Power(0.2, p=1 / 2), POSITIVE)  # 1
    beta: Rate = option(Power(0.5, p=1 / 2), POSITIVE)

    def step(self, problem: BilevelProblem, state: State) -> State:
        generator, x, y, v = generator_at(state), state.x, state.y, state.v
        alpha, beta = self.at(state.t, "alpha", "beta")
        for _ in range(2):
            d = exact(problem, x, y, v, draw(problem, generator))  # 2
            v = v - beta * d.v
        return replace(  # 3
            state, x=x - alpha * d.x, y=y - beta * d.y, v=v, t=state.t + 1, rng=generator.get_state()
        )
