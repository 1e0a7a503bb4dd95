"""What was tried and left out: `python benchmarks/rejected.py`, writes results/cost/rejected.csv, about a minute.

The directions of FdeHBO at a point of LeNet, with the features compiled, the images in channels_last, the features in
bfloat16, two threads: each over the plain ones, and how far its answer is.
FMBO's directions on hyper-cleaning as a traced graph. A step with ten million unknowns when malloc may not map memory.
And a product that torch's compiler gets wrong. Threads are compared by the clock on the wall, all else by CPU time.
"""

import copy
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

import floors
from bilevel_book.mnist import HyperCleaning, HyperRepresentation
from bilevel_core.directions import Directions, Point, exact, finite_difference
from bilevel_core.problem import Samples
from clock import ROOT, machine, side_by_side
from table import HEADER, Row, line, store

PART = "FdeHBO on LeNet"


class Bfloat16(HyperRepresentation):
    def features(self, x: Tensor, inputs: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return super().features(x, inputs).float()


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
    """The same problem with its features compiled, for fixed shapes."""
    other = copy.copy(problem)
    other.features = torch.compile(problem.features, dynamic=False)
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
        "features compiled": directions(compiled(problem)),
    }
    begin = time.perf_counter()
    candidates["features compiled"]()
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


def traced(rounds: int = 200) -> Iterator[Row]:
    """FMBO's directions at two points of hyper-cleaning, as they are and as a traced graph, over bare products."""
    problem, generator = HyperCleaning(), torch.Generator().manual_seed(0)
    points = [Point(*problem.start(generator), problem.start(generator)[1]) for _ in range(2)]
    samples = problem.sample(generator)

    def directions(a: Point, b: Point, samples: Samples) -> list[Directions]:
        return [exact(problem, *a, samples), exact(problem, *b, samples)]

    graph = make_fx(directions)(*points, samples)
    for node in graph.graph.find_nodes(op="call_function", target=torch.ops.aten.detach.default):
        node.replace_all_uses_with(node.args[0])
    graph.graph.eliminate_dead_code()
    graph.recompile()
    replay = torch.inference_mode()(graph.forward)
    calls = {
        "two points": lambda: directions(*points, samples),
        "traced by make_fx": lambda: replay(*points, samples),
        "bare": lambda: [floors.bare_products(problem, p.y, p.v, samples) for p in points],
    }
    times = side_by_side(calls, rounds)
    right, *answers = (torch.cat([torch.cat(d) for d in call()]) for call in list(calls.values())[:2])
    for name, answer in zip(calls, (right, *answers), strict=False):
        far = ((answer - right).norm() / right.norm()).item()
        yield Row.ratio("FMBO's directions", name, times[name], "bare_products twice", times["bare"], difference=far)


LARGE_STEP = """
import json, torch, steps, scaling
from clock import side_by_side
from bilevel_book.methods import SOLVERS
torch.set_num_threads(1)
problem, solver = scaling.Wide(dim_y=10**7), SOLVERS["FdeHBO"]()
state = steps.with_a_past(solver, problem)
print(json.dumps(side_by_side({"step": lambda: solver.step(problem, state)}, 5)["step"]))
"""


def allocator() -> Iterator[Row]:
    """glibc maps every tensor above 32 MB anew and faults its pages in; forbidden to, it keeps them."""
    keep = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40), "MALLOC_TOP_PAD_": str(2**26)}
    seconds = []
    for environment in ({}, keep):
        done = subprocess.run(
            [sys.executable, "-c", LARGE_STEP], env=os.environ | environment, cwd=ROOT / "benchmarks",
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        seconds.append(json.loads(done.stdout))
    default, kept = seconds
    yield Row.ratio("FdeHBO, dim y = 10^7", "malloc without mmap", kept, "malloc as it is", default)


def compiled_product_error(dim_x: int = 1000, batch: int = 10, seed: int = 0, compiling: bool = True) -> float:
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
    found = (torch.compile(product) if compiling else product)(x, y, v, places)
    return ((found - right).norm() / right.norm()).item()


def compiler() -> Iterator[Row]:
    for name, compiling in {"eager": False, "compiled": True}.items():
        error = compiled_product_error(compiling=compiling)
        yield Row("jvp of a gradient", name, "the right J v", error, "", difference=error)


def main() -> None:
    torch.set_num_threads(1)
    print(HEADER)
    rows = []
    for measure in (traced, on_lenet, allocator, compiler):
        for row in measure():
            print(line(row), flush=True)
            rows.append(row)
    store(rows, "rejected", machine())


if __name__ == "__main__":
    main()
