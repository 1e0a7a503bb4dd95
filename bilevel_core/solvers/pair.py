"""What the methods share that move x and y together and estimate the hypergradient anew at every point.

An estimate at (x, y) is a pair: G for x, which holds an approximation of v* made on the spot, and grad_y g for y.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from bilevel_core.directions import grad_y
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.series import SeriesSamples, draw_series, neumann, surrogate
from bilevel_core.solvers.solver import COUNT, POSITIVE, Solver, State, option


class Pair(NamedTuple):
    """A point (x, y), or an estimate for each of the two."""

    x: Tensor
    y: Tensor


@dataclass(frozen=True)
class PairState(State):
    """Also the point where the estimates h were last taken, and h."""

    before: Pair
    h: Pair


@dataclass(frozen=True, kw_only=True)
class PairMethod(Solver):
    alpha: Rate = option(Power(0.2), POSITIVE)
    beta: Rate = option(Power(0.5), POSITIVE)
    eta_series: float = option(0.3, POSITIVE)

    def _first(self, problem: BilevelProblem, state: State) -> PairState:
        zero = Pair(torch.zeros_like(state.x), torch.zeros_like(state.y))
        return PairState(**vars(state), before=Pair(state.x, state.y), h=zero)

    @abstractmethod
    def draw(self, problem: BilevelProblem, generator: torch.Generator) -> SeriesSamples:
        """Everything random in one estimate, so that it can be made again at another point."""

    @abstractmethod
    def solve(self, problem: BilevelProblem, x: Tensor, y: Tensor, f_y: Tensor, samples: SeriesSamples) -> Tensor:
        """An estimate of H(x, y)^-1 f_y."""

    def estimates(self, problem: BilevelProblem, at: Pair, samples: SeriesSamples) -> tuple[Pair, Tensor]:
        """(G, grad_y g) at one point, and the v in G."""
        v = self.solve(problem, *at, grad_y(problem.upper, *at, samples.first.upper), samples)
        g_y = grad_y(problem.lower, *at, samples.first.lower)
        return Pair(surrogate(problem, *at, v, samples.first), g_y), v


@dataclass(frozen=True, kw_only=True)
class NeumannPair(PairMethod):
    """v by a Neumann sum of Q + 1 terms."""

    Q: int = option(15, COUNT)

    def draw(self, problem: BilevelProblem, generator: torch.Generator) -> SeriesSamples:
        return draw_series(problem, generator, self.Q)

    def solve(self, problem: BilevelProblem, x: Tensor, y: Tensor, f_y: Tensor, samples: SeriesSamples) -> Tensor:
        return neumann(problem, x, y, f_y, samples.hessians, self.eta_series)
