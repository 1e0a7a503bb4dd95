"""All numbered statements of the paper, read from statements.toml: status, functions and tests of each."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from bilevel_book.checks import checked_by

STATUS = ("as printed", "misprint", "false as printed")


@dataclass(frozen=True)
class Statement:
    """One numbered statement of the paper. Functions are named as `module.function` of bilevel_book.theory."""

    label: str  # in the paper
    name: str
    status: str  # one of STATUS: true; true up to a slip of the pen; with a counterexample inside the assumptions
    purpose: str  # what the statement is for
    idea: str  # of the proof
    finding: str  # what is wrong with the print, or how sharp it is
    functions: tuple[str, ...]  # the statement, corrected where the print is wrong
    as_printed: tuple[str, ...] = ()  # the printed statement, where it is another one

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests that carry the label, such as `theory/test_lemmas.py::test_v_star_is_lipschitz`."""
        return checked_by().get(self.label, ())


def read(path: Path) -> tuple[Statement, ...]:
    """The statements of a file, one table each."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["statement"]
    return tuple(
        Statement(**{key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()})
        for entry in entries
    )


STATEMENTS = read(Path(__file__).with_name("statements.toml"))
