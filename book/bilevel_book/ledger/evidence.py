"""What the ledgers look at, and the functions that they call by name.

The ledgers' files are TOML with a list of entries for each section; a line break in a text is a blank. A parameter of a
function that is named as a field of `Evidence` gets that field; the other arguments stand in the file.
"""

import inspect
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from bilevel_book.experiments import Plan, load, runs_of
from bilevel_book.experiments.report import CLEANING, REPRESENTATION
from bilevel_book.rates import RUNS, report
from bilevel_book.verdicts import paper


@dataclass(frozen=True)
class Evidence:
    """The histories of both experiments as `runs_of` gives them, the sentences, and the reports on the rates."""

    representation: pd.DataFrame
    cleaning: pd.DataFrame
    case: Callable[[str], paper.Sentence]  # the sentence of the protocol with this name
    rates: dict[str, pd.DataFrame]  # how far the slopes of a method are from the claimed one

    @classmethod
    def stored(cls) -> "Evidence":
        """What is in `results`; a group without runs is an error."""
        reports = {method: report(method) for method in RUNS}
        plan = Plan(load(CLEANING), paper.SIZE)
        judged = [paper.timed_runs(plan, group).assign(group=group) for group in ("stated", "same_steps")]
        cleaning = pd.concat([runs_of(CLEANING), *judged], ignore_index=True)
        return cls(runs_of(REPRESENTATION), cleaning, cache(paper.sentence), reports)


def call(function: Callable[..., Any], tables: dict[str, Any], *arguments: Any, **options: Any) -> Any:
    """The function with what the file gives it and with those tables, fields of `Evidence`, that it names."""
    wanted = inspect.signature(function).parameters
    return function(*arguments, **options, **{name: table for name, table in tables.items() if name in wanted})


def read_entries(path: Path) -> list[dict[str, Any]]:
    """All entries, in the order of the file, each with the name of its section."""
    content = _without_line_breaks(tomllib.loads(path.read_text(encoding="utf-8")))
    return [{"section": section} | entry for section, entries in content.items() for entry in entries]


def _without_line_breaks(given: Any) -> Any:
    if isinstance(given, dict):
        return {key: _without_line_breaks(part) for key, part in given.items()}
    if isinstance(given, list):
        return [_without_line_breaks(part) for part in given]
    return given.strip("\n").replace("\n", " ") if isinstance(given, str) else given
