"""Which tool for which problem: `python benchmarks/which_tool.py`, ten minutes, writes results/cost/which_tool.csv.

CPU seconds until the upper loss, on all its data and at the y that the tool has, falls below a level. For each tool the
quickest of six rates counts: of Adam for x, while y and v have the steps that `suggest` finds (L-BFGS has no rate). The
level is the lowest loss of all runs of the problem, and a tenth of the way from there to the start.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from bilevel_book.digits import features
from bilevel_book.mnist import load_mnist
from bilevel_book.tasks import Penalties, SmallCleaning
from bilevel_core import SOLVERS, Adam, BilevelProblem, Samples, from_modules, objective, suggest
from clock import machine
from table import keep

RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
ROWS = 60  # from one look at the loss to the next: a sixtieth of the seconds
Row = tuple[float, float]  # seconds, loss


class AllTumours(Penalties):
    """A penalty for each of 30 features, all data at each step: no noise."""

    def sample(self, generator: torch.Generator) -> Samples:
        return self.full()


def learned_features() -> BilevelProblem:
    """A hidden layer as x and a classifier on top of it as y, 2000 digits for each, batches of 64."""
    torch.manual_seed(0)
    mnist = load_mnist()
    upper, lower = (
        (features(mnist.train_images[rows]), mnist.train_labels[rows]) for rows in (slice(0, 2000), slice(2000, 4000))
    )
    outer, inner = nn.Sequential(nn.Linear(197, 64), nn.Tanh()), nn.Linear(64, 10)
    return from_modules(outer, inner, nn.functional.cross_entropy, upper, lower, batch_size=64, ridge=1e-3)


PROBLEMS: dict[str, tuple[Callable[[], BilevelProblem], float]] = {  # with the seconds of a run
    "small, no noise": (AllTumours, 3.0),
    "noisy, convex": (SmallCleaning, 8.0),
    "noisy, features": (learned_features, 12.0),
}


def by_objective(problem: BilevelProblem, rate: float, make: Callable[..., Any]) -> Iterator[tuple[Tensor, Tensor]]:
    """(x, y) after each step of an optimiser on Phi."""
    phi, x = objective(problem), problem.start(torch.Generator().manual_seed(0))[0].clone().requires_grad_()
    optimiser = make([x], rate)

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = phi(x)
        value.backward()
        return value

    while True:
        optimiser.step(closure)
        yield x.detach(), phi.y


def by_steps(problem: BilevelProblem, rate: float, name: str) -> Iterator[tuple[Tensor, Tensor]]:
    """(x, y) after each step of a single-loop method."""
    solver = replace(suggest(problem, name).solver, alpha=Adam(rate))
    state = solver.init(problem)
    while True:
        state = solver.step(problem, state)
        yield state.x, state.y


def lbfgs(variables: list[Tensor], rate: float) -> torch.optim.Optimizer:
    return torch.optim.LBFGS(variables, max_iter=2, line_search_fn="strong_wolfe")


TOOLS: dict[str, tuple[Callable[..., Any], tuple[float, ...]]] = {
    "objective + L-BFGS": (partial(by_objective, make=lbfgs), (1.0,)),
    "objective + Adam": (partial(by_objective, make=torch.optim.Adam), RATES),
    **{name: (partial(by_steps, name=name), RATES) for name in SOLVERS if name != "alternating"},
}


def rows_of(problem: BilevelProblem, steps: Iterator[tuple[Tensor, Tensor]], seconds: float) -> list[Row]:
    """The loss along a run, from its start on; looks at it cost nothing."""
    full = problem.full().upper

    def loss(x: Tensor, y: Tensor) -> float:
        with torch.no_grad():
            return problem.upper(x, y, full).item()

    rows, spent = [(0.0, loss(*problem.start(torch.Generator().manual_seed(0))))], 0.0
    while spent < seconds and rows[-1][1] < 1e6:
        due = spent + seconds / ROWS
        began = time.process_time()
        while time.process_time() - began < due - spent:
            x, y = next(steps)
        spent += time.process_time() - began
        rows.append((spent, loss(x, y)))
    return rows


def main() -> None:
    torch.set_num_threads(1)
    table = []
    for title, (make, seconds) in PROBLEMS.items():
        problem = make()
        for steps, _ in TOOLS.values():
            next(steps(problem, 0.01))  # what only a first step costs
        runs = {
            (tool, rate): rows_of(problem, steps(problem, rate), seconds)
            for tool, (steps, rates) in TOOLS.items()
            for rate in rates
        }
        start = next(iter(runs.values()))[0][1]
        lowest = min(loss for rows in runs.values() for _, loss in rows)
        level = lowest + 0.1 * (start - lowest)
        for tool, (_, rates) in TOOLS.items():
            reached = {
                rate: min((at for at, loss in runs[tool, rate] if loss <= level), default=float("inf"))
                for rate in rates
            }
            rate = min(reached, key=reached.__getitem__)
            table.append((title, tool, reached[rate], rate, level, start))
            print(
                f"{title:18}{tool:20}{reached[rate]:8.2f} s, rate {rate:g}, to {level:.3f} from {start:.3f}", flush=True
            )
    columns = ["problem", "tool", "seconds", "rate", "level", "start"]
    keep({"which_tool": pd.DataFrame(table, columns=columns)}, "which_tool", machine())


if __name__ == "__main__":
    main()
