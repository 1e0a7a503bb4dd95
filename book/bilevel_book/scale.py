"""From laptop to cluster: what the reproductions took, how that falls with workers, what a language model would take.

All numbers come from stored files, or from the assumptions that are written here; nothing is typed into the page.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from bilevel_book.experiments import load
from bilevel_book.experiments.tables import stored_runs
from bilevel_book.paths import RESULTS, shipped_experiments

COST = RESULTS / "cost"
BYTES = 4  # of a float32


def seconds() -> dict[str, list[float]]:
    """The CPU seconds of every stored run that tells them, by experiment."""
    tables = {name: [stored_runs(name, group) for group in load(name).sizes["full"]] for name in shipped_experiments()}
    return {name: [run.facts["cpu_seconds"] for table in own for run in table.values()] for name, own in tables.items()}


def makespan(runs: Iterable[float], workers: int) -> float:
    """When the last run ends if each worker takes the next one as soon as it is free."""
    free = [0.0] * workers
    for run in runs:
        heapq.heapreplace(free, free[0] + run)
    return max(free)


@dataclass(frozen=True)
class Method:
    """The cost of a step in passes over a batch of the model, and the numbers that it keeps for each of its parameters.

    A pass is a forward pass with its backward pass; H v and J v together are two of them, since they differentiate
    one. `vectors` are those of the size of y that a state holds; `rise` are those that a step needs for a moment.
    """

    name: str
    passes: int
    vectors: int
    rise: float
    differences: bool = False  # of gradients that are close: in float32


def methods(inner: int = 1) -> list[Method]:
    """Momentum methods look at two points a step, plain ones at one; F2SA takes `inner` steps of y and z."""
    table = pd.read_csv(COST / "memory.csv").query("problem == 'weights'").sort_values("dim_y")
    rise = table.assign(rise=table.rise / table.parameters).groupby("method").rise.last()
    return [
        Method("FdeHBO", 2 * (1 + 3), 6, rise.FdeHBO, differences=True),  # f at y; g at y and at y +- delta v
        Method("FMBO", 2 * (1 + 1 + 2), 6, rise.FMBO),  # f at y; g at y; H v and J v
        Method("SOBA", 1 + 1 + 2, 2, rise.SOBA),
        Method("F2SA", 3 * inner + 3, 3, rise.F2SA),  # g at z, f and g at y; at last f, g and g at z, for x
        Method("F3SA", 2 * (3 + 3), 8, rise.F3SA),
    ]


@dataclass(frozen=True)
class Machine:
    """An accelerator as it is rented: operations a second that training sustains, dollars an hour, bytes of memory."""

    bfloat16: float = 400e12
    float32: float = 50e12
    dollars: float = 3.0
    memory: float = 80e9


RENTED = Machine()
TOKENS = 20  # for each parameter, about what compute-optimal training takes


def reweighting(
    parameters: float, method: Method, machine: Machine = RENTED, tokens: float = TOKENS
) -> dict[str, float]:
    """Weights of the sources of training data, learned while a language model is trained on them once.

    A pass over a token is 6 operations for each parameter (2 forwards, 4 backwards), and there are `tokens` tokens
    for each parameter. x has one weight for each source, so that y is all that counts.
    """
    plain = 6 * parameters * tokens * parameters
    speed = machine.float32 if method.differences else machine.bfloat16
    hours = method.passes * plain / speed / 3600
    memory = BYTES * parameters * (method.vectors + method.rise)
    return {
        "operations": method.passes * plain,
        "hours": hours,
        "dollars": hours * machine.dollars,
        "memory": memory,
        "devices": -(-memory // machine.memory),
    }
