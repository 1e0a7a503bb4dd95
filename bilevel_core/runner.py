"""Run a method under a budget, and keep what happened."""

import copy
import math
import os
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from bilevel_core.checkpoint import Checkpoint, Point
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
SAVED = (  # what a checkpoint has of a run, besides the point where it stands
    "start", "first", "previous", "best_row", "best_state", "cpu_seconds", "wall_seconds", "counted", "rows", "norms",
    "columns", "nonfinite",
)  # fmt: skip
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
        given = {"steps": self.steps, "seconds": self.seconds, "gradients": self.gradients}
        if list(given.values()).count(None) != 2:
            raise ValueError(f"give either steps or seconds or gradients, got {given}")
        COUNT.or_none().check(steps=self.steps)
        POSITIVE.or_none().check(seconds=self.seconds, gradients=self.gradients)
        COUNT.check(rows=self.rows)
        every = list(self.every) if isinstance(self.every, Sequence) else [self.every]
        if self.every is not None and not (all(map(COUNT.test, every)) and every == sorted({*every}) != []):
            raise ValueError(f"every must be {COUNT.words}, or an increasing list of such, got {self.every!r}")
        prices = self.prices if isinstance(self.prices, Mapping) else {"prices": self.prices}
        priced = self.gradients and {*prices} <= {"Hv", "Jv"} and all(map(POSITIVE.test, prices.values()))
        if self.prices is not None and not priced:
            like = 'numbers like {"Hv": 2.0, "Jv": 1.5}, for a budget of gradients'
            raise ValueError(f"prices must be {like}, got {self.prices!r}")

    @property
    def limit(self) -> tuple[str, float]:
        """What is spent, and how much of it."""
        given = {"steps": self.steps, "seconds": self.seconds, "gradients": self.gradients}
        return next((unit, total) for unit, total in given.items() if total is not None)

    def spent(self, t: int, cpu_seconds: float, calls: Mapping[str, int]) -> float:
        """How much of the budget a run has spent after t steps, which took so many seconds and these calls."""
        if self.gradients is None:
            return cpu_seconds if self.steps is None else t
        prices = {"samples": 0} | dict(self.prices or {})
        return sum(number * prices.get(name, 1) for name, number in calls.items())

    def next_row(self, t: int, spent: float) -> tuple[float, float]:
        """The step, and the amount spent, of which the first to be reached has the next row, for a run that is at t."""
        unit, total = self.limit
        step, amount = (total, math.inf) if unit == "steps" else (math.inf, total)
        if isinstance(self.every, Sequence):
            step = min([step, *self.every[bisect_right(self.every, t) :]])
        elif self.every or unit == "steps":
            period = self.every or math.ceil(total / self.rows)
            step = min(step, (t // period + 1) * period)
        else:
            gap = total / self.rows
            amount = min(amount, (spent // gap + 1) * gap)
        return step, amount


@dataclass(frozen=True, repr=False)
class Result:
    """The last finite state, the history, why the run stopped, and what looks wrong about it.

    `stop` is "steps", "seconds", "gradients", "diverged", "patience", "callback" or "interrupted"; `diverged_at` is the
    step at which the variables named in `nonfinite` ceased to be finite; `columns` are those of `evaluate`; `norms` are
    ||x - x_0||, ||y|| and ||v|| at every row. If asked for: `best`, the state and row at its best; `refit`. `warnings`
    are the sentences of `diagnose`, none when all is well.
    """

    problem: BilevelProblem
    solver: Solver[Any]
    start: State
    state: State
    history: "pd.DataFrame"
    stop: str
    norms: Sequence[tuple[float, float, float]]
    columns: Sequence[str] = ()
    diverged_at: int | None = None
    nonfinite: str = ""
    best: tuple[State, Row] | None = None
    refit: Refit | None = None
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        first, last = self.history.iloc[0], self.history.iloc[-1]
        numbers = [f"{name} {first[name]:.4g} -> {last[name]:.4g}" for name in self.columns[:1]]
        numbers += [f"{len(self.warnings)} in .warnings"] * bool(self.warnings)
        title = f"{type(self.solver).__name__} on {type(self.problem).__name__}"
        return f"<{title}, {last.step:.0f} steps, stop: {', '.join([self.stop, *numbers])}>"


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
    patience: int | None = None,
    callback: Callable[[State, Row], object] | None = None,
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
    small ("-test_accuracy": large), whose best state is kept; with `patience` the run ends after that many rows without
    a better one. `callback(state, row)` is called at every row, and ends the run by returning True. `refit` solves the
    lower level at the last x (the best, if asked for) from a cold start. What looks wrong is told below the bar.

    With `checkpoint`, the run is saved in that file, at rows that are a second apart and at its end, and resumed from
    there if it is this very run: `bilevel_core.checkpoint` says how that is known. A resumed run is bit-equal to one
    that was never interrupted, also on a problem that changes as it is used, if that has `state_dict`.
    """
    budget = Budget(steps, seconds, every, rows, gradients, prices)
    beside_best = Allowed(f"{COUNT.words}, beside best", lambda value: COUNT.test(value) and best is not None)
    beside_best.or_none().check(patience=patience)
    Allowed("a function of a state and a row", callable).or_none().check(callback=callback)
    solver = _with_options(problem, solver, seed, progress)
    execution = _Execution(problem, solver, seed, budget, best, patience, callback)  # checks the problem
    if seconds is not None and problem.processes()[1] > 1:
        raise ValueError("processes have clocks of their own and would not stop together: give steps or gradients")
    if refit:
        full_samples(problem)  # or the refit would fail after all the work
    return execution.execute(progress, refit, checkpoint)


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


@dataclass
class _Execution:
    """A run under way: where it stands, and the rows so far."""

    problem: BilevelProblem
    solver: Solver[Any]
    seed: int
    budget: Budget
    goal: str | None
    patience: int | None
    callback: Callable[[State, Row], object] | None

    def __post_init__(self) -> None:
        self.state = self.best_state = self.solver.init(self.problem, self.seed)
        self.start, self.best_row = self.point(), 0
        self.first: Point | None = None  # after the first step
        self.previous: Point | None = None  # before the last step
        self.calls, self.cpu_seconds, self.wall_seconds = Calls(), 0.0, 0.0
        self.counted = vars(self.calls).copy()
        self.rows: list[Row] = []
        self.norms: list[tuple[float, float, float]] = []
        self.columns: list[str] = []  # of `evaluate`
        self.nonfinite, self.is_called_off = "", False  # which of x, y and v are not finite; what the callback said
        self.file: Checkpoint | None = None

    def execute(self, progress: bool, refit: bool, checkpoint: str | os.PathLike[str] | None) -> Result:
        import pandas as pd  # not sooner: whoever makes no table need not wait for it
        from tqdm.auto import tqdm

        unit, total = self.budget.limit
        with ExitStack() as stack:
            if checkpoint is not None:
                about = Path(checkpoint), self.problem, self.solver, self.start
                self.file = stack.enter_context(Checkpoint(*about, seed=self.seed, best=self.goal))
                self.resume(self.file)
            shown = {"desc": type(self.solver).__name__, "disable": not progress, "initial": self.spent()}
            shape = "{l_bar}{bar}| {n:.4g}/{total:.4g} " + unit + " [{elapsed}<{remaining}{postfix}]"
            try:
                with tqdm(total=total, bar_format=shape, **shown) as bar:
                    if not self.rows:
                        self.record(bar)
                    while not (stop := self.stop()):
                        self.advance(bar)
                        self.record(bar)
            except KeyboardInterrupt:
                stop = "interrupted"
            finally:
                if self.file:  # the last regular row: a resumed history equals an uninterrupted one
                    self.file.save()
        if not self.rows or self.rows[-1]["step"] < self.state.t:
            self.add_row()
        best = (self.best_state, self.rows[self.best_row]) if self.goal else None
        result = Result(
            self.problem, self.solver, self.start.state, self.state, pd.DataFrame(self.rows), stop, self.norms,
            self.columns, self.state.t + 1 if self.nonfinite else None, self.nonfinite, best,
            refit_at(self.problem, (best[0] if best else self.state).x, self.seed) if refit else None,
        )  # fmt: skip
        result = replace(result, warnings=tuple(diagnose(result)))
        if progress and result.warnings:
            print(*result.warnings, sep="\n", file=sys.stderr)
        return result

    def spent(self) -> float:
        return self.budget.spent(self.state.t, self.cpu_seconds, self.counted)

    def stop(self) -> str:
        """Why to stop here, if so."""
        out_of_patience = self.patience is not None and len(self.rows) - 1 - self.best_row >= self.patience
        unit, total = self.budget.limit
        reasons = {"diverged": self.nonfinite, unit: self.spent() >= total, "patience": out_of_patience}
        return next((reason for reason, holds in reasons.items() if holds), "callback" if self.is_called_off else "")

    def advance(self, bar: Any) -> None:
        """Steps until the next row is due. The clocks and the counter run only here."""
        last, amount = self.budget.next_row(self.state.t, self.spent())
        here = self.point() if self.file else None
        cpu_clock, wall_clock, calls = time.process_time, time.perf_counter, vars(self.calls)
        cpu, wall = cpu_clock() - self.cpu_seconds, wall_clock() - self.wall_seconds
        with counting(self.calls):
            while True:
                state = self.solver.step(self.problem, self.state)
                self.cpu_seconds, self.wall_seconds = cpu_clock() - cpu, wall_clock() - wall
                self.counted = calls.copy()  # an interrupted step does not count
                self.nonfinite = _nonfinite_variables(state)
                if self.nonfinite:
                    return
                self.state, self.previous = state, here
                if self.file:
                    here = self.point()
                    self.first = self.first or here
                if not bar.disable:
                    bar.update(max(0.0, min(self.spent(), bar.total) - bar.n))
                if self.file or not bar.disable:  # which are not on the clocks
                    cpu, wall = cpu_clock() - self.cpu_seconds, wall_clock() - self.wall_seconds
                if state.t >= last or (amount < math.inf and self.spent() >= amount):
                    return

    def record(self, bar: Any) -> None:
        """Add a row, and do what is due at every row."""
        row = self.add_row()
        for name in self.columns[:1]:
            bar.set_postfix({name: f"{row[name]:.4g}"})
        if self.goal is not None:
            name, best = str(self.goal).removeprefix("-"), self.rows[self.best_row]
            sign = 1 if name == self.goal else -1
            if name not in row:
                raise ValueError(f"best must be one of the columns {', '.join(row)}, got {self.goal!r}")
            if sign * row[name] < sign * best[name] or math.isnan(best[name]):
                self.best_row, self.best_state = len(self.rows) - 1, self.state
        if self.file:
            self.file.keep(self.content())
        self.is_called_off = bool(self.callback and not self.nonfinite and self.callback(self.state, row))

    def add_row(self) -> Row:
        row: Row = {"step": self.state.t, "cpu_seconds": self.cpu_seconds, "wall_seconds": self.wall_seconds}
        row |= {name: self.counted[name] for name in ("samples", "gradients", "Hv", "Jv")}
        if self.nonfinite:  # there is nothing left to evaluate
            row = dict.fromkeys(self.rows[-1], math.nan) | row | {"step": self.state.t + 1}
        else:
            row |= _numbers("measure", self.solver.measure(self.problem, self.state), row)
            x, y = self.state.x.clone(), self.state.y.clone()
            found = _numbers("evaluate", self.problem.evaluate(self.state.x, self.state.y), row)
            if not (torch.equal(self.state.x, x) and torch.equal(self.state.y, y)):
                raise ValueError("evaluate changed x or y in place; let it work on a clone")
            if self.rows and {*found} != {*self.columns}:
                raise ValueError(
                    f"evaluate must name the same columns at each row, got {[*found]} after {self.columns}"
                )
            self.columns = self.columns or [*found]
            row |= found
        self.rows.append(row)
        distance = torch.linalg.vector_norm(self.state.x - self.start.state.x).item()
        self.norms.append((distance, *(torch.linalg.vector_norm(z).item() for z in (self.state.y, self.state.v))))
        return row

    def point(self) -> Point:
        return Point(self.state, copy.deepcopy(self.problem.state_dict()))

    def content(self) -> dict[str, Any]:
        """All that is needed to go on from here. The lists grow on: the number of rows says how much of them counts."""
        here = {"here": self.point(), "limit": self.budget.limit, "number": len(self.rows)}
        return here | {name: vars(self)[name] for name in SAVED}

    def resume(self, file: Checkpoint) -> None:
        """Go on from where the file stands, if it is there."""
        if found := file.load():
            vars(self).update({name: found[name] for name in SAVED})
            self.rows, self.norms = self.rows[: found["number"]], self.norms[: found["number"]]
            self.state, self.calls = found["here"].state, Calls(**self.counted)
            unit, total = self.budget.limit
            if self.spent() > total and found["limit"] != self.budget.limit:
                longer = f"it has {self.spent():g} {unit}, more than the {total:g} asked for"
                raise ValueError(f"{file.path} is of a longer run ({longer}); ask for as many, or give another file")


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
    """Which of x, y and v are not finite."""
    # A finite x'x + y'v has finite entries, and costs the least; where that overflows, sums decide.
    x, y, v = state.x, state.y, state.v
    if math.isfinite(x.dot(x).item() + y.dot(v).item()):
        return ""
    return "".join(name for name, z in zip("xyv", (x, y, v), strict=True) if not math.isfinite(z.sum().item()))
