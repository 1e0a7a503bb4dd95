"""How much memory a step takes when x and y are large: `python benchmarks/memory.py`, about two minutes on one core.

Writes results/cost/memory.csv: the vectors that a method keeps, and how far the memory of the process rises in a step
above them, both in megabytes and as multiples of the parameters, (dim x + dim y) numbers of four bytes; and
results/cost/activations.csv: the same rise for FdeHBO on a deep network, with and without activation checkpointing;
and results/cost/precision.csv: the error of H v by finite differences, in float32 and with products in bfloat16.
"""

import ctypes
from collections.abc import Callable, Iterator
from itertools import product

import pandas as pd
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from bilevel_book.methods import SOLVERS
from bilevel_core.directions import hessian_vector
from bilevel_core.problem import BilevelProblem, Samples
from bilevel_core.solvers import State
from clock import machine, peak_megabytes, side_by_side
from scaling import Wide
from steps import with_a_past
from table import keep

SIZES = (10**5, 10**6, 10**7)
METHODS = ("FdeHBO", "FMBO", "SOBA", "F2SA", "F3SA")
BATCHES = (64, 512)


class Towers(BilevelProblem):
    """Two towers of square layers, h -> h + tanh(W h) / depth: x holds the weights of the one below, y of that above.

        f(x, y) = mean (tower_y(tower_x(input)) - target)^2,     g(x, y) = the same on other rows + ||y||^2 / 200

    With `recompute`, `segment` layers at a time are computed again in the backward pass instead of being kept: weights
    are handed to `checkpoint` as arguments, so that it computes at the x and y that it saw. Only gradients are asked of
    it, which is all that finite differences need.
    """

    segment = 8

    def __init__(self, dim: int, depth: int = 4, batch_size: int = 16, recompute: bool = False):
        self.depth, self.width, self.recompute = depth, int((dim / depth) ** 0.5), recompute
        generator = torch.Generator().manual_seed(0)
        self.batch_size = batch_size
        self.rows, self.targets = torch.randn(2, 2 * batch_size, self.width, generator=generator)

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        shape = self.depth * self.width**2
        return tuple(torch.randn(shape, generator=generator) / self.width**0.5 for _ in range(2))

    def sample(self, generator: torch.Generator) -> Samples:
        return Samples(slice(0, self.batch_size), slice(self.batch_size, None))

    def tower(self, weights: Tensor, h: Tensor) -> Tensor:
        layers = weights.view(-1, self.width, self.width)
        if not self.recompute:
            return self.layers(layers, h)
        for segment in layers.split(self.segment):
            h = checkpoint(self.layers, segment, h, use_reentrant=False)
        return h

    def layers(self, layers: Tensor, h: Tensor) -> Tensor:
        for weight in layers:
            h = h + torch.tanh(h @ weight) / self.depth
        return h

    def upper_at(self, x: Tensor, batch: slice) -> Callable[[Tensor], Tensor]:
        features, targets = self.tower(x, self.rows[batch]), self.targets[batch]
        return lambda y: (self.tower(y, features) - targets).square().mean()

    def lower_at(self, x: Tensor, batch: slice) -> Callable[[Tensor], Tensor]:
        loss = self.upper_at(x, batch)
        return lambda y: loss(y) + y @ y / 200


def megabytes(state: State) -> float:
    """Of the vectors that a method keeps from one step to the next; a vector under two names counts once."""
    kept = {leaf.data_ptr(): leaf.nbytes for leaf in tree_leaves([*vars(state).values()]) if isinstance(leaf, Tensor)}
    return sum(kept.values()) / 2**20


def by_size() -> Iterator[dict]:
    """One row for each problem, size and method: x as large as y, and an x of a thousand weights of data."""
    for size, (name, make) in product(SIZES, {"towers": Towers, "weights": lambda n: Wide(dim_y=n)}.items()):
        problem = make(size)
        for method in METHODS:
            solver = SOLVERS[method](**({"inner": 1} if method == "F2SA" else {}))
            state = solver.step(problem, with_a_past(solver, problem))  # F3SA tells y and z apart from the second on
            dims = {"dim_x": len(state.x), "dim_y": len(state.y)}
            parameters = sum(dims.values()) * 4 / 2**20
            row = {"problem": name, "method": method, **dims, "parameters": parameters, "state": megabytes(state)}
            row["rise"] = peak_megabytes(lambda solver=solver, state=state: solver.step(problem, state))  # noqa: B023
            row["times"] = (row["state"] + row["rise"]) / parameters
            print(*row.values(), flush=True)
            yield row


def by_batch(depth: int = 32, width: int = 128, rounds: int = 2) -> Iterator[dict]:
    """FdeHBO on two deep towers: where activations outweigh weights, to compute them again pays."""
    solver = SOLVERS["FdeHBO"]()
    for batch_size in BATCHES:
        steps = {}
        for recompute in (False, True):
            problem = Towers(depth * width**2, depth, batch_size, recompute)
            state = with_a_past(solver, problem)
            steps[recompute] = lambda problem=problem, state=state: solver.step(problem, state)
        times = side_by_side(steps, rounds)
        parameters = 2 * depth * width**2 * 4 / 2**20
        for recompute, step in steps.items():
            row = {"batch": batch_size, "recompute": recompute, "parameters": parameters}
            row |= {"rise": peak_megabytes(step), "ms": 1e3 * times[recompute]}
            print(*row.values(), flush=True)
            yield row


def by_precision() -> Iterator[dict]:
    """The error of H v, in parts of H v, when y is moved by a share of its length; the share 0 is the exact product."""
    problem = Towers(10_000, batch_size=64)
    x, y = problem.start(torch.Generator().manual_seed(0))
    v = torch.randn(y.shape, generator=torch.Generator().manual_seed(1))
    batch, v = problem.sample(torch.Generator()).lower, v * (y.norm() / v.norm())
    exact = hessian_vector(problem, x, y, v, batch)
    for arithmetic in ("float32", "bfloat16"):
        for share in (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0):
            with torch.autocast("cpu", torch.bfloat16, enabled=arithmetic == "bfloat16"):
                found = hessian_vector(problem, x, y, v, batch, share or None)
            yield {"arithmetic": arithmetic, "share": share, "error": ((found - exact).norm() / exact.norm()).item()}


def main() -> None:
    torch.set_num_threads(1)
    # Blocks of 64 kB and more go back to the system when they are freed: what glibc keeps for later is not counted.
    ctypes.CDLL("libc.so.6").mallopt(-3, 2**16)
    tables = {"precision": by_precision(), "memory": by_size(), "activations": by_batch()}
    keep({name: pd.DataFrame(rows) for name, rows in tables.items()}, "memory", machine())


if __name__ == "__main__":
    main()
