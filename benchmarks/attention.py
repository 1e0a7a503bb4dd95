"""When differences of gradients pay: `python benchmarks/attention.py`, about seven minutes on one core.

The problem is data mixing (`bilevel_book.mixing`) on random text: x has the logits of five domains, y the weights of a
network with two blocks: of fused or of plain attention, of either with its blocks computed again in the backward pass,
of convolutions, or of MLPs. A batch has 2048 characters, however long its rows are. Writes

    results/cost/attention.csv      milliseconds and peak megabytes of a step, over the kind, the length and the width
    results/cost/attention.json     the machine, and the error of H v and of J v against delta, in float32 and bfloat16

A method that needs second derivatives of the fused kernel, of which torch has none, has no numbers there. On plain
attention differences are measured on rows of up to 512 characters, since beyond these nobody would choose it for them.
"""

import ctypes
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from bilevel_book.mixing import CHARACTERS, Transformer
from bilevel_core import SOLVERS
from bilevel_core.directions import hessian_vector, jacobian_vector
from bilevel_core.problem import BilevelProblem, Samples
from clock import machine, peak_megabytes, side_by_side
from steps import with_a_past
from table import keep

CHARACTERS_IN_A_BATCH, DOMAINS, WIDTH, LENGTH = 2048, 5, 64, 512
METHODS: dict[str, Callable[[], Any]] = {
    "FdeHBO": SOLVERS["FdeHBO"],
    "FdeHBO, one graph": partial(SOLVERS["FdeHBO"], one_graph=True),
    "FMBO": SOLVERS["FMBO"],
    "SOBA, differences": partial(SOLVERS["SOBA"], delta=0.01),
    "SOBA": SOLVERS["SOBA"],
}
KINDS = ("fused", "plain")  # at every size; the others are measured at one
OTHERS = ("fused, recomputed", "plain, recomputed", "convolution", "MLP")
LENGTHS, WIDTHS = (128, 256, 512, 1024, 2048), (32, 128)


class Residual(nn.Module):
    """h + part(h), of one kind or another, on rows of characters by width."""

    def __init__(self, kind: str, width: int):
        super().__init__()
        middle = (
            nn.Conv1d(width, 4 * width, 3, padding="same") if kind == "convolution" else nn.Linear(width, 4 * width)
        )
        self.norm, self.up, self.down = nn.LayerNorm(width), middle, nn.Linear(4 * width, width)

    def forward(self, h: Tensor) -> Tensor:
        inner = self.norm(h)
        inner = self.up(inner.mT).mT if isinstance(self.up, nn.Conv1d) else self.up(inner)
        return h + self.down(torch.nn.functional.gelu(inner))


class Recomputed(nn.Module):
    """A block whose inside is computed again in the backward pass, at the weights that it saw."""

    def __init__(self, block: nn.Module):
        super().__init__()
        self.block = block

    def forward(self, h: Tensor) -> Tensor:
        weights = dict(self.block.named_parameters())
        return checkpoint(lambda h: functional_call(self.block, weights, (h,)), h, use_reentrant=False)


class RandomText(BilevelProblem):
    def __init__(self, kind: str = "plain", length: int = LENGTH, width: int = WIDTH):
        torch.manual_seed(0)
        self.length, self.net = length, Transformer(width, length, fused=kind.startswith("fused"))
        blocks = [*self.net.blocks] if kind[0] in "fp" else [Residual(kind, width) for _ in self.net.blocks]
        self.net.blocks = nn.Sequential(*map(Recomputed, blocks) if kind.endswith("recomputed") else blocks)
        self.shapes = {name: weight.shape for name, weight in self.net.named_parameters()}

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return torch.zeros(DOMAINS), nn.utils.parameters_to_vector(self.net.parameters()).detach()

    def sample(self, generator: torch.Generator) -> Samples:
        shape = CHARACTERS_IN_A_BATCH // self.length, self.length + 1
        return Samples(*torch.randint(len(CHARACTERS), (2, *shape), generator=generator))

    def losses(self, y: Tensor, rows: Tensor) -> Tensor:
        parts = y.split([shape.numel() for shape in self.shapes.values()])
        weights = {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}
        scores = functional_call(self.net, weights, (rows[:, :-1],))
        return cross_entropy(scores.transpose(1, 2), rows[:, 1:], reduction="none").mean(1)

    def upper(self, x: Tensor, y: Tensor, rows: Tensor) -> Tensor:
        return self.losses(y, rows).mean()

    def lower(self, x: Tensor, y: Tensor, rows: Tensor) -> Tensor:
        of = torch.arange(len(rows)) % DOMAINS
        return (DOMAINS * x.softmax(0)[of] * self.losses(y, rows)).mean() + y @ y / 200


