"""The ledgers' files: a list of sections, and entries whose keys are all known. A line break in a text is a blank."""

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from bilevel_book.experiments.files import at


def read(path: Path, kind: str, keys: dict[str, type], optional: dict[str, type]) -> tuple[tuple[str, ...], list[dict]]:
    """The sections and the entries `[[kind]]`, each with all of `keys`, the first of which names it."""
    with at(path.name):
        file = tomllib.loads(path.read_text())
    if set(file) != {"sections", kind}:
        raise ValueError(f"{path.name} has {', '.join(file)} at its top; it must have sections and {kind}")
    name, sections = next(iter(keys)), tuple(file["sections"])
    entries = [_folded(entry) for entry in file[kind]]
    for number, entry in enumerate(entries, 1):
        _check(f"{path.name}, {entry.get(name, f'{kind} {number}')}", entry, keys, optional)
        if entry["section"] not in sections:
            raise ValueError(
                f"{path.name}, {entry[name]}, section: no section {entry['section']!r}; there are {', '.join(sections)}"
            )
    for given, count in Counter(entry[name] for entry in entries).items():
        if count > 1:
            raise ValueError(f"{path.name}, {given}, {name}: {count} entries have it")
    return sections, entries


def _check(where: str, entry: dict[str, Any], keys: dict[str, type], optional: dict[str, type]) -> None:
    for key in keys:
        if key not in entry:
            raise ValueError(f"{where}, {key}: it is missing")
    known = keys | optional
    for key, given in entry.items():
        if key not in known:
            raise ValueError(f"{where}, {key}: no such key; there are {', '.join(known)}")
        if not isinstance(given, known[key]):
            raise ValueError(f"{where}, {key}: must be a {known[key].__name__}, got {given!r}")


def _folded(given: Any) -> Any:
    """Texts on one line."""
    if isinstance(given, dict):
        return {key: _folded(part) for key, part in given.items()}
    if isinstance(given, list):
        return [_folded(part) for part in given]
    return given.strip("\n").replace("\n", " ") if isinstance(given, str) else given
