"""A run on disk, in one file that knows its run by what it computes.

The file has the states before and after the first step and the last step saved. A resume takes both steps again, and
must get the same bits: other code, data, closures, buffers, seeds or options are refused without reading any source.
Not seen is what neither step computes: `evaluate`, examples not drawn, and what a function as an option is later.
"""

import copy
import io
import json
import math
import os
import re
import time
from collections.abc import Iterator
from dataclasses import is_dataclass
from glob import escape
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from filelock import FileLock, Timeout
from torch import Tensor

from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers.base import Solver, State

FORMAT = b"bilevel_core checkpoint 4, sha256 "  # then a line of what the run is, then its content
PAUSE_SECONDS = 1.0  # from one save to the next, at least
SAVING_SHARE = 0.05  # of the time, at most: large states and long histories are saved less often
PART, LOCK = ".bilevel-part", ".bilevel-lock"  # how the names of all files end that are ever deleted here
NUMPY: list[Any] = [bytes, np.ndarray, np.dtype, np.float64().__reduce__()[0], np.array(()).__reduce__()[0]]
NUMPY += [type(np.dtype(code)) for code in np.typecodes["All"]]  # all that arrays and their numbers are pickled with


class Snapshot(NamedTuple):
    """A run between two steps: the state of its method, and what `problem.state_dict()` returned there."""

    state: State
    problem: dict[str, Any]


class ForeignCheckpoint(ValueError):
    """The file is damaged, or of another run."""


