"""The clock: what a step of each method costs along a real run, so that no load on the machine bends a time.

    seconds(t) = the sum over the steps s < t of cost(s),     cost(s) = the median at the last point that s has passed

Points are states of a real run: its beginning, and where 2 % and 10 % of its seconds are spent. All methods take turns,
each from its own points, for some rounds. `alone` is measured on an idle machine and judges; `busy`, measured while the
other core works, is shown beside it.
"""

import json
import time
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from bilevel_book.experiments.calibration import kind_of
from bilevel_book.experiments.environment import environment, one_thread
from bilevel_book.experiments.files import CLOCK, load
from bilevel_book.experiments.plan import Plan, Run
from bilevel_book.paths import Named, experiment_file
from bilevel_core.checkpoint import write_atomically
from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers import Solver, State

SHARES = (0.02, 0.1)  # of the seconds of a run, where a step is measured again
SHORTEST_SECONDS = 0.05  # of one measurement, so that the clock's own cost does not show
Point = tuple[BilevelProblem, Solver[Any], State]


def measure_clock(experiment: Named, size: str, reading: str = "alone", rounds: int = 10) -> None:
    """Measure all methods whose runs have seconds, and store what a step costs beside the experiment's file."""
    file, path = load(experiment), experiment_file(experiment).with_suffix(CLOCK)
    plan, kinds, runs = Plan(file, size), dict[str, str](), dict[str, tuple[Run, float]]()
    for group in plan.groups.values():
        for label in group.only if group.seconds and not group.trials else []:
            run = plan.run_of(group, label)
            kind = kinds.setdefault(group.priced_as(label), kind_of(run))
            runs[kind] = run, max(group.seconds, runs.get(kind, (run, 0.0))[1])
    with one_thread():
        points = {kind: _points(run, seconds) for kind, (run, seconds) in tqdm(runs.items(), unit="method")}
        each = [(kind, point) for kind, along in points.items() for point in along]
        took = [[_cost(*point) for _, point in each] for _ in tqdm(range(rounds + 1), unit="round")][1:]
    found: dict[str, list[list[float]]] = {kind: [] for kind in runs}
    for (kind, (_, _, state)), costs in zip(each, zip(*took, strict=True), strict=True):
        found[kind].append([state.t, *(float(f"{q:.4g}") for q in np.quantile(costs, [0.5, 0.25, 0.75]))])
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    content[reading] = {"rounds": rounds, **environment(), "costs": {name: found[kind] for name, kind in kinds.items()}}
    write_atomically(path, (json.dumps(content) + "\n").encode())


def _points(run: Run, seconds: float) -> list[Point]:
    """States of a run: after its first period, and after each share of its seconds."""
    problem, solver = run.make_problem(), run.make_solver()
    state, spent, points = solver.init(problem, run.seed), 0.0, []
    for share in (0.0, *SHARES):
        while spent < share * seconds or (not points and state.t == 0):
            began = time.process_time()
            for _ in range(period_of(solver)):
                state = solver.step(problem, state)
            spent += time.process_time() - began
        if not points or points[-1][2] is not state:  # a long step may pass several shares
            points.append((problem, solver, state))
    return points


def period_of(solver: Solver[Any]) -> int:
    """How many steps it takes until all kinds of steps of a method have been taken (VRBO)."""
    return vars(solver).get("period", 1)


def _cost(problem: BilevelProblem, solver: Solver[Any], state: State) -> float:
    """CPU seconds of a step from a state on."""
    began, steps, took = time.process_time(), 0, 0.0
    while took < SHORTEST_SECONDS:
        for _ in range(period_of(solver)):
            state = solver.step(problem, state)
        steps, took = steps + period_of(solver), time.process_time() - began
    return took / steps
