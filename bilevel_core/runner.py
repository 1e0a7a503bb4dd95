"""Run a method under a budget, and keep what happened."""

import io
import math
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pandas as pd
import torch
from torch import Tensor
from tqdm.auto import tqdm

from bilevel_core.budget import Budget
from bilevel_core.counting import Calls, counting
from bilevel_core.files import write_atomically
from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers import SOLVERS
from bilevel_core.solvers.solver import Solver, State


@dataclass(frozen=True)
class Result:
    """The last finite state, the history, and why the run stopped.

    `stop` is "steps", "seconds", "diverged" or "interrupted"; `diverged_at` is the step whose iterate was not finite.
    """

    state: State
    history: pd.DataFrame
    stop: str
    diverged_at: int | None = None


@runtime_checkable
class Changing(Protocol):
    """A problem that changes as it is used, and can say how it stands and be put back, as modules of torch can."""

    def state_dict(self) -> dict[str, Tensor]: ...

    def load_state_dict(self, state: dict[str, Tensor]) -> object: ...


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
    is saved there at every row and resumed from there if the file exists; a resumed run is bit-equal to one that was
    never interrupted, also on a problem that is Changing.
    """
    solver = SOLVERS[solver]() if isinstance(solver, str) else solver
    if not isinstance(solver, Solver):
        raise ValueError(f"solver must be a Solver or the name of one, got {solver!r}; names: {', '.join(SOLVERS)}")
    execution = _Execution(problem, solver, seed, Budget(steps, seconds, every, rows))
    if checkpoint is not None:
        execution.resume(Path(checkpoint))
    return execution.until_the_end(progress)


class _Execution:
    """A run under way: the state, the clock, the counters and the rows so far."""

    def __init__(self, problem: BilevelProblem, solver: Solver[Any], seed: int, budget: Budget):
        self.problem, self.solver, self.seed, self.budget = problem, solver, seed, budget
        self.state = solver.init(problem, seed)
        self.cpu = self.wall = 0.0
        self.calls = Calls()
        self.rows: list[dict[str, float]] = []
        self.evaluated: list[str] = []
        self.stop: str | None = None
        self.diverged_at: int | None = None
        self.path: Path | None = None

    def until_the_end(self, progress: bool) -> Result:
        with self._bar(progress) as bar:
            try:
                if not self.rows:
                    self.record(bar)
                while not self.ended():
                    due_before = self.rows_due()
                    self.advance()
                    spent = self.state.t if self.budget.seconds is None else min(self.cpu, self.budget.seconds)
                    bar.update(max(0.0, spent - bar.n))
                    if self.stop or self.rows_due() > due_before or self.ended():
                        self.record(bar)
            except KeyboardInterrupt:
                # The file keeps the last regular row: a resumed history equals an uninterrupted one.
                if not self.rows or self.rows[-1]["step"] < self.state.t:
                    self.rows.append(self.row())
                return self.result("interrupted")
        return self.result(self.stop or ("seconds" if self.budget.steps is None else "steps"))

    def ended(self) -> bool:
        return bool(self.stop) or self.budget.is_spent(self.state.t, self.cpu)

    def rows_due(self) -> int:
        return self.budget.rows_due(self.state.t, self.cpu)

    def advance(self) -> None:
        with counting() as calls:
            cpu, wall = time.process_time(), time.perf_counter()
            state = self.solver.step(self.problem, self.state)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        if _finite(state):
            self.state = state
        else:
            self.stop, self.diverged_at = "diverged", state.t
        self.cpu, self.wall = self.cpu + cpu, self.wall + wall
        self.calls.add(calls)

    def row(self) -> dict[str, float]:
        clock = {
            "step": self.state.t,
            "cpu_seconds": self.cpu,
            "wall_seconds": self.wall,
            "samples": self.calls.samples,
            "gradients": self.calls.gradients,
            "Hv": self.calls.Hv,
            "Jv": self.calls.Jv,
        }
        if self.diverged_at is not None:  # there is nothing left to evaluate
            return dict.fromkeys(self.rows[-1], math.nan) | clock | {"step": self.diverged_at}
        numbers = self.problem.evaluate(self.state.x, self.state.y)
        self.evaluated = list(numbers)
        return clock | self.solver.measure(self.problem, self.state) | numbers

    def record(self, bar: tqdm) -> None:
        self.rows.append(self.row())
        for name in self.evaluated[:1]:
            bar.set_postfix({name: f"{self.rows[-1][name]:.4g}"})
        if self.path is not None:
            self.save(self.path)

    def result(self, stop: str) -> Result:
        return Result(self.state, pd.DataFrame(self.rows), stop, self.diverged_at)

    def _bar(self, progress: bool) -> tqdm:
        name = type(self.solver).__name__
        if self.budget.seconds is None:
            return tqdm(total=self.budget.steps, initial=self.state.t, desc=name, unit="step", disable=not progress)
        layout = "{l_bar}{bar}| {n:.1f}/{total:.1f} s CPU [{elapsed}<{remaining}{postfix}]"
        return tqdm(total=self.budget.seconds, initial=self.cpu, desc=name, bar_format=layout, disable=not progress)

    # Checkpoints

    def _identity(self) -> dict[str, str]:
        """What must not change between a checkpoint and its resumption."""
        solver = re.sub(r" at 0x[0-9a-f]+", "", repr(self.solver))  # a function's address is not part of it
        return {"problem": type(self.problem).__name__, "solver": solver, "seed": str(self.seed)}

    def save(self, path: Path) -> None:
        names = ("cpu", "wall", "rows", "stop", "diverged_at")
        content = {name: getattr(self, name) for name in names}
        content |= {"identity": self._identity(), "calls": vars(self.calls), "state": _to_dict(self.state)}
        if isinstance(self.problem, Changing):
            content["problem"] = self.problem.state_dict()
        buffer = io.BytesIO()
        torch.save(content, buffer)
        write_atomically(path, buffer.getvalue())

    def resume(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            return
        try:
            content = torch.load(path, weights_only=True)
            identity = content["identity"]
        except Exception as error:
            raise ValueError(f"{path} is not a checkpoint of a run ({error}); move it away to start anew") from error
        for name, now in self._identity().items():
            if identity[name] != now:
                raise ValueError(f"{path} belongs to another run: its {name} is {identity[name]}, now it is {now}")
        self.state = _from_dict(self.state, content["state"], path)
        self.calls = Calls(**content["calls"])
        if isinstance(self.problem, Changing):
            self.problem.load_state_dict(content["problem"])
        for name in ("cpu", "wall", "rows", "stop", "diverged_at"):
            setattr(self, name, content[name])


def _finite(state: State) -> bool:
    # The sum of a vector is finite unless an entry is not (or all but overflows): one pass, no mask.
    return math.isfinite(sum(part.sum().item() for part in (state.x, state.y, state.v)))


def _to_dict(value: Any) -> Any:
    """Dataclasses and tuples as plain dicts and lists, which torch.load reads without running any code."""
    if is_dataclass(value):
        return {f.name: _to_dict(getattr(value, f.name)) for f in fields(value)}
    return [_to_dict(part) for part in value] if isinstance(value, tuple) else value


def _from_dict(template: Any, stored: Any, path: Path) -> Any:
    """The inverse of `_to_dict`, shaped as `template`."""
    if is_dataclass(template) and not isinstance(template, type):
        return type(template)(
            **{f.name: _from_dict(getattr(template, f.name), stored[f.name], path) for f in fields(template)}
        )
    if isinstance(template, tuple):
        return type(template)(*(_from_dict(t, s, path) for t, s in zip(template, stored, strict=True)))
    if isinstance(template, Tensor) and (template.shape, template.dtype) != (stored.shape, stored.dtype):
        raise ValueError(
            f"{path} belongs to another problem: it holds a {tuple(stored.shape)} {stored.dtype} tensor "
            f"where this one has {tuple(template.shape)} {template.dtype}"
        )
    return stored
