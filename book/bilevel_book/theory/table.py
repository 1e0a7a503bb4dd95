"""All numbered statements of the paper, read from statements.toml: status, functions and tests of each."""

import tomllib
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from bilevel_book.checks import checked_by

STATUS = ("as printed", "typo", "corrected")


@dataclass(frozen=True)
class Statement:
    """One numbered statement of the paper; statements.toml says what each field means."""

    label: str
    name: str
    status: str
    purpose: str
    idea: str
    finding: str
    functions: tuple[str, ...]
    as_printed: tuple[str, ...] = ()

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests that carry the label, such as `theory/test_lemmas.py::test_v_star_is_lipschitz`."""
        return checked_by().get(self.label, ())


def read(path: Path) -> tuple[Statement, ...]:
    """The statements of a file; an error names the file, the label and the key."""
    found: dict[str, Statement] = {}
    for position, entry in enumerate(tomllib.loads(path.read_text())["statement"], start=1):
        label = entry.get("label", f"statement {position}")
        problems = list(_problems(entry)) + (["label: given twice"] if label in found else [])
        if problems:
            raise ValueError(f"{path.name}, {label}: {'; '.join(problems)}")
        found[label] = Statement(**{key: tuple(v) if isinstance(v, list) else v for key, v in entry.items()})
    return tuple(found.values())


def _problems(entry: dict) -> Iterator[str]:
    """What is wrong with one entry of the file."""
    known = {field.name: field for field in fields(Statement)}
    for key in sorted(entry.keys() - known.keys()):
        yield f"{key}: unknown key, known are {', '.join(known)}"
    for key, field in known.items():
        if key not in entry:
            if field.default is MISSING:
                yield f"{key}: missing"
        elif field.type is str:
            if not (isinstance(entry[key], str) and entry[key]):
                yield f"{key}: a text is needed, got {entry[key]!r}"
            elif key == "status" and entry[key] not in STATUS:
                yield f"status: {entry[key]!r} is unknown, known are {', '.join(STATUS)}"
        elif not isinstance(entry[key], list):
            yield f"{key}: a list of functions is needed, got {entry[key]!r}"
        else:
            yield from (f"{key}: bilevel_book.theory has no {name}" for name in entry[key] if not _exists(name))


def _exists(name: str) -> bool:
    """Whether module.function is a function of bilevel_book.theory."""
    module, _, function = str(name).rpartition(".")
    path = f"{__package__}.{module}"
    return bool(module) and find_spec(path) is not None and callable(getattr(import_module(path), function, None))


STATEMENTS = read(Path(__file__).with_name("statements.toml"))
