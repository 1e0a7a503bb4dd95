"""Run a method under a budget, and keep what happened."""

import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from bilevel_core.checkpoint import Checkpoint
from bilevel_core.checks import COUNT, POSITIVE, Allowed
from bilevel_core.counting import Calls, counting
from bilevel_core.diagnosis import diagnose
from bilevel_core.problem import BilevelProblem, full_samples
from bilevel_core.refitting import Refit
from bilevel_core.refitting import refit as refit_at
from bilevel_core.solvers import SOLVERS
from bilevel_core.solvers.base import Solver, State
from bilevel_core.stepsizes import suggest

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, float]
Callback = Callable[[State, Row], object]
SAVED = (  # what a checkpoint has of a run, besides the points that prove it
    "_best_row", "_best_state", "_cpu_seconds", "_wall_seconds", "_rows", "norms", "columns", "nonfinite",
)  # fmt: skip
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
        given = {unit: vars(self)[unit] for unit in UNITS}
        if list(given.values()).count(None) != 2:
            raise ValueError(f"give either steps or seconds or gradients, got {given}")
        COUNT.or_none().check(steps=self.steps)
        POSITIVE.or_none().check(seconds=self.seconds, gradients=self.gradients)
        COUNT.check(rows=self.rows)
        every = self.every if isinstance(self.every, Sequence) else [self.every]
        if self.every is not None and not all(map(COUNT.test, every)):
            raise ValueError(f"every must be {COUNT.words}, or a list of such, got {self.every!r}")
        if self.prices is not None and not (self.gradients and {*self.prices} <= {"Hv", "Jv"}):
            raise ValueError(
                f'prices are {{"Hv": 2.0, "Jv": 1.5}}, say, for a budget of gradients, got {self.prices!r}'
            )
        POSITIVE.check(**self.prices or {})

    @property
    def limit(self) -> tuple[str, float]:
        """What is spent, and how much of it."""
        return next((unit, vars(self)[unit]) for unit in UNITS if vars(self)[unit] is not None)

    def spent(self, t: int, cpu_seconds: float, calls: Mapping[str, int]) -> float:
        """How much of the budget a run has spent after t steps, which took so many seconds and these calls."""
        if self.gradients is None:
            return cpu_seconds if self.steps is None else t
        prices = {"samples": 0} | dict(self.prices or {})
        return sum(number * prices.get(name, 1) for name, number in calls.items())

    def has_row(self, t: int, before: float, spent: float) -> bool:
        """Whether there is a row after t steps, the last of which took what is spent now and was not `before`."""
        unit, total = self.limit
        if spent >= total:
            return True
        if isinstance(self.every, Sequence):
            return t in self.every
        if self.every or unit == "steps":
            return t % (self.every or math.ceil(total / self.rows)) == 0
        gap = total / self.rows
        return spent >= (before // gap + 1) * gap


class Result:
    """A run: its last finite `state`, its `history`, why it stopped, and what looks wrong about it.

    `start` is the state at t = 0; `stop` is "steps", "seconds", "gradients", "diverged", "callback" or "interrupted";
    `nonfinite` names the variables that ceased to be finite, at the step `diverged_at`; `columns` are those of
    `evaluate`; `norms` are ||x - x_0||, ||y|| and ||v|| at every row; `refit` is there if it was asked for.
    """

    def __init__(self, problem: BilevelProblem, solver: Solver[Any], seed: int, budget: Budget, goal: str | None):
        self.problem, self.solver, self.budget, self.goal = problem, solver, budget, goal
        self.start = self.state = self._best_state = solver.init(problem, seed)
        self.stop, self.nonfinite = "", ""
        self.norms: list[tuple[float, float, float]] = []
        self.columns: list[str] = []
        self.refit: Refit | None = None
        self._rows: list[Row] = []
        self._best_row, self._is_called_off = 0, False
        self._calls, self._cpu_seconds, self._wall_seconds = Calls(), 0.0, 0.0
        self._file: Checkpoint | None = None

    @cached_property
    def history(self) -> "pd.DataFrame":
        """A row for each time at which the run was looked at."""
        import pandas as pd  # not sooner: whoever makes no table need not wait for it

        return pd.DataFrame(self._rows)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """The sentences of `diagnose`, none when all is well."""
        return tuple(diagnose(self))

    @property
    def best(self) -> tuple[State, Row] | None:
        """The state and the row where the column that was asked for is best."""
        return (self._best_state, self._rows[self._best_row]) if self.goal else None

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

    def _reason_to_stop(self) -> str:
        unit, total = self.budget.limit
        reasons = {"diverged": self.nonfinite, unit: self._spent() >= total, "callback": self._is_called_off}
        return next((reason for reason, holds in reasons.items() if holds), "")

    def _advance(self, bar: Any) -> None:
        """Steps until the next row is due. The clocks and the counter run only during a step."""
        is_due, spent = False, self._spent()
        while not is_due:
            cpu, wall, before = time.process_time(), time.perf_counter(), spent
            with counting(replace(self._calls)) as calls:
                state = self.solver.step(self.problem, self.state)
            self._calls = calls  # an interrupted step does not count
            self._cpu_seconds += time.process_time() - cpu
            self._wall_seconds += time.perf_counter() - wall
            self.nonfinite = _nonfinite_variables(state)
            if self.nonfinite:
                return
            self.state = state
            spent = self._spent()
            is_due = self.budget.has_row(state.t, before, spent)
            if self._file:
                self._file.add_step(state)
            if not bar.disable:
                bar.update(max(0.0, min(spent, bar.total) - bar.n))

    def _record(self, bar: Any, callback: Callback | None) -> None:
        """Add a row, and do what is due at every row."""
        row = self._add_row()
        for name in self.columns[:1]:
            bar.set_postfix({name: f"{row[name]:.4g}"})
        if self.goal is not None:
            name, best = str(self.goal).removeprefix("-"), self._rows[self._best_row]
            sign = 1 if name == self.goal else -1
            if name not in row:
                raise ValueError(f"best must be one of the columns {', '.join(row)}, got {self.goal!r}")
            if sign * row[name] < sign * best[name] or math.isnan(best[name]):
                self._best_row, self._best_state = len(self._rows) - 1, self.state
        if self._file:  # the lists grow on: the number of rows says how much of them counts
            about = {"limit": self.budget.limit, "number": len(self._rows), "calls": vars(self._calls)}
            self._file.keep(about | {name: vars(self)[name] for name in SAVED})
        self._is_called_off = bool(callback and not self.nonfinite and callback(self.state, row))

    def _add_row(self) -> Row:
        row: Row = {"step": self.state.t, "cpu_seconds": self._cpu_seconds, "wall_seconds": self._wall_seconds}
        row |= vars(self._calls)
        if self.nonfinite:  # there is nothing left to evaluate
            row = dict.fromkeys(self._rows[-1], math.nan) | row | {"step": self.state.t + 1}
        else:
            row |= _numbers("measure", self.solver.measure(self.problem, self.state), row)
            x, y = self.state.x.clone(), self.state.y.clone()
            found = _numbers("evaluate", self.problem.evaluate(self.state.x, self.state.y), row)
            if not (torch.equal(self.state.x, x) and torch.equal(self.state.y, y)):
                raise ValueError("evaluate changed x or y in place; let it work on a clone")
            if self._rows and {*found} != {*self.columns}:
                raise ValueError(f"evaluate must name the same columns at each row, got {[*found]}, had {self.columns}")
            self.columns = self.columns or [*found]
            row |= found
        self._rows.append(row)
        distance = torch.linalg.vector_norm(self.state.x - self.start.x).item()
        self.norms.append((distance, *(torch.linalg.vector_norm(z).item() for z in (self.state.y, self.state.v))))
        return row

    def _resume(self, file: Checkpoint) -> None:
        """Go on from where the file stands, if it is there."""
        self._file = file
        if found := file.load():
            vars(self).update({name: found[name] for name in SAVED})
            self._rows, self.norms = self._rows[: found["number"]], self.norms[: found["number"]]
            self.state, self._calls = file.here.state, Calls(**found["calls"])
            unit, total = self.budget.limit
            if self._spent() > total and found["limit"] != self.budget.limit:
                longer = f"it has {self._spent():g} {unit}, more than the {total:g} asked for"
                raise ValueError(f"{file.path} is of a longer run ({longer}); ask for as many, or give another file")


@dataclass(frozen=True)
class Results:
    """The same run from several seeds."""

    runs: dict[int, Result]

    @property
    def table(self) -> "pd.DataFrame":
        """All rows, by seed and number; the means over the seeds are `table.groupby("row").mean()`."""
        import pandas as pd

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
    best: str | None = None,
    callback: Callback | None = None,
    refit: bool = False,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Result:
    """Run `solver` (by name or class: with the steps that `suggest` finds) for `steps` steps, `seconds` of its own CPU
    time, or `gradients` gradients, where H v and J v count as `prices` say, {"Hv": 2.0, "Jv": 1.5}, by default 1 each.

    The history has a row at t = 0, every `every` steps or at the steps listed there (default: about `rows` rows, at
    equal parts of the budget), and at the end, with columns
        step, cpu_seconds, wall_seconds      of the algorithm alone: evaluation and files are not on the clock
        samples, gradients, Hv, Jv           counted where they happen
    and what `solver.measure` returns (the norm of v, if the method adds nothing), then what `problem.evaluate` does. A
    non-finite iterate ends the run and is recorded; Ctrl-C ends it and keeps what was done. `best` is a column to make
    small ("-test_accuracy": large), whose best state is kept. `callback(state, row)` is called at every row, and ends
    the run by returning True. `refit` solves the lower level at the last x (the best, if asked for) from a cold start.
    What looks wrong is told below the bar.

    With `checkpoint`, the run is saved in that file, at rows that are a second apart and at its end, and resumed from
    there if it is this very run: `bilevel_core.checkpoint` says how that is known. A resumed run is bit-equal to one
    that was never interrupted, also on a problem that changes as it is used, if that has `state_dict`.
    """
    from tqdm.auto import tqdm

    budget = Budget(steps, seconds, every, rows, gradients, prices)
    Allowed("a function of a state and a row", callable).or_none().check(callback=callback)
    solver = _with_options(problem, solver, seed, progress)
    result = Result(problem, solver, seed, budget, best)  # checks the problem
    if seconds is not None and problem.processes()[1] > 1:
        raise ValueError("processes have clocks of their own and would not stop together: give steps or gradients")
    if refit:
        full_samples(problem)  # or the refit would fail after all the work
    unit, total = budget.limit
    shape = "{l_bar}{bar}| {n:.4g}/{total:.4g} " + unit + " [{elapsed}<{remaining}{postfix}]"
    with ExitStack() as stack:
        if checkpoint is not None:
            file = Checkpoint(Path(checkpoint), problem, solver, result.start, seed=seed, best=best)
            result._resume(stack.enter_context(file))
        shown = {"desc": type(solver).__name__, "disable": not progress, "initial": result._spent()}
        try:
            with tqdm(total=total, bar_format=shape, **shown) as bar:
                if not result._rows:
                    result._record(bar, callback)
                while not (stop := result._reason_to_stop()):
                    result._advance(bar)
                    result._record(bar, callback)
                result.stop = stop
        except KeyboardInterrupt:
            result.stop = "interrupted"
        finally:
            if result._file:  # the last regular row: a resumed history equals an uninterrupted one
                result._file.save()
    if not result._rows or result._rows[-1]["step"] < result.state.t:
        result._add_row()
    if refit:
        result.refit = refit_at(problem, (result.best or [result.state])[0].x, seed)
    if progress and result.warnings:
        print(*result.warnings, sep="\n", file=sys.stderr)
    return result


def run_seeds(problem: BilevelProblem, solver: Method, seeds: Sequence[int], **options: Any) -> Results:
    """`run` with the same options for each of the seeds; a checkpoint NAME.ckpt becomes NAME_SEED.ckpt."""
    if not isinstance(seeds, Sequence) or not 0 < len({*seeds}) == len(seeds):
        raise ValueError(f"seeds must be a list of different whole numbers, got {seeds!r}")
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
    if isinstance(solver, str | type):
        suggestion = suggest(problem, solver, seed)
        solver = suggestion.solver
        if progress:
            print(suggestion.line, file=sys.stderr)
    if not isinstance(solver, Solver):
        raise ValueError(f"solver must be a Solver or the name of one, got {solver!r}; names: {', '.join(SOLVERS)}")
    return solver


def _numbers(source: str, given: Any, taken: Row) -> Row:
    """What `measure` or `evaluate` returned as plain numbers, if they have names of their own."""
    if not isinstance(given, Mapping) or any(not isinstance(name, str) or name in taken for name in given):
        raise ValueError(f"{source} must return a dict of numbers, by names other than {[*taken]}, got {given!r}")
    numbers = Row()
    for name, value in given.items():
        plain = value.item() if isinstance(value, Tensor | np.ndarray | np.generic) and value.ndim == 0 else value
        if not isinstance(plain, Real):
            raise ValueError(f"{source} must return numbers, got {value!r} as {name}")
        numbers[name] = int(plain) if isinstance(plain, Integral) else float(plain)
    return numbers


def _nonfinite_variables(state: State) -> str:
    """Which of x, y and v are not finite, as their sums show."""
    return "".join(name for name in "xyv" if not math.isfinite(vars(state)[name].sum().item()))
