"""How the time and the memory of a step grow: `python benchmarks/scaling.py`, about a minute on one core.

Writes results/cost/scaling.csv, the CPU milliseconds and the peak megabytes of a step while one quantity grows and all
else stays, and results/cost/slopes.csv, the slopes of their logarithms over the larger half of the sizes, where the
fixed cost of a step no longer hides its growth. Proportional growth has slope 1, none has slope 0.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from bilevel_book.methods import SOLVERS
from bilevel_book.mnist import HyperRepresentation
from bilevel_core.problem import BilevelProblem, Samples
from clock import machine, peak_megabytes, side_by_side
from steps import with_a_past
from table import keep


class Wide(BilevelProblem):
    """Hyper-cleaning of any size, on noise: dim_x samples with a weight each, a classifier of dim_y unknowns.

        f(x, y) = mean CE(y . row_i, label_i) + ||x||^2 / 200
        g(x, y) = mean sigmoid(x_i) CE(y . row_i, label_i) + ||y||^2 / 200         over the i of a batch

    Sample i has row i modulo 32, so that few rows are kept however many samples there are.
    """

    classes, kept = 10, 32

    def __init__(self, dim_x: int = 1000, dim_y: int = 10_000, batch_size: int = 16):
        generator = torch.Generator().manual_seed(0)
        self.batch_size = batch_size
        self.rows = torch.randn(self.kept, dim_y // self.classes, generator=generator) / (dim_y // self.classes) ** 0.5
        self.labels = torch.randint(self.classes, (dim_x,), generator=generator)

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return torch.zeros(len(self.labels)), torch.zeros(self.classes * self.rows.shape[1])

    def sample(self, generator: torch.Generator) -> Samples:
        return Samples(*torch.randint(len(self.labels), (2, self.batch_size), generator=generator))

    def losses(self, batch: Tensor) -> Callable[[Tensor], Tensor]:
        rows, labels = self.rows.index_select(0, batch % self.kept), self.labels[batch]
        return lambda y: cross_entropy((y.view(self.classes, -1) @ rows.T).T, labels, reduction="none")

    def upper_at(self, x: Tensor, batch: Tensor) -> Callable[[Tensor], Tensor]:
        losses, penalty = self.losses(batch), x @ x / 200
        return lambda y: losses(y).mean() + penalty

    def lower_at(self, x: Tensor, batch: Tensor) -> Callable[[Tensor], Tensor]:
        losses, weights = self.losses(batch), torch.sigmoid(x[batch])
        return lambda y: (weights * losses(y)).mean() + y @ y / 200


class Series(NamedTuple):
    """What grows, over which sizes, for which methods; the problem and the method's options at a size."""

    sizes: tuple[int, ...]
    methods: tuple[str, ...]
    problem: Callable[[int], BilevelProblem]
    options: Callable[[int], dict] = lambda size: {}


SERIES = {
    "dim y": Series((10**3, 10**4, 10**5, 10**6, 10**7), ("FdeHBO",), lambda n: Wide(dim_y=n)),
    "dim y, others": Series((10**3, 10**4, 10**5, 10**6), ("FMBO", "SOBA", "F3SA"), lambda n: Wide(dim_y=n)),
    "dim x": Series((10**3, 10**4, 10**5, 10**6, 10**7), ("FdeHBO", "FMBO", "SOBA"), lambda n: Wide(dim_x=n)),
    "batch": Series((8, 32, 128, 512, 2048), ("FdeHBO", "FMBO", "SOBA"), lambda n: Wide(batch_size=n)),
    "batch, LeNet": Series((16, 32, 64, 128, 256, 512), ("FdeHBO",), lambda n: HyperRepresentation(batch_size=n)),
    "inner steps": Series((1, 4, 16, 64, 256), ("stocBiO", "AmIGO", "F2SA"), lambda n: Wide(), lambda n: {"inner": n}),
    "inner steps, unrolled": Series(
        (1, 4, 16, 64, 256), ("reverse", "reverse, recompute"), lambda n: Wide(), lambda n: {"inner": n, "K": n}
    ),
}


def measured(rounds: int = 5) -> Iterator[dict]:
    """One row for each method and size; the sizes of a series take turns."""
    for grows, (sizes, methods, problem, options) in SERIES.items():
        problems = {size: problem(size) for size in sizes}
        for method in methods:
            steps = {}
            for size in sizes:
                name, *switch = method.split(", ")
                solver = SOLVERS[name](**options(size), **dict.fromkeys(switch, True))
                state = with_a_past(solver, problems[size])
                steps[size] = lambda solver=solver, state=state, size=size: solver.step(problems[size], state)  # noqa: B023
            times = side_by_side(steps, rounds)
            for size, step in steps.items():
                row = {"grows": grows, "method": method, "size": size, "ms": 1e3 * times[size]}
                row["megabytes"] = peak_megabytes(step)
                print(*row.values(), flush=True)
                yield row


def slopes(table: pd.DataFrame) -> pd.DataFrame:
    """Of log ms and log megabytes in log size, over the larger half of the sizes."""

    def of(series: pd.DataFrame) -> pd.Series:
        upper = series.sort_values("size").tail((len(series) + 1) // 2)
        return pd.Series({n: np.polyfit(np.log(upper["size"]), np.log(upper[n]), 1)[0] for n in ("ms", "megabytes")})

    return table.groupby(["grows", "method"], sort=False)[["size", "ms", "megabytes"]].apply(of).reset_index()


def main() -> None:
    torch.set_num_threads(1)
    table = pd.DataFrame(measured())
    print(slopes(table).to_string(index=False, float_format="%.2f"))
    keep({"scaling": table, "slopes": slopes(table)}, "scaling", machine())


if __name__ == "__main__":
    main()
