"""A run on disk, in one file that knows its run by what it computes.

The file has the states before and after the first step, and before and after the last step that was saved. A resume
takes both steps again, and must get the same bits: other code, data, closures, buffers, seeds or options are refused
without reading any source. Not seen is what neither step computes: `evaluate`, and examples that neither step draws.
"""

import io
import os
import re
import sys
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import fields, is_dataclass
from glob import escape
from hashlib import sha256
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from filelock import FileLock, Timeout
from torch import Tensor

from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers.base import Solver, State

FORMAT = b"bilevel_core checkpoint 2\n"
PAUSE_SECONDS = 1.0  # from one save to the next, at least
SAVING_SHARE = 0.05  # of the time, at most: large states and long histories are saved less often
TIMES = (0, 1, 10, 100, 1000, 10_000)  # the steps t at which a schedule is looked at
PART, LOCK = ".bilevel-part", ".bilevel-lock"  # how the names of all files end that are ever deleted here
CONTAINERS = {"list": list, "tuple": tuple, "dict": dict, "OrderedDict": OrderedDict}
Classes = dict[str, type]


class Point(NamedTuple):
    """A run between two steps: the state of its method, and what `problem.state_dict()` returned there."""

    state: State
    problem: Any


class Checkpoint:
    """The file of one run, for one process at a time; of several that share a problem, the first one writes it."""

    def __init__(self, path: Path, problem: BilevelProblem, solver: Solver[Any], start: Point, **options: object):
        self.path, self.problem, self.solver, self.start = path, problem, solver, start
        self.rank, processes = problem.processes()
        options |= {"processes": processes, "problem": type(problem.local()).__qualname__}
        options |= {"solver": type(solver).__qualname__}
        options |= {f"solver's {name}": value for name, value in vars(solver).items()}
        self.options = {name: _described(value) for name, value in options.items()}
        self.latest: dict[str, Any] | None = None
        self.due, self.was_read_back, self.classes = 0.0, False, Classes()
        pack(start, self.classes, learn=True)
        self.lock = FileLock(path.with_name(f".{path.name}{LOCK}"))

    def __enter__(self) -> Self:
        if self.rank == 0:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            owner = Path(self.lock.lock_file)
            try:
                self.lock.acquire(blocking=False)
            except Timeout:
                pid = owner.read_text() if owner.exists() else "unknown"
                raise ValueError(f"{self.path} is in use by process {pid}: wait, or give another file") from None
            owner.write_text(str(os.getpid()))
            for leftover in self.path.parent.glob(f".{escape(self.path.name)}.*{PART}"):  # of a killed process
                leftover.unlink(missing_ok=True)
        return self

    def __exit__(self, *error: object) -> None:
        if self.lock.is_locked:
            with suppress(OSError):  # Windows keeps a file that is open
                Path(self.lock.lock_file).unlink()
            self.lock.release()

    def keep(self, content: dict[str, Any]) -> None:
        """Keep all that is needed to go on from a row: on disk at once, unless something was saved just now."""
        self.latest = content
        if time.monotonic() >= self.due:
            self.save()

    def save(self) -> None:
        """Write what was kept last. The first time it is read back: what cannot be resumed is refused at once."""
        if self.latest is None or self.rank > 0:
            return
        began, buffer = time.monotonic(), io.BytesIO()
        packed = pack(self.latest, self.classes)
        torch.save({"options": self.options, "torch": str(torch.__version__), "content": packed}, buffer)
        file = FORMAT + sha256(buffer.getbuffer()).digest() + buffer.getvalue()
        if not self.was_read_back and (place := difference(packed, pack(self._read(file)[1], self.classes))):
            raise ValueError(f"{self.path} would not be read as it is written: {place} differs")
        write_atomically(self.path, file)
        self.latest, self.was_read_back, now = None, True, time.monotonic()
        self.due = now + max(PAUSE_SECONDS, (now - began) / SAVING_SHARE)

    def load(self) -> dict[str, Any] | None:
        """What was saved, if anything, with the problem set back to there; ValueError if it is another run's."""
        exists = self.path.exists()
        (share,) = self.problem.average(torch.tensor([float(exists)]))
        if 0 < share < 1:
            raise ValueError(f"{self.path} must be there for all processes, or for none")
        if not exists:
            return None
        try:
            saved, content = self._read(self.path.read_bytes())
            for name, now in self.options.items():
                if (then := saved["options"][name]) != now:
                    raise ValueError(f"its {name} is {then}, now it is {now}")
            self._check_start(content["start"], content["here"])
            for step, before, after in (("first", "start", "first"), ("last", "previous", "here")):
                if content[before] and content[after]:  # if a step was taken
                    self._check_step(step, content[before], content[after], saved["torch"])
            self.problem.load_state_dict(content["here"].problem)
        except Exception as error:
            why = f"it lacks {error}" if isinstance(error, KeyError) else error
            raise ValueError(f"{self.path} is no checkpoint of this run ({why}); move it away to start anew") from error
        return content

    def _read(self, file: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
        head = len(FORMAT) + 32
        if not file.startswith(FORMAT) or file[len(FORMAT) : head] != sha256(file[head:]).digest():
            raise ValueError("it is damaged, or of another kind: its checksum does not fit")
        saved = torch.load(io.BytesIO(file[head:]), weights_only=True)  # runs no code
        return saved, unpack(saved["content"], self.classes)

    def _check_start(self, start: Point, here: Point) -> None:
        """Compare the state at t = 0, and what the steps since then have left alone in the problem."""
        if place := self._difference(start.state, self.start.state):
            raise ValueError(f"it started from another {place}")
        for name, value in dict(start.problem).items():
            if not self._difference(value, here.problem[name]) and self._difference(value, self.start.problem[name]):
                raise ValueError(f"its problem had another {name}")

    def _check_step(self, step: str, before: Point, after: Point, version: str) -> None:
        """Take a step again, and compare the bits."""
        self.problem.load_state_dict(before.problem)
        again = Point(self.solver.step(self.problem, before.state), self.problem.state_dict())
        if place := self._difference(after, again):
            now = str(torch.__version__)
            cause = "other code or data, or steps that do not repeat"
            cause = f"its torch was {version}, now it is {now}" if version != now else cause
            raise ValueError(f"its {step} step, taken again, gives another {place}: {cause}")

    def _difference(self, one: Any, other: Any) -> str:
        return difference(pack(one, self.classes), pack(other, self.classes))


def pack(value: Any, classes: Classes, learn: bool = False) -> Any:
    """A nest as what torch.load reads without running code: a tuple as ["tuple", ...], a class as ["module:Name", ...].

    Classes are those that are given, or found in a module; with `learn` they are added to those given.
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, complex, str):
        return value
    if kind is Tensor and not value.requires_grad:
        return value.clone() if value.untyped_storage().nbytes() > value.nbytes else value  # not what it is a view of
    if isinstance(value, np.ndarray | np.generic):
        return ["array" if isinstance(value, np.ndarray) else "number", torch.from_numpy(np.array(value))]
    if kind in CONTAINERS.values():
        parts = value.items() if isinstance(value, dict) else value
        return [kind.__name__, *(pack(part, classes, learn) for part in parts)]
    name = f"{kind.__module__}:{kind.__qualname__}"
    if learn:
        classes[name] = kind
    if (is_dataclass(kind) or issubclass(kind, tuple)) and _find_class(name, classes) is kind:
        names = [f.name for f in fields(kind)] if is_dataclass(kind) else value._fields
        return [name, {key: pack(getattr(value, key), classes, learn) for key in names}]
    allowed = "tensors, numbers, strings, lists, tuples, dicts, arrays, and dataclasses that can be imported"
    raise ValueError(f"a checkpoint cannot hold a {kind.__qualname__} ({value!r}); it can hold {allowed}")


def unpack(packed: Any, classes: Classes) -> Any:
    """The inverse of `pack`; no method of a class is called."""
    if not isinstance(packed, list):
        return packed
    kind, *parts = packed
    if kind in ("array", "number"):
        return parts[0].numpy() if kind == "array" else parts[0].numpy()[()]
    if kind in CONTAINERS:
        return CONTAINERS[kind](unpack(part, classes) for part in parts)
    cls, values = _find_class(kind, classes), {name: unpack(part, classes) for name, part in parts[0].items()}
    if isinstance(cls, type) and issubclass(cls, tuple):
        return tuple.__new__(cls, values.values())
    if not isinstance(cls, type) or not is_dataclass(cls):
        raise ValueError(f"there is no class {kind} here")
    made = object.__new__(cls)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def _find_class(name: str, classes: Classes) -> Any:
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = vars(found).get(part) if isinstance(found, type | ModuleType) else None
    return classes.get(name, found)


def difference(one: Any, other: Any) -> str:
    """Where two packed nests differ by a bit: the name of the field, or "value"; "" if they do not differ."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        a, b = (z.flatten().contiguous().view(torch.uint8) if z.numel() else z for z in (one, other))
        return "" if one.dtype == other.dtype and one.shape == other.shape and torch.equal(a, b) else "value"
    if isinstance(one, dict) and isinstance(other, dict) and [*one] == [*other]:
        places = ((name, difference(one[name], other[name])) for name in one)
        return next((name if place == "value" else place for name, place in places if place), "")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return next(filter(None, map(difference, one, other)), "")
    return "" if type(one) is type(other) and repr(one) == repr(other) else "value"


def _described(option: Any) -> str:
    """An option as it prints, a function by its values: it has no other name that would last."""
    values = []
    with suppress(Exception):  # a schedule may end
        for t in TIMES if isinstance(option, FunctionType) else ():
            values.append(option(t))
    return str(values) if values else re.sub(" at 0x[0-9a-fA-F]+", "", repr(option))


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a neighbour, flush it to disk, then move it into place: a crash leaves the old file or the new one."""
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}{PART}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError):
            error.filename = str(path)  # a full disk does not say where
        raise
