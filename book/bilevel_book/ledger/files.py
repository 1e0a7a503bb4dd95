"""The ledgers' files: TOML with a list of entries for each section. A line break in a text is a blank.

Entries call functions of this package by name. A parameter that is named as a field of `Evidence` gets that field, so
that the first line of a function says what it looks at; the other arguments stand in the file.
"""

import inspect
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any


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


def call(function: Callable[..., Any], tables: dict[str, Any], *arguments: Any, **options: Any) -> Any:
    """The function with what the file gives it and with those tables, fields of `Evidence`, that it names."""
    wanted = inspect.signature(function).parameters
    return function(*arguments, **options, **{name: table for name, table in tables.items() if name in wanted})
