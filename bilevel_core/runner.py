"""Run a method under a budget, and keep what happened."""

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from tqdm.auto import tqdm

from bilevel_core import refitting
from bilevel_core.checkpoint import Checkpoint
from bilevel_core.checks import COUNT, POSITIVE, RADIUS
from bilevel_core.counting import Calls, counting
from bilevel_core.diagnosis import diagnose
from bilevel_core.problem import BilevelProblem, full_samples
from bilevel_core.solvers.base import Solver, State
from bilevel_core.stepsizes import suggest

Row = dict[str, float]
Callback = Callable[[State, Row], object]
Metrics = Mapping[str, Callable[[Tensor, Tensor], float]]
# What a checkpoint has of a run, besides the points that prove it
SAVED = "_best_row", "_best_state", "_cpu_seconds", "_wall_seconds", "_rows", "norms", "columns", "nonfinite"
UNITS = "steps", "seconds", "gradients"
Method = Solver[Any] | type[Solver[Any]] | str  # with options, or without: then `suggest` finds them


@dataclass(frozen=True)
class Budget:
    """`steps` steps, `seconds` of CPU time, or `gradients`, H v and J v counted as `prices` say (else 1 each); a row
    every `every` steps, or at those listed, or about `rows` in all."""

    steps: int | None = None
    seconds: float | None = None
    every: int | Sequence[int] | None = None
    rows: int = 100
    gradients: float | None = None
    prices: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if sum(vars(self)[unit] is not None for unit in UNITS) != 1:
            raise ValueError(f"give either steps or seconds or gradients, got {self}")
        every = 1 if isinstance(self.every, Sequence) else self.every
        COUNT.or_none().check(steps=self.steps, every=every, rows=self.rows)
        POSITIVE.or_none().check(seconds=self.seconds, gradients=self.gradients, **self.prices or {})
        if self.prices and not (self.gradients and {*self.prices} <= {"Hv", "Jv"}):
            raise ValueError(f"prices are of Hv and Jv, for a budget of gradients, got {self.prices!r}")

    @property
    def limit(self) -> tuple[str, float]:
        """What is spent, and how much of it."""
        return next((unit, vars(self)[unit]) for unit in UNITS if vars(self)[unit] is not None)

    def spent(self, t: int, cpu_seconds: float, calls: Mapping[str, int]) -> float:
        """How much of the budget a run has spent after t steps, which took so many seconds and these calls."""
        if self.gradients is None:
            return cpu_seconds if self.steps is None else t
        prices = {"gradients": 1.0, "Hv": 1.0, "Jv": 1.0, **(self.prices or {})}
        return sum(price * calls[name] for name, price in prices.items())

    def has_row(self, t: int, before: float, spent: float) -> bool:
        """Whether there is a row after t steps: `before` was spent when the last one began, `spent` when it ended."""
        unit, total = self.limit
        gap = total / self.rows
        if isinstance(self.every, Sequence):
            is_due = t in self.every
        elif self.every or unit == "steps":
            is_due = t % (self.every or math.ceil(gap)) == 0
        else:
            is_due = spent >= (before // gap + 1) * gap
        return is_due or spent >= total


class Result:
    """A run: its `start` at t = 0, its last finite `state`, its `history`, and what looks wrong about it.

    `nonfinite` names the variables that ceased to be finite, at the step `diverged_at`; `columns` are those of
    `evaluate` and `metrics`; `norms` are ||x - x_0||, ||y|| and ||v|| at every row; `refit` is there if asked for.
    """

    def __init__(
        self, problem: BilevelProblem, solver: Solver[Any], start: State, budget: Budget, goal: str | None,
        metrics: Metrics, blow_up: float,
    ):  # fmt: skip
        self.problem, self.solver, self.budget, self.goal, self.metrics = problem, solver, budget, goal, metrics
        self.start = self.state = self._best_state = start
        self._largest_norm = blow_up * (1 + start.x.norm().item() + start.y.norm().item())
        self.norms: list[tuple[float, ...]] = []
        self.columns: list[str] = []
        self.nonfinite = ""
        self.refit: refitting.Refit | None = None
        self._rows: list[Row] = []
        self._calls, self._cpu_seconds, self._wall_seconds = Calls(), 0.0, 0.0
        self._best_row, self._is_interrupted, self._is_called_off = 0, False, False
        self._file: Checkpoint | None = None

    @cached_property
    def history(self) -> pd.DataFrame:
        """A row for each time at which the run was looked at."""
        return pd.DataFrame(self._rows)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """The sentences of `diagnose`, none when all is well."""
        return tuple(diagnose(self))

    @property
    def loss_column(self) -> str | None:
        """The first column, if it is named a loss or an objective: `diagnose` watches it."""
        return next((name for name in self.columns[:1] if "loss" in name or "objective" in name), None)

    @property
    def best(self) -> tuple[State, Row] | None:
        """The state and the row where the column asked for is best; after a failure, where the loss was lowest."""
        is_kept = self.goal or (self.loss_column and self.stop in ("diverged", "blew up"))
        return (self._best_state, self._rows[self._best_row]) if is_kept else None

    @property
    def stop(self) -> str:
        """Why it stopped: "interrupted", "diverged" (not finite), "blew up" (a norm too large), the unit of its budget
        ("steps", "seconds", "gradients") or "callback"; "" before that."""
        unit, total = self.budget.limit
        reasons = {
            "interrupted": self._is_interrupted,
            "diverged": self.nonfinite,
            "blew up": bool(self.norms) and max(self.norms[-1]) > self._largest_norm,
            unit: self._spent() >= total,
            "callback": self._is_called_off,
        }
        return next((reason for reason, holds in reasons.items() if holds), "")

    @property
    def diverged_at(self) -> int | None:
        return self.state.t + 1 if self.nonfinite else None

    def __repr__(self) -> str:
        first, last = self._rows[0], self._rows[-1]
        numbers = [f"{name} {first[name]:.4g} -> {last[name]:.4g}" for name in self.columns[:1]]
        numbers += [f"{len(self.warnings)} in .warnings"] * bool(self.warnings)
        title = f"{type(self.solver).__name__} on {type(self.problem).__name__}"
        return f"<{title}, {last['step']:.0f} steps, stop: {', '.join([self.stop, *numbers])}>"

    def _spent(self) -> float:
        return self.budget.spent(self.state.t, self._cpu_seconds, vars(self._calls))

    def _step(self, bar: Any) -> bool:
        """Take a step; whether a row is due. The clocks and the counter run only during the step."""
        before, cpu, wall = self._spent(), _cpu_clock(), time.perf_counter()
        with counting(replace(self._calls)) as calls:
            state = self.solver.step(self.problem, self.state)
        self._calls = calls  # an interrupted step does not count
        self._cpu_seconds += _cpu_clock() - cpu
        self._wall_seconds += time.perf_counter() - wall
        self.nonfinite = "".join(name for name in "xyv" if not math.isfinite(vars(state)[name].sum().item()))
        if self.nonfinite:
            return True
        self.state = state
        if self._file:
            self._file.add_step(state)
        spent = self._spent()
        bar.update(min(spent, bar.total) - bar.n)
        return self.budget.has_row(state.t, before, spent)

    def _record(self, bar: Any, callback: Callback | None) -> None:
        """Add a row, and do what is due at every row."""
        row = self._add_row()
        bar.set_postfix({name: f"{row[name]:.4g}" for name in self.columns[:1]})
        if goal := self.goal or self.loss_column:
            name = goal.removeprefix("-")
            if name not in row:
                raise ValueError(f"best must be one of the columns {', '.join(row)}, got {goal!r}")
            best = self._rows[self._best_row][name]
            if (row[name] < best if name == goal else row[name] > best) or math.isnan(best):
                self._best_row, self._best_state = len(self._rows) - 1, self.state
        if self._file:  # the lists go on growing: `number` rows of them belong to this save
            about = {"limit": self.budget.limit, "number": len(self._rows), "calls": vars(self._calls)}
            self._file.keep(about | {name: vars(self)[name] for name in SAVED})
        self._is_called_off = bool(callback and not self.nonfinite and callback(self.state, row))

    def _add_row(self) -> Row:
        x, y, v = self.state.x, self.state.y, self.state.v
        row: Row = {"step": self.state.t, "cpu_seconds": self._cpu_seconds, "wall_seconds": self._wall_seconds}
        row |= vars(self._calls)
        if self.nonfinite:  # there is nothing left to evaluate
            row = dict.fromkeys(self._rows[-1], math.nan) | row | {"step": self.state.t + 1}
        else:
            row |= _numbers("measure", self.solver.measure(self.problem, self.state), row)
            found = _numbers("evaluate", self.problem.evaluate(x.clone(), y.clone()), row)
            given = {name: metric(x.clone(), y.clone()) for name, metric in self.metrics.items()}
            found |= _numbers("metrics", given, row | found)
            self.columns = self.columns or [*found]
            row |= found
        self._rows.append(row)
        self.norms.append(tuple(z.norm().item() for z in (x - self.start.x, y, v)))
        return row

    def _resume(self) -> None:
        """Go on from where the file stands, if it is there."""
        if self._file and (found := self._file.load()):
            vars(self).update({name: found[name] for name in SAVED})
            self._rows, self.norms = self._rows[: found["number"]], self.norms[: found["number"]]
            self.state, self._calls = found["here"].state, Calls(**found["calls"])
            unit, total = self.budget.limit
            if self._spent() > total and found["limit"] != self.budget.limit:
                raise ValueError(f"{self._file.path} has {self._spent():g} {unit}, more than the {total:g} asked for")


@dataclass(frozen=True)
class Results:
    """The same run from several seeds."""

    runs: dict[int, Result]

    @property
    def table(self) -> pd.DataFrame:
        """All rows, by seed and number; the means over the seeds are `table.groupby("row").mean()`."""
        return pd.concat({seed: result.history for seed, result in self.runs.items()}, names=["seed", "row"])


def run(
    problem: BilevelProblem,
    solver: Method,
    seed: int = 0,
    *,
    steps: int | None = None,
    seconds: float | None = None,
    gradients: float | None = None,
    prices: Mapping[str, float] | None = None,
    every: int | Sequence[int] | None = None,
    rows: int = 100,
    start: tuple[Tensor, Tensor] | None = None,
    metrics: Metrics | None = None,
    best: str | None = None,
    blow_up: float = 1e6,
    callback: Callback | None = None,
    refit: bool | float = False,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Result:
    """Run `solver` (by name or class: with the steps that `suggest` finds) for `steps` steps, `seconds` of its own CPU
    time, or `gradients` gradients, where H v and J v count as `prices` say, {"Hv": 2.0, "Jv": 1.5}, by default 1 each.

    The run begins at (x_0, y_0) = `start`, by default the problem's own. Its history has a row at t = 0, every `every`
    steps or at the steps listed there (default: about `rows` rows, at equal parts of the budget), and at the end: the
    step, the seconds of the algorithm alone, the calls counted where they happen, what `solver.measure` returns (by
    default the norm of v), what `problem.evaluate` does, and `metrics`: {"accuracy": f} adds a column f(x, y).

    A non-finite iterate ends the run, and so does a row with ||x - x_0||, ||y|| or ||v|| above `blow_up` times
    1 + ||x_0|| + ||y_0||. Ctrl-C ends it and keeps what was done; `callback(state, row)` at a row ends it by returning
    True. The state is kept where the column `best` is smallest ("-test_accuracy": largest). `refit` solves the lower
    level at the last x (or the best) from a cold start; a number is its most seconds. What looks wrong is told below
    the bar.

    With `checkpoint`, the run is saved there, at rows a second apart and at its end, and resumed bit for bit if it is
    this very run (as `bilevel_core.checkpoint` finds out); a problem that changes as it is used needs `state_dict`.
    """
    budget = Budget(steps, seconds, every, rows, gradients, prices)
    RADIUS._replace(words="a positive number (inf: run on)").check(blow_up=blow_up)
    solver = _with_options(problem, solver, seed, progress)
    if start is not None and not (isinstance(start, tuple | list) and len(start) == 2):
        raise ValueError(f"start must be a pair (x, y), got {start!r}")
    if not (isinstance(metrics or {}, Mapping) and all(map(callable, (metrics or {}).values()))):
        raise ValueError(f"metrics must be a dict of functions of x and y, got {metrics!r}")
    first = solver.init(problem, seed, **dict(zip("xy", start or (), strict=False)))
    result = Result(problem, solver, first, budget, best, metrics or {}, blow_up)
    if seconds is not None and problem.processes()[1] > 1:
        raise ValueError("processes have clocks of their own and would not stop together: give steps or gradients")
    if seconds is not None and torch.get_num_threads() > 1 and threading.current_thread() != threading.main_thread():
        cure = "call torch.set_num_threads(1) in this thread, or give steps or gradients"
        raise ValueError(f"seconds cannot be told apart from those of other threads while torch uses several: {cure}")
    if refit:
        full_samples(problem)  # or the refit would fail after all the work
    unit, total = budget.limit
    bar_format = "{l_bar}{bar}| {n:.4g}/{total:.4g} " + unit + " [{elapsed}<{remaining}{postfix}]"
    options = {"seed": seed, "best": best, "metrics": [*(metrics or {})], "blow_up": blow_up}
    file = checkpoint and Checkpoint(Path(checkpoint), problem, solver, first, **options)
    with file or nullcontext() as result._file:
        result._resume()
        shown = {"desc": type(solver).__name__, "disable": not progress, "initial": result._spent()}
        try:
            with tqdm(total=total, bar_format=bar_format, **shown) as bar:
                while not result.stop:
                    if not result._rows or result._step(bar):
                        result._record(bar, callback)
        except KeyboardInterrupt:
            result._is_interrupted = True
    if not result._rows or result._rows[-1]["step"] < result.state.t:
        result._add_row()
    if refit:
        most = math.inf if refit is True else refit
        result.refit = refitting.refit(problem, (result.best or [result.state])[0].x, seed, seconds=most)
    if progress and result.warnings:
        print(*result.warnings, sep="\n", file=sys.stderr)
    return result


def run_seeds(problem: BilevelProblem, solver: Method, seeds: Sequence[int], **options: Any) -> Results:
    """`run` with the same options for each of the seeds; a checkpoint NAME.ckpt becomes NAME_SEED.ckpt."""
    solver = _with_options(problem, solver, seeds[0], options.get("progress", True))
    path, runs = options.pop("checkpoint", None), {}
    for seed in seeds:
        place = path and Path(path).with_stem(f"{Path(path).stem}_{seed}")
        runs[seed] = run(problem, solver, seed, checkpoint=place, **options)
        if runs[seed].stop == "interrupted":
            break
    return Results(runs)


def _with_options(problem: BilevelProblem, solver: Method, seed: int, progress: bool) -> Solver[Any]:
    """The method itself; of a name or a class, with the options that `suggest` finds."""
    if isinstance(solver, Solver):
        return solver
    if not isinstance(solver, str | type):
        raise ValueError(f"solver must be a Solver, a class of such or a name, got {solver!r}")
    suggestion = suggest(problem, solver, seed)
    if progress:
        print(suggestion.line, file=sys.stderr)
    return suggestion.solver


def _cpu_clock() -> float:
    """CPU seconds of this thread; where torch works in several, of the process."""
    return time.thread_time() if torch.get_num_threads() == 1 else time.process_time()


def _numbers(source: str, given: Any, taken: Row) -> Row:
    """What `measure` or `evaluate` returned as plain numbers, if they have names of their own."""
    if not isinstance(given, Mapping) or {*given} & {*taken}:
        raise ValueError(f"{source} must return a dict of numbers, by names other than {[*taken]}, got {given!r}")
    plain = {}
    for name, value in given.items():
        if isinstance(value, Tensor | np.ndarray) and math.prod(value.shape) != 1:
            raise ValueError(f"{source} must return numbers, {name} has the shape {tuple(value.shape)}")
        plain[name] = value.item() if isinstance(value, Tensor | np.ndarray | np.generic) else value
    return {name: int(value) if isinstance(value, int) else float(value) for name, value in plain.items()}
