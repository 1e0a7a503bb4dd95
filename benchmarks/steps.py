"""A step of every method over its floor: LeNet with batches of 256, hyper-cleaning with the batches of the paper."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

import floors
from bilevel_book.experiments import load, paper_settings
from bilevel_book.methods import SOLVERS
from bilevel_book.mnist import HyperCleaning, HyperRepresentation
from bilevel_core.counting import counting
from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers import FMBO, Solver, State
from clock import side_by_side
from table import Row

LATE = 3000  # a time when every eta is below 1 and estimators are at work, and a multiple of VRBO's period
SEVERAL = {"VRBO": 3, "BSA": 3, "SUSTAIN": 3}  # steps measured together: a period, or the same number of random lengths
MANY = 12  # steps measured together where one takes less than ten milliseconds
SHORT = ("AID-FP", "reverse", "reverse, recompute")  # on all the data 60 inner steps, not 200: much the same


def settings(experiment: str, name: str) -> dict[str, Any]:
    """Those of the paper where the experiment has the method, else the method's own defaults."""
    return paper_settings(experiment, name) if name in load(experiment).tables["main"] else {}


def with_a_past(solver: Solver, problem: BilevelProblem) -> State:
    """A state with a past."""
    state = solver.init(problem)
    v = torch.randn(state.v.shape, generator=torch.Generator().manual_seed(0), dtype=state.v.dtype)
    return solver.step(problem, replace(state, v=v / v.norm(), t=LATE - 1))


def methods(experiment: str) -> dict[str, Solver]:
    """All that have a floor, and `reverse` also with less memory."""
    made = {name: SOLVERS[name](**settings(experiment, name)) for name in floors.LENET}
    return made | {"reverse, recompute": replace(made["reverse"], recompute=True)}


def steps_of(name: str, solver: Solver, problem: BilevelProblem) -> tuple[Callable[[], State], int, dict[str, float]]:
    """A call that takes the steps to measure, how many they are, and the mean number of calls in one."""
    first = with_a_past(solver, problem)
    one = side_by_side({"step": lambda: solver.step(problem, first)}, rounds=1)["step"]
    steps = MANY if one < 0.01 else SEVERAL.get(name, 1)

    def call() -> State:
        state = first
        for _ in range(steps):
            state = solver.step(problem, state)
        return state

    with counting() as calls:
        call()
    return call, steps, {kind: getattr(calls, kind) / steps for kind in ("gradients", "Hv", "Jv")}


def over_floor(
    part: str, table: floors.Floors, cases: dict[str, tuple], goals: dict[str, float], rounds: int
) -> Iterator[Row]:
    """One row for each method; `cases` holds its solver, its problem and the floor that runs its counts."""
    candidates, counts = {}, {}
    for name, (solver, problem, floor) in cases.items():
        call, steps, calls = steps_of(name, solver, problem)
        least = table[name.split(",")[0]](solver, calls["Hv"])
        candidates |= {name: call, f"{name}, floor": lambda floor=floor, work=steps * least: floor.run(work)}
        counts[name] = steps, calls | floor.named(least)
    times = side_by_side(candidates, rounds)
    for name, (steps, work) in counts.items():
        ours, least = times[name] / steps, times[f"{name}, floor"] / steps
        yield Row.ratio(part, name, ours, "floor", least, goals.get(name), work=work)


def on_lenet(rounds: int) -> Iterator[Row]:
    problem = HyperRepresentation()
    x, y = problem.start(torch.Generator().manual_seed(0))
    floor = floors.LeNetFloor(problem, x, y, torch.ones_like(y))
    for pass_, seconds in side_by_side(floor.passes(), 3 * rounds).items():
        yield Row("a pass on LeNet", pass_, "", 1e3 * seconds, "ms")
    cases = {name: (solver, problem, floor) for name, solver in methods("hyper-representation").items()}
    goals = dict.fromkeys(floors.LENET, 1.15) | {"FdeHBO": 1.05}
    yield from over_floor("step on LeNet", floors.LENET, cases, goals, rounds)


def on_cleaning(rounds: int, rounds_on_all_data: int = 3) -> Iterator[Row]:
    main, data, cases = load("hyper-cleaning").tables["main"], HyperCleaning(), {}
    for name, solver in methods("hyper-cleaning").items():
        problem = copy.copy(data)
        problem.batch_size = main[name].problem.get("batch_size", 100) if name in main else 100
        floor = floors.CleaningFloor(problem, data.start(torch.Generator().manual_seed(0))[1])
        cases[name] = replace(solver, inner=60) if name in SHORT else solver, problem, floor
    goals = dict.fromkeys(floors.CLEANING, 2.5)
    del goals["BSA"]  # single samples: there is nothing to compute, the ratio is that of Python's work to none
    part, table = "step on cleaning", floors.CLEANING
    yield from over_floor(part, table, {n: c for n, c in cases.items() if n not in SHORT}, goals, rounds)
    yield from over_floor(part, table, {n: cases[n] for n in SHORT}, goals, rounds_on_all_data)


def fmbo_over_bare_products(rounds: int) -> Iterator[Row]:
    """FMBO on cleaning over the six products of a point, twice, as anyone would write them first."""
    problem, solver = HyperCleaning(), FMBO(**settings("hyper-cleaning", "FMBO"))
    state = with_a_past(solver, problem)
    samples = problem.sample(torch.Generator().manual_seed(0))
    times = side_by_side(
        {
            "step": lambda: solver.step(problem, state),
            "floor": lambda: [floors.bare_products(problem, state.y, state.v, samples) for _ in range(2)],
        },
        rounds,
    )
    yield Row.ratio("step on cleaning", "FMBO, simple floor", times["step"], "bare_products twice", times["floor"], 1.5)
