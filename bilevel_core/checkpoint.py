"""A run on disk: written whole, checked when it is read, and refused to any other run."""

import io
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from glob import escape
from hashlib import sha256
from inspect import getsource
from pathlib import Path
from types import FunctionType
from typing import Any, cast

import torch
from torch import Tensor

from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Steps
from bilevel_core.solvers.base import Solver, State

FORMAT = b"bilevel_core checkpoint 1\n"
PAUSE = 1.0  # seconds from one save to the next: two flushes to disk take milliseconds, a row may take microseconds
TIMES = (0, 1, 10, 100, 1000, 10_000)  # when a schedule is looked at
PLAIN = (type(None), bool, int, float, complex, str, torch.dtype, torch.device, slice, range, Power, Steps)


class Checkpoint:
    """The file of one run, and beside it (NAME.rows) its rows; a SHA-256 of both stands in the first."""

    def __init__(self, path: Path, identity: dict[str, str]):
        self.path, self.identity = path, identity
        self.waiting: list[tuple[bytes, dict[str, Any]]] = []
        self.size, self.rows, self.due = 0, sha256(), 0.0  # what is on disk of the rows; when to save again

    def exists(self) -> bool:
        """Whether there is a run to go on with."""
        return self.path.exists()

    def add(self, row: object, content: dict[str, Any]) -> None:
        """Keep a row, and all that is needed to go on after it: on disk at once, unless one was saved just now."""
        self.waiting.append((json.dumps(row).encode() + b"\n", content))
        if time.monotonic() >= self.due:
            self.save()

    def save(self) -> None:
        """First the rows, then the file that says how many of their bytes are its own."""
        if self.waiting:
            lines, rows, buffer = b"".join(line for line, _ in self.waiting), self.rows.copy(), io.BytesIO()
            rows.update(lines)
            size = self.size + len(lines)
            told = {"identity": self.identity, "size": size, "rows": rows.hexdigest()}
            torch.save(self.waiting[-1][1] | told, buffer)
            append(rows_of(self.path), self.size, lines)
            write_atomically(self.path, FORMAT + sha256(buffer.getvalue()).digest() + buffer.getvalue())
            self.size, self.rows, self.waiting, self.due = size, rows, [], time.monotonic() + PAUSE

    def load(self, *names: str) -> tuple[list[Any], list[Any]]:
        """The rows, and the content of these names; a ValueError if they are damaged or another run's."""
        for left in self.path.parent.glob(f".{escape(self.path.name)}.*"):  # by a run that was killed
            left.unlink(missing_ok=True)
        try:
            content, lines = read(self.path)
            found = {name: content[name] for name in names}
            for name, now in self.identity.items():
                if (then := content["identity"].get(name, now)) != now:
                    raise ValueError(f"its {name} is {then}, now it is {now}")
        except Exception as error:
            why = f"it lacks {error}" if isinstance(error, KeyError) else error
            raise ValueError(f"{self.path} is no checkpoint of this run ({why}); move it away to start anew") from error
        self.size, self.rows = len(lines), sha256(lines)
        return [json.loads(line) for line in lines.splitlines()], list(found.values())


def read(path: Path) -> tuple[dict[str, Any], bytes]:
    """The content of a checkpoint and its rows, if their checksums agree."""
    file, head = path.read_bytes(), len(FORMAT) + 32
    if not file.startswith(FORMAT) or file[len(FORMAT) : head] != sha256(file[head:]).digest():
        raise ValueError("it is damaged, or of another kind: its checksum does not fit")
    content = torch.load(io.BytesIO(file[head:]), weights_only=True)  # runs no code
    lines = rows_of(path).read_bytes()[: content["size"]]
    if sha256(lines).hexdigest() != content["rows"]:
        raise ValueError(f"{rows_of(path).name} is damaged or too short: its checksum does not fit")
    return content, lines


def leaves(value: Any) -> list[Any]:
    """The tensors and numbers of a state one after the other, which torch.load reads without running any code."""
    parts = list(vars(value).values()) if is_dataclass(value) else value
    return [leaf for part in parts for leaf in leaves(part)] if isinstance(parts, list | tuple) else [value]


def rebuilt(template: Any, found: Iterator[Any]) -> Any:
    """The inverse of `leaves`: shaped as `template`."""
    if is_dataclass(template) and not isinstance(template, type):
        return type(template)(**{name: rebuilt(part, found) for name, part in vars(template).items()})
    if isinstance(template, tuple):
        parts = [rebuilt(part, found) for part in template]
        return type(template)(*parts) if hasattr(template, "_fields") else tuple(parts)
    return next(found)


