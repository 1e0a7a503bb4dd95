"""Run a method under a budget, and keep what happened."""

import copy
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from torch import equal

from bilevel_core.budget import Budget
from bilevel_core.checkpoint import Checkpoint, identity, leaves, rebuilt
from bilevel_core.checks import COUNT, Allowed
from bilevel_core.counting import Calls, counting
from bilevel_core.diagnosis import Seen, cold, warnings
from bilevel_core.problem import BilevelProblem, full_samples
from bilevel_core.refitting import refit as cold_start
from bilevel_core.results import Result, Results, Row
from bilevel_core.solvers import SOLVERS
from bilevel_core.solvers.base import Solver, State
from bilevel_core.stepsizes import suggest

Method = Solver[Any] | type[Solver[Any]] | str  # with options, or without: then `suggest` finds them


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

    With `checkpoint`, the run is saved there, at rows that are a second apart and at its end, with its rows in a file
    beside it (NAME.rows), and resumed from there if it is this very run (`checkpoint.identity`). A resumed run is
    bit-equal to one that was never interrupted, also on a problem that changes as it is used, if that has the methods
    `state_dict` and `load_state_dict` of torch's modules.
    """
    budget = Budget(steps, seconds, every, rows, gradients, prices)
    named = Allowed("the name of a column", lambda value: isinstance(value, str) and value.strip("-") != "")
    beside = Allowed(f"{COUNT.words}, beside best", lambda value: COUNT.test(value) and best is not None)
    named.or_none().check(best=best)
    beside.or_none().check(patience=patience)
    Allowed("a function of a state and a row", callable).or_none().check(callback=callback)
    if seconds is not None and isinstance(problem, BilevelProblem) and problem.local() is not problem:
        raise ValueError("processes have clocks of their own and would not stop together: give steps or gradients")
    solver = _solver(problem, solver, seed, progress)
    execution = _Execution(problem, solver, seed, budget, best, patience, callback)
    if refit:
        full_samples(problem)  # or the refit would fail after all the work
    if checkpoint is not None:
        execution.open(Path(checkpoint))
    return execution.until_the_end(progress, refit)


def run_seeds(problem: BilevelProblem, solver: Method, seeds: Sequence[int], **options: Any) -> Results:
    """`run` with the same options for each of the seeds; a checkpoint NAME.ckpt becomes NAME_SEED.ckpt."""
    if not isinstance(seeds, Sequence) or not 0 < len({*seeds}) == len(seeds):
        raise ValueError(f"seeds must be a list of different whole numbers, got {seeds!r}")
    solver = _solver(problem, solver, seeds[0], options.get("progress", True))
    path, runs = options.pop("checkpoint", None), {}
    for seed in seeds:
        place = path and Path(path).with_stem(f"{Path(path).stem}_{seed}")
        runs[seed] = run(problem, solver, seed, checkpoint=place, **options)
        if runs[seed].stop == "interrupted":
            break
    return Results(runs)


def _solver(problem: BilevelProblem, solver: Method, seed: int, progress: bool) -> Solver[Any]:
    """The method itself; of a name, with the options that `suggest` finds."""
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

    problem: Any
    solver: Solver[Any]
    seed: int
    budget: Budget
    goal: str | None
    patience: int | None
    callback: Callable[[State, Row], object] | None

    def __post_init__(self) -> None:
        self.before = getattr(self.problem, "__dict__", {}).copy()
        self.start = self.state = self.solver.init(self.problem, self.seed)
        self.calls, self.cpu, self.wall = Calls(), 0.0, 0.0
        self.counted = vars(self.calls).copy()
        self.rows: list[Row] = []
        self.seen: list[Seen] = []
        self.columns: list[str] = []  # of `evaluate`
        self.best = 0, self.state  # the number of the best row, and the state there
        self.diverged, self.called_off = "", False  # which of x, y and v are not finite; what the callback said
        self.file: Checkpoint | None = None

    def until_the_end(self, progress: bool, refit: bool) -> Result:
        import pandas as pd  # not sooner: whoever makes no table need not wait for it

        try:
            with self.bar(progress) as bar:
                if not self.rows:
                    self.record(bar)
                while not (stop := self.stop()):
                    self.advance(bar)
                    self.record(bar)
        except KeyboardInterrupt:
            stop = "interrupted"
        finally:
            if self.file:  # it keeps the last regular row: a resumed history equals an uninterrupted one
                self.file.save()
        if not self.rows or self.rows[-1]["step"] < self.state.t:
            self.add_row()
        history, at = pd.DataFrame(self.rows), self.state.t + 1 if self.diverged else None
        first = [(name, history[name].tolist()) for name in self.columns[:1]] or [("", [])]
        about = self.problem, self.solver, self.start, self.state
        best = (self.best[1], self.rows[self.best[0]]) if self.goal else None
        after = cold_start(self.problem, (best[0] if best else self.state).x, self.seed) if refit else None
        told = tuple(warnings(*about, self.seen, self.diverged, *first[0]))
        told += tuple(cold(after, best[1] if best else self.rows[-1])) if after else ()
        if progress and told:
            print(*told, sep="\n", file=sys.stderr)
        title = f"{type(self.solver).__name__} on {type(self.problem).__name__}"
        return Result(self.state, history, stop, at, told, title, tuple(self.columns), best, after)

    def spent(self) -> float:
        return self.budget.spent(self.state.t, self.cpu, self.counted)

    def stop(self) -> str:
        """Why to stop here, if so."""
        unit, total = self.budget.limit
        tired = self.patience is not None and len(self.rows) - 1 - self.best[0] >= self.patience
        why = {"diverged": self.diverged, unit: self.spent() >= total, "patience": tired, "callback": self.called_off}
        return next((name for name, holds in why.items() if holds), "")

    def bar(self, progress: bool) -> Any:
        from tqdm.auto import tqdm

        unit, total = self.budget.limit
        shown: dict[str, Any] = {"desc": type(self.solver).__name__, "unit": "step", "disable": not progress}
        if unit != "steps":
            unit = "s CPU" if unit == "seconds" else unit
            shown["bar_format"] = "{l_bar}{bar}| {n:.1f}/{total:.1f} " + unit + " [{elapsed}<{remaining}{postfix}]"
        return tqdm(total=total, initial=self.spent(), **shown)

    def advance(self, bar: Any) -> None:
        """Steps until the next row is due. The clocks and the counter run only here."""
        last, amount = self.budget.next_row(self.state.t, self.spent())
        step, problem, calls = self.solver.step, self.problem, vars(self.calls)
        process, clock = time.process_time, time.perf_counter
        cpu, wall = process() - self.cpu, clock() - self.wall
        with counting(self.calls):
            while True:
                state = step(problem, self.state)
                self.cpu, self.wall = process() - cpu, clock() - wall
                self.counted = calls.copy()  # an interrupted step does not count
                if lost := _lost(state):
                    self.diverged = lost
                    return
                self.state = state
                if not bar.disable:
                    bar.update(max(0.0, min(self.spent(), bar.total) - bar.n))
                    cpu, wall = process() - self.cpu, clock() - self.wall
                if state.t >= last or (amount < math.inf and self.spent() >= amount):
                    return

    def record(self, bar: Any) -> None:
        row = self.add_row()
        for name in self.columns[:1]:
            bar.set_postfix({name: f"{row[name]:.4g}"})
        if self.goal:
            name, sign, least = self.goal.removeprefix("-"), -1 if self.goal[0] == "-" else 1, self.rows[self.best[0]]
            if name not in row:
                raise ValueError(f"best must be one of the columns {', '.join(row)}, got {name!r}")
            if sign * row[name] < sign * least[name] or math.isnan(least[name]):
                self.best = len(self.rows) - 1, self.state
        if self.file:
            self.file.add([row, self.seen[-1]], self.content())
        self.called_off = bool(self.callback and not self.diverged and self.callback(self.state, row))

    def add_row(self) -> Row:
        row: Row = {"step": self.state.t, "cpu_seconds": self.cpu, "wall_seconds": self.wall}
        row |= {name: self.counted[name] for name in ("samples", "gradients", "Hv", "Jv")}
        if self.diverged:  # there is nothing left to evaluate
            row = dict.fromkeys(self.rows[-1], math.nan) | row | {"step": self.state.t + 1}
        else:
            row |= {name: _number(name, value) for name, value in self.solver.measure(self.problem, self.state).items()}
            row |= self.evaluated(row)
        self.rows.append(row)
        self.seen.append(Seen.at(self.state, self.start))
        return row

    def evaluated(self, taken: Row) -> Row:
        """What `evaluate` returns, if that is a dict of numbers by names of their own, the same at every row."""
        x, y = self.state.x, self.state.y
        kept, given = (x.clone(), y.clone()), self.problem.evaluate(x, y)
        if not (equal(x, kept[0]) and equal(y, kept[1])):
            raise ValueError("evaluate changed x or y in place; let it work on a clone")
        if not isinstance(given, Mapping) or any(not isinstance(name, str) or name in taken for name in given):
            raise ValueError(f"evaluate must return a dict of numbers, by names other than {[*taken]}, got {given!r}")
        if self.rows and {*given} != {*self.columns}:
            raise ValueError(f"evaluate must return the same names at every row, got {[*given]} after {self.columns}")
        self.columns = self.columns or [*given]
        return {name: _number(name, value) for name, value in given.items()}

    def content(self) -> dict[str, Any]:
        """All that is needed to go on from here; of a problem that changes, a copy."""
        saved = {name: getattr(self, name) for name in ("diverged", "cpu", "wall", "counted", "columns")}
        saved |= {"state": leaves(self.state), "best": (self.best[0], leaves(self.best[1])), "limit": self.budget.limit}
        return saved | {"problem": copy.deepcopy(self.problem.state_dict())}

    def open(self, path: Path) -> None:
        """Keep the run in this file, and go on from where it stands there."""
        facts = identity(self.problem, self.solver, self.start, self.seed, self.before)
        self.file = getattr(self.problem, "checkpoint", Checkpoint)(path, facts | {"best": str(self.goal)})
        if not self.file.exists():
            return
        found, content = self.file.load(*self.content())
        self.rows, self.seen = [row for row, _ in found], [Seen(*seen) for _, seen in found]
        self.diverged, self.cpu, self.wall, self.counted, self.columns, state, (number, best), limit, problem = content
        self.calls = Calls(**self.counted)
        self.state, self.best = rebuilt(self.start, iter(state)), (number, rebuilt(self.start, iter(best)))
        self.problem.load_state_dict(problem)
        unit, total = self.budget.limit
        if self.spent() > total and limit != self.budget.limit:
            longer = f"it has {self.spent():g} {unit}, more than the {total:g} asked for"
            raise ValueError(f"{path} is of a longer run ({longer}); ask for as many, or give another file")


def _number(name: str, value: Any) -> float:
    """A plain number, whatever it came as, so that a checkpoint that can be written can be read."""
    try:
        plain = value.item() if getattr(value, "ndim", None) == 0 else value
        if isinstance(plain, Real | Decimal):
            return int(plain) if isinstance(plain, Integral) else float(plain)
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"evaluate must return numbers, got {value!r} as {name}")


def _lost(state: State) -> str:
    """Which of x, y and v are not finite."""
    # A finite x'x + y'v has finite entries, and costs the least; where that overflows, sums decide.
    x, y, v = state.x, state.y, state.v
    if math.isfinite(x.dot(x).item() + y.dot(v).item()):
        return ""
    return "".join(name for name, z in zip("xyv", (x, y, v), strict=True) if not math.isfinite(z.sum().item()))
