"""Which tool for which problem: `python benchmarks/which_tool.py`, two minutes, writes results/cost/which_tool.csv.

CPU seconds of steps until the upper loss, on all its data and at the y that the tool has, has made half or nine tenths
of the gain: from the loss with y fitted to the first x, down to the lowest loss of all runs of the problem. For each
tool the quickest of four rates counts: of Adam for x, while y and v have the steps that `suggest` finds (L-BFGS has no
rate). All runs of a problem take turns.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product, zip_longest
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from bilevel_book.digits import features
from bilevel_book.mnist import load_mnist
from bilevel_book.tasks import Penalties, SmallCleaning
from bilevel_core import SOLVERS, Adam, BilevelProblem, Samples, from_modules, objective, refit, suggest
from clock import machine
from table import keep

RATES = (0.01, 0.05, 0.2, 1.0)
ROWS = 100  # looks at the loss in a run
SHARES = (0.5, 0.9)  # of the gain
Row = tuple[float, float]  # seconds, loss
NEVER: Row = float("inf"), -float("inf")


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
    "small, no noise": (AllTumours, 1.0),
    "noisy, convex": (SmallCleaning, 2.0),
    "noisy, features": (learned_features, 3.0),
}


def by_objective(problem: BilevelProblem, rate: float, make: Callable[..., Any]) -> Iterator[tuple[Tensor, Tensor]]:
    """(x, y) at the start and after each step of an optimiser on Phi."""
    x, y = problem.start(torch.Generator().manual_seed(0))
    phi, x = objective(problem), x.clone().requires_grad_()
    optimiser = make([x], rate)

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = phi(x)
        value.backward()
        return value

    yield x.detach(), y
    while True:
        optimiser.step(closure)
        yield x.detach(), phi.y


def by_steps(problem: BilevelProblem, rate: float, name: str) -> Iterator[tuple[Tensor, Tensor]]:
    """(x, y) at the start and after each step of a single-loop method."""
    solver = replace(suggest(problem, name).solver, alpha=Adam(rate))
    state = solver.init(problem)
    while True:
        yield state.x, state.y
        state = solver.step(problem, state)


def lbfgs(variables: list[Tensor], rate: float) -> torch.optim.Optimizer:
    return torch.optim.LBFGS(variables, max_iter=2, line_search_fn="strong_wolfe")


TOOLS: dict[str, tuple[Callable[..., Any], tuple[float, ...]]] = {
    "objective + L-BFGS": (partial(by_objective, make=lbfgs), (1.0,)),
    "objective + Adam": (partial(by_objective, make=torch.optim.Adam), RATES),
    **{name: (partial(by_steps, name=name), RATES) for name in SOLVERS if name != "alternating"},
}


def rows_of(problem: BilevelProblem, steps: Iterator[tuple[Tensor, Tensor]], seconds: float) -> Iterator[Row]:
    """The loss along a run, most often at its start. `suggest` and the looks at the loss cost nothing."""
    x, y = next(steps)
    spent = 0.0
    for due in (seconds * (k / ROWS) ** 2 for k in range(1, ROWS + 1)):
        began = time.process_time()
        while spent + time.process_time() - began < due:
            x, y = next(steps)
        spent += time.process_time() - began
        yield spent, upper_loss(problem, x, y)
        if not x.isfinite().all():
            return


def upper_loss(problem: BilevelProblem, x: Tensor, y: Tensor) -> float:
    with torch.no_grad():
        return problem.upper(x, y, problem.full().upper).item()


def main() -> None:
    torch.set_num_threads(1)
    table = []
    for title, (make, seconds) in PROBLEMS.items():
        problem = make()
        names = [(tool, rate) for tool, (_, rates) in TOOLS.items() for rate in rates]
        runs = [rows_of(problem, TOOLS[tool][0](problem, rate), seconds) for tool, rate in names]
        turns = zip_longest(*runs, fillvalue=(float("inf"), float("inf")))  # a look at each, and the next at each
        rows = dict(zip(names, zip(*turns, strict=True), strict=True))
        x = problem.start(torch.Generator().manual_seed(0))[0]
        start = upper_loss(problem, x, refit(problem, x).y)
        lowest = min(loss for row in rows.values() for _, loss in row)
        for share, (tool, (_, rates)) in product(SHARES, TOOLS.items()):
            level = start - share * (start - lowest)
            times = {rate: min(at for at, loss in (*rows[tool, rate], NEVER) if loss <= level) for rate in rates}
            rate = min(times, key=times.__getitem__)
            table.append((title, share, tool, times[rate], rate, level, start))
            print(
                f"{title:16} {share} {tool:19} {times[rate]:7.3f} s, rate {rate:g}, to {level:.4f} of {start:.4f}",
                flush=True,
            )
    columns = ["problem", "share", "tool", "seconds", "rate", "level", "start"]
    keep({"which_tool": pd.DataFrame(table, columns=columns)}, "which_tool", machine())


if __name__ == "__main__":
    main()
