"""Calibration: what a step of each method costs, measured side by side, so that no load on the machine bends a clock.

time = steps x the median cost of a step. The prices of H v and J v are in gradients of g, each taken by itself.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm

from bilevel_book.experiments.environment import environment, one_thread
from bilevel_book.experiments.files import CALIBRATION, load
from bilevel_book.experiments.plan import FULL, Plan, Run
from bilevel_book.paths import Named, experiment_file
from bilevel_book.verdicts.selection import at_trial
from bilevel_core.checkpoint import write_atomically
from bilevel_core.directions import grad_y, hessian_vector, jacobian_vector

SHORTEST_SECONDS = 0.02  # of one measurement: below that the clock's own cost would show
QUARTILES = {"q1": 0.25, "median": 0.5, "q3": 0.75}
LATE_STEP = 10**6  # the t of the steps that are measured: beyond where any schedule of momentum is capped at 1


def calibrate(experiment: Named, size: str = FULL, rounds: int = 30, progress: bool = True) -> Path:
    """Measure a step of every method of an experiment, and the prices of H v and J v; store them beside its file.

    Each round measures all of them once; what differs only in the sizes of steps is one method. What is there already
    stays: methods that came later are measured beside the old ones, and scaled by the median of old / now.
    """
    file, path = load(experiment), experiment_file(experiment).with_suffix(CALIBRATION)
    kinds: dict[str, str] = {}
    runs: dict[str, Run] = {}
    plan = Plan(file, size)
    for group in plan.groups.values():
        for label in group.only if group.time or not (group.trials or group.grid) else []:
            run = plan.run_of(group, label)
            runs.setdefault(kinds.setdefault(group.priced_as(label), kind_of(run)), run)
    content = dict(file.calibration)
    old = content.setdefault("steps", {})
    costs = {kinds[name]: cost for name, cost in old.items() if name in kinds}
    if not costs.keys() >= runs.keys():
        timers = {kind: _steps(run) for kind, run in runs.items()}
        quartiles = _quartiles(timers | _products(replace(run, problem_options=file.options)), rounds, progress)
        prices = {name: round(quartiles[name][1] / quartiles["gradient"][1], 2) for name in ("Hv", "Jv")}
        scale = float(np.median([cost["median"] / quartiles[kind][1] for kind, cost in costs.items()] or [1.0]))
        for kind in runs.keys() - costs.keys():
            costs[kind] = {q: float(f"{scale * cost:.4g}") for q, cost in zip(QUARTILES, quartiles[kind], strict=True)}
        content = {"prices": prices} | content | {"rounds": rounds} | environment()
    content["steps"] = {name: costs[kind] for name, kind in kinds.items()} | old
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())
    return path


def _quartiles(timers: dict[str, Callable[[], float]], rounds: int, progress: bool) -> dict[str, np.ndarray]:
    bar = tqdm(range(rounds + 1), unit="round", disable=not progress)
    with one_thread():
        rows = [{kind: timer() for kind, timer in timers.items()} for _ in bar][1:]  # the first warms up
    return {kind: np.quantile([row[kind] for row in rows], list(QUARTILES.values())) for kind in timers}


def kind_of(run: Run) -> str:
    """What decides the cost of a step: not the numbers with a point, but for a 1, which is momentum off."""
    whole = [
        {key: value for key, value in options.items() if value == 1 or not isinstance(value, float | dict)}
        for options in (run.options, run.problem_options)
    ]
    return json.dumps([run.solver, *whole], sort_keys=True)


def _steps(run: Run) -> Callable[[], float]:
    """Seconds a step, late in a run, where momentum is at work; a method with a period is measured over one."""
    problem, solver = run.make_problem(), replace(run, options=at_trial(run.options, 0)).make_solver()
    period = getattr(solver, "period", 1)
    start = state = solver.init(problem, 0).replace(t=LATE_STEP * period)

    def one_period() -> None:
        nonlocal state
        for _ in range(period):
            state = solver.step(problem, state)
        state = state if torch.isfinite(state.x).all() else start

    return _timer(one_period, period)


def _products(run: Run) -> dict[str, Callable[[], float]]:
    """Seconds of a gradient of g, of H v and of J v, each by itself on one batch."""
    problem, generator = run.make_problem(), torch.Generator().manual_seed(0)
    x, y = problem.start(generator)
    v, batch = torch.randn(y.shape, generator=generator, dtype=y.dtype), problem.sample(generator).lower
    return {
        "gradient": _timer(lambda: grad_y(problem.lower, x, y, batch)),
        "Hv": _timer(lambda: hessian_vector(problem, x, y, v, batch)),
        "Jv": _timer(lambda: jacobian_vector(problem, x, y, v, batch)),
    }


def _timer(call: Callable[[], Any], each: int = 1) -> Callable[[], float]:
    """CPU seconds of one of the `each` things that a call does, called as often as the clock needs."""

    def measure() -> float:
        start, calls, took = time.process_time(), 0, 0.0
        while took < SHORTEST_SECONDS:
            call()
            calls, took = calls + 1, time.process_time() - start
        return took / (calls * each)

    return measure
