"""Run a method under a budget, and keep what happened."""

import io
import math
import os
import re
import time
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from tqdm.auto import tqdm

from bilevel_core.counting import Calls, counting
from bilevel_core.files import write_atomically
from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers import SOLVERS
from bilevel_core.solvers.solver import Solver, State

CLOCK = ("step", "cpu_seconds", "wall_seconds", "samples", "gradients", "Hv", "Jv")
METHOD = (*CLOCK, "norm_v")  # then what `evaluate` returns


@dataclass(frozen=True)
class Result:
    """The last finite state, the history, and why the run stopped.

    `stop` is "steps", "seconds", "diverged" or "interrupted"; `diverged_at` is the step whose iterate was not finite.
    """

    state: State
    history: pd.DataFrame
    stop: str
    diverged_at: int | None = None


def run(
    problem: BilevelProblem,
    solver: Solver | str,
    seed: int = 0,
    *,
    steps: int | None = None,
    seconds: float | None = None,
    every: int | None = None,
    rows: int = 100,
    progress: bool = True,
    checkpoint: str | os.PathLike | None = None,
) -> Result:
    """Run `solver` (or the one of that name, by default) for `steps` steps, or for `seconds` of its own CPU time.

    The history has a row at t = 0, every `every` steps (default: about `rows` of them) and at the end, with columns
        step, cpu_seconds, wall_seconds      of the algorithm alone: evaluation and files are not on the clock
        samples, gradients, Hv, Jv           counted where they happen
        norm_v                               of the current v, so that one sees whether a projection is at work
    and what `problem.evaluate` returns. A non-finite iterate ends the run and is recorded. Ctrl-C ends it and keeps
    what was done. With `checkpoint`, the run is saved there at every row and resumed from there if the file exists;
    a resumed run is bit-equal to one that was never interrupted.
    """
    solver = SOLVERS[solver]() if isinstance(solver, str) else solver
    _check_arguments(solver, steps, seconds, every, rows)
    journey = _Journey(problem, solver, seed, steps, seconds, every, rows)
    if checkpoint is not None:
        journey.resume(Path(checkpoint))
    return journey.go(progress)


class _Journey:
    """A run under way: the state, the clock, the counters and the rows so far."""

    def __init__(self, problem, solver, seed, steps, seconds, every, rows):
        self.problem, self.solver, self.seed = problem, solver, seed
        self.steps, self.seconds = steps, seconds
        self.every, self.rows_wanted = every or (math.ceil(steps / rows) if steps else None), rows
        self.state = solver.init(problem, seed)
        self.cpu = self.wall = 0.0
        self.calls = Calls()
        self.rows: list[dict[str, float]] = []
        self.stop: str | None = None
        self.diverged_at: int | None = None
        self.path: Path | None = None

    def go(self, progress: bool) -> Result:
        with self._bar(progress) as bar:
            try:
                if not self.rows:
                    self.record(bar)
                while not self.ended():
                    mark = self.mark()
                    self.advance()
                    bar.update(1 if self.steps else max(0.0, min(self.cpu, self.seconds) - bar.n))
                    if self.stop or self.mark() > mark or self.ended():
                        self.record(bar)
            except KeyboardInterrupt:
                # The file keeps the last regular row: a resumed history equals an uninterrupted one.
                if not self.rows or self.rows[-1]["step"] < self.state.t:
                    self.rows.append(self.row())
                return self.result("interrupted")
        return self.result(self.stop or ("steps" if self.steps else "seconds"))

    def ended(self) -> bool:
        return bool(self.stop) or (self.state.t >= self.steps if self.steps else self.cpu >= self.seconds)

    def mark(self) -> int:
        """Grows by one whenever a row is due."""
        return self.state.t // self.every if self.every else int(self.rows_wanted * self.cpu / self.seconds)

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
        clock = dict(zip(CLOCK, (self.state.t, self.cpu, self.wall, *vars(self.calls).values()), strict=True))
        if self.diverged_at is not None:  # there is nothing left to evaluate
            return dict.fromkeys(self.rows[-1], math.nan) | clock | {"step": self.diverged_at}
        norm_v = torch.linalg.vector_norm(self.state.v).item()
        return clock | {"norm_v": norm_v} | self.problem.evaluate(self.state.x, self.state.y)

    def record(self, bar: tqdm) -> None:
        row = self.row()
        self.rows.append(row)
        for name in list(row)[len(METHOD) :][:1]:
            bar.set_postfix({name: f"{row[name]:.4g}"})
        if self.path is not None:
            self.save()

    def result(self, stop: str) -> Result:
        return Result(self.state, pd.DataFrame(self.rows), stop, self.diverged_at)

    def _bar(self, progress: bool) -> tqdm:
        name = type(self.solver).__name__
        if self.steps:
            return tqdm(total=self.steps, initial=self.state.t, desc=name, unit="step", disable=not progress)
        layout = "{l_bar}{bar}| {n:.1f}/{total:.1f} s CPU [{elapsed}<{remaining}{postfix}]"
        return tqdm(total=self.seconds, initial=self.cpu, desc=name, bar_format=layout, disable=not progress)

    # Checkpoints

    def _identity(self) -> dict[str, str]:
        """What must not change between a checkpoint and its resumption."""
        solver = re.sub(r" at 0x[0-9a-f]+", "", repr(self.solver))  # a function's address is not part of it
        return {"problem": type(self.problem).__name__, "solver": solver, "seed": str(self.seed)}

    def save(self) -> None:
        names = ("cpu", "wall", "rows", "stop", "diverged_at")
        content = {name: getattr(self, name) for name in names}
        content |= {"identity": self._identity(), "calls": vars(self.calls), "state": _to_dict(self.state)}
        buffer = io.BytesIO()
        torch.save(content, buffer)
        write_atomically(self.path, buffer.getvalue())

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
        for name in ("cpu", "wall", "rows", "stop", "diverged_at"):
            setattr(self, name, content[name])


def _check_arguments(solver: Solver, steps: int | None, seconds: float | None, every: int | None, rows: int) -> None:
    if not isinstance(solver, Solver):
        raise ValueError(f"solver must be a Solver or the name of one, got {solver!r}; names: {', '.join(SOLVERS)}")
    if (steps is None) == (seconds is None):
        raise ValueError(f"give either steps or seconds, got steps = {steps}, seconds = {seconds}")
    for name, value in (("steps", steps), ("every", every), ("rows", rows)):
        if value is not None and not (isinstance(value, int) and value >= 1):
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    if seconds is not None and not 0 < seconds < math.inf:
        raise ValueError(f"seconds must be a positive number, got {seconds!r}")


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
    if is_dataclass(template):
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