def networks(lengths: tuple[int, ...], widths: tuple[int, ...]) -> Iterator[tuple[dict, dict[str, Callable]]]:
    """Each network, and a step on it of each method that can take one."""
    sizes = [(length, WIDTH) for length in lengths] + [(LENGTH, width) for width in widths]
    cases = [*product(KINDS, sizes), *product(OTHERS, [(LENGTH, WIDTH)] if widths else [])]
    for kind, (length, width) in cases:
        problem, calls = RandomText(kind, length, width), {}
        for name, make in METHODS.items():
            solver = make()
            if kind == "plain" and length > LENGTH and solver.delta is not None:
                continue
            try:
                state = with_a_past(solver, problem)
            except NotImplementedError:  # the fused kernel has no second derivative
                continue
            calls[name] = partial(solver.step, problem, state)
        yield {"kind": kind, "length": length, "width": width}, calls


def steps(lengths: tuple[int, ...] = LENGTHS, widths: tuple[int, ...] = WIDTHS, rounds: int = 1) -> pd.DataFrame:
    """A row for each method on each network; the methods take turns."""
    times, memory = [], []
    for about, calls in networks(lengths, widths):
        found = side_by_side(calls, rounds)
        times += [about | {"method": name, "ms": 1e3 * found.get(name, torch.nan)} for name in METHODS]
        print(*about.values(), {name: f"{seconds:.3g} s" for name, seconds in found.items()}, flush=True)
    # From here freed blocks of 64 kB go back to the system, so that what glibc keeps is not counted; that is slow.
    ctypes.CDLL("libc.so.6").mallopt(-3, 2**16)
    for about, calls in networks(lengths, widths):
        memory += [peak_megabytes(calls[name]) if name in calls else torch.nan for name in METHODS]
        print(*about.values(), memory[-len(METHODS) :], flush=True)
    return pd.DataFrame(times).assign(megabytes=memory)


def errors_of_products() -> Iterator[dict]:
    """Errors in parts of the exact product in float64, at y = y_0 and ||v|| = 1; delta 0 is the exact product."""
    problem = RandomText("plain", 256)
    x, y = problem.start(torch.Generator())
    v = torch.randn(y.shape, generator=torch.Generator().manual_seed(1))
    v, batch = v / v.norm(), problem.sample(torch.Generator().manual_seed(2)).lower
    point = problem, x, y, v, batch
    truth = [f(problem, x.double(), y.double(), v.double(), batch) for f in (hessian_vector, jacobian_vector)]
    for arithmetic, delta in product(("float32", "bfloat16"), (0.0, *(10.0**k for k in range(-5, 2)))):
        with torch.autocast("cpu", torch.bfloat16, enabled=arithmetic == "bfloat16"):
            found = [f(*point, delta or None) for f in (hessian_vector, jacobian_vector)]
        errors = [((a - b).norm() / b.norm()).item() for a, b in zip(found, truth, strict=True)]
        yield {"arithmetic": arithmetic, "delta": delta, "Hv": errors[0], "Jv": errors[1]}


def main(quick: bool) -> None:
    torch.set_num_threads(1)
    errors = pd.DataFrame(errors_of_products())
    print(errors.to_string(index=False))
    table = steps(*((256, 1024), (), 1) if quick else ())
    if not quick:
        keep({"attention": table}, "attention", machine() | {"errors of products": errors.to_dict("records")})


if __name__ == "__main__":
    main(quick="quick" in sys.argv)
