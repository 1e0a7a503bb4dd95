"""`hypergradient` and `reverse` against other people's code, on three problems."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

import peers
from bilevel_book.methods import Reverse
from bilevel_book.methods.estimates import lower_batches
from bilevel_book.mnist import HyperCleaning, HyperRepresentation
from bilevel_core import BilevelProblem, Samples, hypergradient
from bilevel_core.counting import counting
from bilevel_core.problems import Quadratic
from bilevel_core.solvers.base import draw, generator_at
from clock import peak_megabytes, side_by_side
from table import Row

INNER = 20


class Case(NamedTuple):
    """A problem, the draw that stands for its expectations, the tolerance of the answer, and a step size for y."""

    problem: BilevelProblem
    samples: Samples
    tol: float
    beta: float


def cases() -> dict[str, Case]:
    """A quadratic of 100 + 300 unknowns; 1000 images of hyper-cleaning; LeNet's last layer on one batch of 256."""
    quadratic = Quadratic(dim_x=100, dim_y=300, L=100.0)
    cleaning = HyperCleaning(C=0.01, dtype=torch.float64)
    lenet = HyperRepresentation(ridge=0.01)
    return {
        "quadratic": Case(quadratic, quadratic.full(), 1e-10, 0.01),
        "cleaning": Case(cleaning, Samples(slice(0, 500), slice(0, 1000)), 1e-8, 0.1),
        "LeNet": Case(lenet, lenet.sample(torch.Generator().manual_seed(0)), 1e-5, 0.3),
    }


def hypergradients(rounds: int) -> Iterator[Row]:
    """The time of `hypergradient` where y is y* already, over that of each peer with the same tolerance."""
    for name, (problem, samples, tol, _) in cases().items():
        x, _ = problem.start(torch.Generator().manual_seed(0))
        y = hypergradient(problem, x, samples, tol=tol).y

        def ours(problem=problem, x=x, y=y, samples=samples, tol=tol) -> Tensor:
            return hypergradient(problem, x, samples, y=y, tol=tol).gradient

        with counting() as calls:
            answer = ours()
        candidates = {"ours": ours}
        for peer, (package, call) in peers.HYPERGRADIENTS.items():
            if peers.installed(package):
                arguments = problem, x, y, samples, tol, calls.Hv
                candidates[peer] = lambda call=call, arguments=arguments: call(*arguments)
        times = side_by_side(candidates, rounds)
        for peer, (package, _) in peers.HYPERGRADIENTS.items():
            part = "hypergradient at y*"
            if peer in times:
                other = candidates[peer]()
                far = ((other - answer).norm() / answer.norm()).item()
                goal = None if package == "betty" else 1.0  # it gives another answer
                yield Row.ratio(part, name, times["ours"], peer, times[peer], goal, difference=far)
            else:
                yield Row.missing(part, name, peer)


def unrolled(rounds: int) -> Iterator[Row]:
    """A step of `reverse` through all of its 20 inner steps over higher's loop on the same batches; then memory."""
    for name, (problem, _, _, beta) in cases().items():
        solver = Reverse(alpha=1.0, beta=beta, inner=INNER, K=INNER)
        state = solver.init(problem)
        part, peer = f"reverse, {INNER} steps", "higher's unrolled loop"
        if not peers.installed("higher"):
            yield Row.missing(part, name, peer)
            continue
        generator = generator_at(state)
        batches = list(lower_batches(problem, generator, INNER))
        upper = draw(problem, generator).upper

        def ours(recompute=False, solver=solver, problem=problem, state=state):
            return replace(solver, recompute=recompute).step(problem, state)

        def theirs(problem=problem, state=state, batches=batches, upper=upper, beta=beta):
            return peers.higher_unrolled(problem, state.x, state.y, batches, upper, beta)

        ways = {part: ours, f"{part}, recompute": lambda ours=ours: ours(recompute=True), peer: theirs}
        times = side_by_side(ways, rounds)
        answer, other = state.x - ours().x, theirs()
        far = ((other - answer).norm() / other.norm()).item()
        for way, call in ways.items():
            goal = 1.0 if call is ours else None
            if call is not theirs:
                yield Row.ratio(way, name, times[way], peer, times[peer], goal, difference=far)
            yield Row(f"memory: {way}", name, "", peak_megabytes(call), "MB")