def identity(
    problem: BilevelProblem, solver: Solver[Any], start: State, seed: int, before: dict[str, Any]
) -> dict[str, str]:
    """What must not change between a checkpoint and its resumption, by name.

    Of the problem: class, source, x_0, y_0 and all that it holds after `start`, tensors by every byte (a second for
    about a gigabyte); but for weights that require a gradient, which are to be learned, names with an underscore, which
    are caches, and numbers that are not as they were `before` the start, which count something. Of the method: class,
    source, options, schedules also by their values at some t. Of the library: its source. Not seen is what a function
    of your own takes from outside itself.
    """
    options = {f.name: getattr(solver, f.name) for f in fields(cast(Any, solver))}
    problem = getattr(problem, "on_this_rank", problem)  # of several processes, each tells of its own part
    kept = {k: v for k, v in vars(problem).items() if not (isinstance(v, PLAIN) and v != before.get(k, v))}
    facts = {"seed": seed, "start": [start.x, start.y]}
    for what, thing, held in (("solver", solver, options), ("problem", problem, kept)):
        own = [
            cls for cls in type(thing).__mro__ if cls.__module__.split(".")[0] not in ("bilevel_core", "abc", "typing")
        ]
        facts |= {what: type(thing).__qualname__, f"{what}'s source": [_try(getsource, cls) for cls in own]}
        facts |= {f"{what}'s {name}": value for name, value in held.items() if name[0] != "_"}
    facts |= {
        f"solver's {name}, in time": str([_try(v, t) for t in TIMES]) for name, v in options.items() if callable(v)
    }
    return {"library's source": library()} | {name: described(value) for name, value in facts.items()}


@cache
def library() -> str:
    """A digest of the source of the library, version included, without the experiments, which compute nothing."""
    folder = Path(__file__).parent
    files = (path for path in sorted(folder.rglob("*.py")) if path.relative_to(folder).parts[0] != "experiments")
    return described([path.read_text() for path in files])


def described(value: Any) -> str:
    """A plain value as it is written; all else by its kind and a digest of what it holds."""
    if isinstance(value, PLAIN):
        return repr(value)
    digest = sha256()
    for piece in _pieces(value, ()):
        digest.update(piece)
    return f"{getattr(value, '__name__', type(value).__name__)} with the digest {digest.hexdigest()[:12]}"


def _pieces(value: Any, around: tuple[int, ...]) -> Iterator[Any]:
    """The bytes of a value and of all that it holds; `around` are the ids of what holds it."""
    yield f"<{type(value).__name__} ".encode()
    if isinstance(value, (*PLAIN, bytes)):
        yield value if isinstance(value, bytes) else repr(value).encode()
    elif isinstance(value, Tensor) and value.layout == torch.strided:
        yield f"{value.dtype} {tuple(value.shape)}".encode()
        if not value.requires_grad:
            yield value.cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    elif id(value) not in around:
        for part in _parts(value):
            yield from _pieces(part, (*around, id(value)))


def _parts(value: Any) -> Iterable[Any]:
    """What a value holds; the rest is taken apart as pickle does it."""
    if isinstance(value, dict | set | frozenset):
        return value.items() if isinstance(value, dict) else sorted(value, key=repr)
    if isinstance(value, FunctionType):
        code, inside = value.__code__, [cell.cell_contents for cell in value.__closure__ or ()]
        return [code.co_code, code.co_names, code.co_consts, value.__defaults__, inside]
    if isinstance(value, type):
        return [value.__module__, value.__qualname__]
    return value if isinstance(value, list | tuple) else _try(value.__reduce_ex__, 4)


def _try(call: Callable[[Any], Any], argument: Any) -> Any:
    try:
        return call(argument)
    except Exception as error:  # a schedule that ends, a class typed at a prompt, a lock
        return type(error).__name__


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a neighbour, flush it to disk, then move it into place: a crash leaves the old file or the new one."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        append(temporary, 0, content)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def append(path: Path, size: int, content: bytes) -> None:
    """Cut a file to `size` bytes, write what follows, and flush it to disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(path, "r+b" if size else "wb") as file:
            file.truncate(size)
            file.seek(size)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        error.filename = str(path)  # a full disk does not say where
        raise


def rows_of(checkpoint: Path) -> Path:
    """The file beside a checkpoint that has the rows of its history, one JSON a line."""
    return checkpoint.with_name(f"{checkpoint.name}.rows")
