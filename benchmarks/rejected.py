"""What was tried and left out: `python benchmarks/rejected.py`, writes results/cost/rejected.csv, three minutes.

The directions of FdeHBO at a point of LeNet, with the losses compiled, the images in channels_last, the features in
bfloat16, two threads: each over the plain ones, and how far its answer is. Threads are compared by the clock on the
wall, which is what they are for; all else by CPU time. And a product that torch's compiler gets wrong.
"""

import copy
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from bilevel_core.directions import finite_difference
from bilevel_core.problems import HyperRepresentation
from clock import machine, side_by_side
from table import HEADER, Row, line, store

PART = "FdeHBO on LeNet"


class Bfloat16(HyperRepresentation):
    def predict(self, x: Tensor, y: Tensor, inputs: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return super().predict(x, y, inputs).float()


def in_bfloat16(problem: HyperRepresentation) -> HyperRepresentation:
    other = copy.copy(problem)
    other.__class__ = Bfloat16
    return other


def in_channels_last(problem: HyperRepresentation) -> HyperRepresentation:
    """From the first convolution's result on; the image itself has one channel and no order of channels."""
    other = copy.copy(problem)
    other.outer = copy.deepcopy(problem.outer)
    first = next(layer for layer in other.outer.module.modules() if isinstance(layer, nn.Conv2d))
    first.register_forward_hook(lambda layer, inputs, out: out.contiguous(memory_format=torch.channels_last))
    return other


def compiled(problem: HyperRepresentation) -> HyperRepresentation:
    """The same problem with both losses compiled, for fixed shapes."""
    other = copy.copy(problem)
    other.upper, other.lower = (torch.compile(loss, dynamic=False) for loss in (problem.upper, problem.lower))
    return other


def on_lenet(rounds: int = 9) -> Iterator[Row]:
    problem = HyperRepresentation()
    generator = torch.Generator().manual_seed(0)
    x, y = problem.start(generator)
    v = torch.randn(y.shape, generator=generator) / len(y) ** 0.5
    samples = problem.sample(generator)

    def directions(of: HyperRepresentation) -> Callable[[], Tensor]:
        return lambda: finite_difference(of, x, y + v, v, samples, 0.1).x

    candidates = {
        "plain": directions(problem),
        "channels_last": directions(in_channels_last(problem)),
        "bfloat16": directions(in_bfloat16(problem)),
        "losses compiled": directions(compiled(problem)),
    }
    begin = time.perf_counter()
    candidates["losses compiled"]()
    compiling = f"after {time.perf_counter() - begin:.0f} s of compiling"
    times, answer = side_by_side(candidates, rounds), candidates["plain"]()
    for name in list(candidates)[1:]:
        far = ((candidates[name]() - answer).norm() / answer.norm()).item()
        note = compiling if "compiled" in name else ""
        yield Row.ratio(PART, name, times[name], "plain", times["plain"], difference=far, note=note)

    def two_threads() -> None:
        torch.set_num_threads(2)
        candidates["plain"]()
        torch.set_num_threads(1)

    wall = side_by_side({"one": candidates["plain"], "two": two_threads}, rounds, clock=time.perf_counter)
    yield Row.ratio(PART, "two threads, wall clock", wall["two"], "one thread", wall["one"])


def compiled_product_error(dim_x: int = 1000, batch: int = 10, seed: int = 0) -> float:
    """The relative error of a compiled J v, for g(x, y) = sum over the batch of x_i y_k: J v holds v at the places i.

    torch 2.13 adds v into a vector of zeros that it takes for writable, though all of its entries are one number in
    memory, so every entry of the result is the sum of v. Without the compiler, and with `backend="aot_eager"`, the
    error is 0. pytorch/pytorch issue 188084 describes the same fault for a gradient under vmap.
    """
    generator = torch.Generator().manual_seed(seed)
    x, places = torch.randn(dim_x, generator=generator), torch.randperm(dim_x, generator=generator)[:batch]
    y, v = torch.randn(2, batch, generator=generator)

    def product(x: Tensor, y: Tensor, v: Tensor, places: Tensor) -> Tensor:
        in_x = torch.func.grad(lambda x, y: x[places] @ y)
        return torch.func.jvp(lambda y: in_x(x, y), (y,), (v,))[1]

    right = torch.zeros_like(x).index_add(0, places, v)
    return ((torch.compile(product)(x, y, v, places) - right).norm() / right.norm()).item()


def main() -> None:
    torch.set_num_threads(1)
    print(HEADER)
    rows = []
    for row in on_lenet():
        print(line(row), flush=True)
        rows.append(row)
    error = compiled_product_error()
    rows.append(Row("compiled jvp of grad", "J v", "the right one", error, "", difference=error))
    print(line(rows[-1]))
    store(rows, "rejected", machine())


if __name__ == "__main__":
    main()
