"""Run a method under a budget, and keep what happened."""

import io
import json
import math
import os
import re
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bilevel_core.counting import Calls, counting
from bilevel_core.files import append, rows_of, write_atomically
from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers import SOLVERS
from bilevel_core.solvers.solver import Solver, State

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Budget:
    """`steps` steps or `seconds` of CPU time; a row every `every` steps, or at those listed, or about `rows` in all."""

    steps: int | None = None
    seconds: float | None = None
    every: int | Sequence[int] | None = None
    rows: int = 100

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.seconds is None):
            raise ValueError(f"give either steps or seconds, got steps = {self.steps}, seconds = {self.seconds}")
        for name, value in (("steps", self.steps), ("rows", self.rows)):
            if value is not None and not _is_count(value):
                raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
        if self.seconds is not None and not 0 < self.seconds < math.inf:
            raise ValueError(f"seconds must be a positive number, got {self.seconds!r}")
        listed = list(self.every) if isinstance(self.every, Sequence) else [self.every or 0]
        if self.every is not None and not (all(map(_is_count, listed)) and listed == sorted({*listed}) != []):
            raise ValueError(
                f"every must be a whole number of at least 1, or an increasing list of such, got {self.every!r}"
            )

    def next_row(self, t: int, cpu: float) -> tuple[float, float]:
        """The step and the CPU seconds of which the first to be reached has the next row, for a run that is at t."""
        step, second = self.steps or math.inf, self.seconds or math.inf
        if isinstance(self.every, Sequence):
            step = min([step, *self.every[bisect_right(self.every, t) :]])
        elif self.every is None and self.seconds is not None:
            gap = self.seconds / self.rows
            second = min(second, (cpu // gap + 1) * gap)
        else:
            whole = self.every or math.ceil((self.steps or 1) / self.rows)
            step = min(step, (t // whole + 1) * whole)
        return step, second


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


@dataclass(frozen=True)
class Result:
    """The last finite state, the history, and why the run stopped.

    `stop` is "steps", "seconds", "diverged" or "interrupted"; `diverged_at` is the step whose iterate was not finite.
    """

    state: State
    history: "pd.DataFrame"
    stop: str
    diverged_at: int | None = None


def run(
    problem: BilevelProblem,
    solver: Solver[Any] | str,
    seed: int = 0,
    *,
    steps: int | None = None,
    seconds: float | None = None,
    every: int | Sequence[int] | None = None,
    rows: int = 100,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Result:
    """Run `solver` (or the one of that name, by default) for `steps` steps, or for `seconds` of its own CPU time.

    The history has a row at t = 0, every `every` steps or at the steps listed there (default: about `rows` rows), and
    at the end, with columns
        step, cpu_seconds, wall_seconds      of the algorithm alone: evaluation and files are not on the clock
        samples, gradients, Hv, Jv           counted where they happen
    and what `solver.measure` returns (the norm of v, if the method adds nothing), then what `problem.evaluate` does. A
    non-finite iterate ends the run and is recorded. Ctrl-C ends it and keeps what was done. With `checkpoint`, the run
    is saved there at every row, its rows in a file beside it (NAME.rows), and resumed from there if the file exists; a
    resumed run is bit-equal to one that was never interrupted, also on a problem that changes as it is used, if that
    has the methods `state_dict` and `load_state_dict` of torch's modules.
    """
    solver = SOLVERS[solver]() if isinstance(solver, str) else solver
    if not isinstance(solver, Solver):
        raise ValueError(f"solver must be a Solver or the name of one, got {solver!r}; names: {', '.join(SOLVERS)}")
    path = None if checkpoint is None else Path(checkpoint)
    return _Execution(problem, solver, seed, Budget(steps, seconds, every, rows), path).until_the_end(progress)


class _Execution:
    """A run under way: where it stands, and the rows so far."""

    def __init__(self, problem: BilevelProblem, solver: Solver[Any], seed: int, budget: Budget, path: Path | None):
        self.problem: Any = problem
        self.solver, self.budget, self.path = solver, budget, path
        self.state, self.diverged = solver.init(problem, seed), False
        self.calls, self.cpu, self.wall = Calls(), 0.0, 0.0
        self.counted = vars(self.calls).copy()
        self.rows: list[dict[str, float]] = []
        self.bytes = 0  # of the rows on disk
        # What must not change between a checkpoint and its resumption; a function's address is no part of a solver.
        settings = re.sub(r" at 0x[0-9a-f]+", "", repr(solver))
        self.identity = {"problem": type(problem).__name__, "solver": settings, "seed": str(seed)}
        if path is not None and path.exists():
            self.resume(path)

    def until_the_end(self, progress: bool) -> Result:
        import pandas as pd  # not sooner: whoever makes no table need not wait for it

        stop, at = "steps" if self.budget.seconds is None else "seconds", None
        try:
            with self.bar(progress) as bar:
                if not self.rows:
                    self.record(bar)
                while not (self.diverged or self.spent() >= bar.total):
                    self.advance(bar)
                    self.record(bar)
        except KeyboardInterrupt:
            # The file keeps the last regular row: a resumed history equals an uninterrupted one.
            if not self.rows or self.rows[-1]["step"] < self.state.t:
                self.rows.append(self.row())
            stop = "interrupted"
        if self.diverged:
            stop, at = "diverged", self.state.t + 1
        return Result(self.state, pd.DataFrame(self.rows), stop, at)

    def spent(self) -> float:
        return self.state.t if self.budget.seconds is None else self.cpu

    def bar(self, progress: bool) -> Any:
        from tqdm.auto import tqdm

        shown: dict[str, Any] = {"desc": type(self.solver).__name__, "unit": "step", "disable": not progress}
        if self.budget.seconds is not None:
            shown["bar_format"] = "{l_bar}{bar}| {n:.1f}/{total:.1f} s CPU [{elapsed}<{remaining}{postfix}]"
        return tqdm(total=self.budget.steps or self.budget.seconds, initial=self.spent(), **shown)

    def advance(self, bar: Any) -> None:
        """Steps until the next row is due. The clocks and the counter run only here."""
        last, until = self.budget.next_row(self.state.t, self.cpu)
        cpu, wall = time.process_time() - self.cpu, time.perf_counter() - self.wall
        with counting(self.calls):
            while True:
                state = self.solver.step(self.problem, self.state)
                self.cpu, self.wall = time.process_time() - cpu, time.perf_counter() - wall
                self.counted = vars(self.calls).copy()  # an interrupted step does not count
                if not _finite(state):
                    self.diverged = True
                    return
                self.state = state
                if not bar.disable:
                    bar.update(max(0.0, min(self.spent(), bar.total) - bar.n))
                    cpu, wall = time.process_time() - self.cpu, time.perf_counter() - self.wall
                if state.t >= last or self.cpu >= until:
                    return

    def row(self, bar: Any = None) -> dict[str, float]:
        row = {"step": self.state.t, "cpu_seconds": self.cpu, "wall_seconds": self.wall} | self.counted
        if self.diverged:  # there is nothing left to evaluate
            return dict.fromkeys(self.rows[-1], math.nan) | row | {"step": self.state.t + 1}
        numbers = self.problem.evaluate(self.state.x, self.state.y)
        for name in list(numbers)[: bar is not None]:
            bar.set_postfix({name: f"{numbers[name]:.4g}"})
        return row | self.solver.measure(self.problem, self.state) | numbers

    def record(self, bar: Any) -> None:
        self.rows.append(self.row(bar))
        if self.path is not None:
            self.save(self.path)

    def save(self, path: Path) -> None:
        """The new row is appended to the file of rows; then the checkpoint says how much of that file is its own."""
        line = json.dumps(self.rows[-1], default=float).encode() + b"\n"
        append(rows_of(path), self.bytes, line)
        self.bytes += len(line)
        content = {name: getattr(self, name) for name in ("identity", "diverged", "cpu", "wall", "counted", "bytes")}
        content["state"] = _leaves(self.state)
        if hasattr(self.problem, "load_state_dict"):
            content["problem"] = self.problem.state_dict()
        buffer = io.BytesIO()
        torch.save(content, buffer)
        write_atomically(path, buffer.getvalue())

    def resume(self, path: Path) -> None:
        try:
            content = torch.load(path, weights_only=True)
            identity, self.bytes = content["identity"], content["bytes"]
            rows = rows_of(path).read_bytes()[: self.bytes]
            if len(rows) < self.bytes:
                raise ValueError(f"{rows_of(path)} is too short")
        except Exception as error:
            raise ValueError(f"{path} is not a checkpoint of a run ({error}); move it away to start anew") from error
        for name, now in self.identity.items():
            if identity[name] != now:
                raise ValueError(f"{path} belongs to another run: its {name} is {identity[name]}, now it is {now}")
        for now, then in zip(_leaves(self.state), content["state"], strict=True):
            if isinstance(now, Tensor) and (now.shape, now.dtype) != (then.shape, then.dtype):
                raise ValueError(
                    f"{path} belongs to another problem: it holds a {tuple(then.shape)} {then.dtype} tensor "
                    f"where this one has {tuple(now.shape)} {now.dtype}"
                )
        self.state = _rebuilt(self.state, iter(content["state"]))
        self.diverged, self.cpu, self.wall = content["diverged"], content["cpu"], content["wall"]
        self.counted, self.calls = content["counted"], Calls(**content["counted"])
        self.rows = [json.loads(line) for line in rows.splitlines()]
        if hasattr(self.problem, "load_state_dict"):
            self.problem.load_state_dict(content["problem"])


def _finite(state: State) -> bool:
    # A finite x'x + y'v has finite entries, and costs the least; where that overflows, sums decide.
    x, y, v = state.x, state.y, state.v
    return math.isfinite(x.dot(x).item() + y.dot(v).item()) or math.isfinite(sum(z.sum().item() for z in (x, y, v)))


def _leaves(value: Any) -> list[Any]:
    """The tensors and numbers of a state one after the other, which torch.load reads without running any code."""
    parts = list(vars(value).values()) if is_dataclass(value) else value
    return [leaf for part in parts for leaf in _leaves(part)] if isinstance(parts, list | tuple) else [value]


def _rebuilt(template: Any, leaves: Iterator[Any]) -> Any:
    """The inverse of `_leaves`: shaped as `template`."""
    if is_dataclass(template) and not isinstance(template, type):
        return type(template)(**{name: _rebuilt(part, leaves) for name, part in vars(template).items()})
    if isinstance(template, tuple):
        return type(template)(*(_rebuilt(part, leaves) for part in template))
    return next(leaves)