class Checkpoint:
    """The file of one run, for one process at a time; of several that share a problem, the first one writes it."""

    def __init__(self, path: Path, problem: BilevelProblem, solver: Solver[Any], start: State, **options: object):
        self.path, self.problem, self.solver = path, problem, solver
        self.rank, processes = problem.processes()
        names = {"problem": type(problem.local()).__qualname__, "solver": type(solver).__qualname__}
        options |= {"processes": processes} | names | {f"solver's {key}": value for key, value in vars(solver).items()}
        # By their words; the address of a function is another one in each process.
        self.options = {name: re.sub(" at 0x[0-9a-fA-F]+", "", repr(value)) for name, value in options.items()}
        here = self._point(start)  # "first" is after the first step, "previous" before the last one
        self.points: dict[str, Any] = {"start": here, "first": None, "previous": None, "here": here}
        self.classes = {kind for _, (kind, *_) in _leaves(here) if isinstance(kind, type)}  # that a file may make
        self.latest: dict[str, Any] | None = None
        self.due = -math.inf
        self.lock_file = path.with_name(f".{path.name}{LOCK}")  # the lock, in which is the number of the process
        self.lock = FileLock(self.lock_file)

    def __enter__(self) -> Self:
        if self.rank == 0:
            try:
                self.lock.acquire(blocking=False)
            except Timeout:
                other = self.lock_file.read_text(encoding="utf-8")
                raise ValueError(f"{self.path} is in use by process {other}") from None
            self.lock_file.write_text(str(os.getpid()), encoding="utf-8")
            for leftover in self.path.parent.glob(f".{escape(self.path.name)}.*{PART}"):  # of a killed process
                leftover.unlink()
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.save()  # the last regular row: a resumed history equals an uninterrupted one
        finally:
            if self.lock.is_locked:
                self.lock_file.unlink(missing_ok=True)
                self.lock.release()

    def add_step(self, state: State) -> None:
        """Note where a step has led."""
        self.points |= {"previous": self.points["here"], "here": self._point(state)}
        self.points["first"] = self.points["first"] or self.points["here"]

    def keep(self, content: dict[str, Any]) -> None:
        """Keep all that is needed to go on from a row: on disk at once, unless something was saved just now."""
        self.latest = content | self.points
        if time.monotonic() >= self.due:
            self.save()

    def save(self) -> None:
        """Write what was kept last, unless it would not be read as it is: what cannot be resumed is refused at once."""
        if self.latest is None or self.rank > 0:
            return
        began, buffer = time.monotonic(), io.BytesIO()
        about = {"torch": str(torch.__version__), "options": self.options}
        try:
            torch.save(self.latest, buffer)
            body = json.dumps(about).encode() + b"\n" + buffer.getvalue()
            file = FORMAT + sha256(body).hexdigest().encode() + b"\n" + body
            if place := difference(self.latest, self._read(file)[0]):
                raise ValueError(f"{place} would not be read as it is written")
        except Exception as error:
            words = str(error).partition("error: ")[2] or str(error)  # torch says much more
            why = words.partition(" by default")[0].strip().splitlines()[0]
            allowed = "nests of tensors, numbers, words and arrays, and what the first state is made of"
            raise ValueError(f"{self.path} cannot hold this run ({why}); it can hold {allowed}") from error
        write_atomically(self.path, file)
        self.latest, now = None, time.monotonic()
        self.due = now + max(PAUSE_SECONDS, (now - began) / SAVING_SHARE)

    def load(self) -> dict[str, Any] | None:
        """What was kept, if anything, with the problem set back to there."""
        (share,) = self.problem.average(torch.tensor([float(self.path.exists())]))
        if share == 0:
            return None
        if share < 1:
            raise ValueError(f"{self.path} must be there for all processes, or for none")
        try:
            content, version = self._read(self.path.read_bytes())
            start, first, previous, here = (content[name] for name in self.points)
            fixed = [name for name, value in start.problem.items() if not difference(value, here.problem[name])]
            then, now = ((p.state, {name: p.problem[name] for name in fixed}) for p in (start, self.points["start"]))
            if place := difference(then, now):  # in the state at t = 0, or in what the steps have left alone
                raise ValueError(f"it started from another {place}")
            if first:
                self._check_step("first", start, first, version)
                self._check_step("last", previous, here, version)  # and leaves the problem there
        except Exception as error:
            raise ForeignCheckpoint(f"{self.path} is no checkpoint of this run ({error}); move it away") from error
        self.points = {name: content[name] for name in self.points}
        return content

    def _point(self, state: State) -> Snapshot:
        return Snapshot(state, copy.deepcopy(self.problem.state_dict()))

    def _read(self, file: bytes) -> tuple[dict[str, Any], str]:
        """The content of a file, if it is of a run with these options, and the torch that wrote it."""
        head, _, body = file.partition(b"\n")
        if head != FORMAT + sha256(body).hexdigest().encode():
            raise ValueError("it is damaged, or of another kind: its checksum does not fit")
        about, _, content = body.partition(b"\n")
        saved = json.loads(about)
        for name, now in self.options.items():
            if (then := saved["options"][name]) != now:
                raise ValueError(f"its {name} is {then}, now it is {now}")
        with torch.serialization.safe_globals([*NUMPY, *self.classes]):
            return torch.load(io.BytesIO(content), weights_only=True), saved["torch"]

    def _check_step(self, step: str, before: Snapshot, after: Snapshot, version: str) -> None:
        """Take a step again, and compare the bits."""
        self.problem.load_state_dict(before.problem)
        again = Snapshot(self.solver.step(self.problem, before.state), self.problem.state_dict())
        if place := difference(after, again):
            cause = "other code or data, or steps that do not repeat"
            if version != torch.__version__:
                cause = f"its torch was {version}, now it is {torch.__version__}"
            raise ValueError(f"its {step} step, taken again, gives another {place}: {cause}")


def difference(one: Any, other: Any) -> str:
    """Where two nests differ by a bit: the name of the field, or "value"; "" if they do not differ."""
    pairs = zip_longest(_leaves(one), _leaves(other), fillvalue=("value", None))
    return next((name for (name, mine), (_, theirs) in pairs if mine != theirs), "")


def _leaves(value: Any, name: str = "value") -> Iterator[tuple[str, Any]]:
    """The kinds, keys and bits that a nest is made of, outermost first, each as (name of its field, (kind, ...))."""
    if isinstance(value, Tensor | np.ndarray):
        bits = value if isinstance(value, np.ndarray) else value.detach().cpu().reshape(-1).view(torch.uint8).numpy()
        yield name, (value.dtype, value.shape, bits.tobytes())
    elif isinstance(value, list | tuple | dict) or is_dataclass(value):
        nest = vars(value) if is_dataclass(value) else value
        parts = nest if isinstance(nest, dict) else dict(enumerate(nest))
        yield name, (type(value), [*parts])
        for key, part in parts.items():
            yield from _leaves(part, key if isinstance(key, str) else name)
    else:
        yield name, (type(value), repr(value))


def write_atomically(path: Path, content: bytes) -> None:
    """Write a neighbour, flush it to disk, then move it into place: a crash leaves the old file or the new one."""
    part = path.with_name(f".{path.name}.{os.getpid()}{PART}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
