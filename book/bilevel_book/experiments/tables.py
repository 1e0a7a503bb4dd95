"""Tables: the runs of a group are one CSV, their histories, and one JSON, what else is known of each.

    results/EXPERIMENT/GROUP.csv     label, seed, step, and the other columns of a history: for `read`, or `pd.read_csv`
    results/EXPERIMENT/GROUP.json    a line for each run: its settings, how it ended, machine, versions, commit, and the
                                     SHA-256 of its own rows

A history holds no clock, so that the same run is the same text wherever and however often it is done; what it took
stands in the JSON.
"""

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bilevel_book.paths import RESULTS, experiment_name
from bilevel_core.checkpoint import write_atomically

CLOCKS = ["cpu_seconds", "wall_seconds"]
KEYS = ["label", "seed"]
Key = tuple[str, int]  # what tells the runs of a group apart


class StoredRun(NamedTuple):
    """One run of a table: its history, as a CSV of its own, and the facts about it; its settings are facts["run"]."""

    history: str
    facts: dict[str, Any]

    @property
    def key(self) -> Key:
        return self.facts["run"]["label"], self.facts["run"]["seed"]

    @property
    def is_intact(self) -> bool:
        return self.facts.get("sha256") == hashlib.sha256(self.history.encode()).hexdigest()


def as_csv(history: pd.DataFrame) -> str:
    """A history as it is stored: six digits, and no clock."""
    return history.drop(columns=CLOCKS).to_csv(index=False, float_format="%.6g")


def finished(run_settings: Mapping[str, Any], history: pd.DataFrame, facts: Mapping[str, Any]) -> StoredRun:
    """A run that was just done."""
    text = as_csv(history)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return StoredRun(text, {"run": dict(run_settings)} | dict(facts) | {"sha256": sha256})


def table_file(results: Path, experiment: str, group: str) -> Path:
    return results / experiment / f"{group}.csv"


def read(experiment: str | os.PathLike[str], group: str, results: Path = RESULTS) -> pd.DataFrame:
    """The stored histories of a group, as `pd.read_csv` reads their file: label, seed, step, samples, gradients, ..."""
    path = table_file(results, experiment_name(experiment), group)
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}; `python -m bilevel_book reproduce {experiment}` makes it")
    return pd.read_csv(path)


def stored_runs(experiment: str, group: str, results: Path = RESULTS) -> dict[Key, StoredRun]:
    """The runs of a table, by label and seed, in its order; none if there is no table."""
    version = table_version(experiment, group, results)
    return _parsed(table_file(results, experiment, group), version) if version else {}


def table_version(experiment: str, group: str, results: Path = RESULTS) -> tuple[int, ...]:
    """Changes when a table is written; empty if there is none."""
    path = table_file(results, experiment, group)
    files = path, path.with_suffix(".json")
    if not all(file.is_file() for file in files):
        return ()
    return tuple(number for file in files for number in (file.stat().st_mtime_ns, file.stat().st_size))


@lru_cache(maxsize=64)
def _parsed(path: Path, version: tuple[int, ...]) -> dict[Key, StoredRun]:
    beside = path.with_suffix(".json")
    try:
        every = json.loads(beside.read_text(encoding="utf-8"))["runs"]
        facts = {(run["run"]["label"], run["run"]["seed"]): run for run in every}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{beside} does not describe the runs of a table ({error!r}): restore it") from error
    header, *lines = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    rows: dict[Key, list[list[str]]] = {key: [] for key in facts}
    for label, seed, *cells in lines:
        if (key := (label, int(seed))) in rows:
            rows[key].append(cells)
    columns = header[len(KEYS) :]
    return {key: StoredRun(_own(columns, rows[key], run), run) for key, run in facts.items()}


def _own(columns: list[str], rows: list[list[str]], facts: dict[str, Any]) -> str:
    """The CSV of one run: without the columns that only others of its group have."""
    own = facts.get("columns", columns)
    places = [columns.index(name) for name in own if name in columns]
    return "".join(",".join(line) + "\n" for line in [own, *([row[place] for place in places] for row in rows)])


def write_table(runs: Iterable[StoredRun], path: Path) -> None:
    """Write a table: first the CSV, for which the JSON vouches, so that a kill in between loses no stored run."""
    runs = list(runs)
    histories = [list(csv.reader(io.StringIO(run.history))) for run in runs]
    columns = list(dict.fromkeys(name for header, *_ in histories for name in header))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*KEYS, *columns])
    facts = []
    for run, (header, *rows) in zip(runs, histories, strict=True):
        for row in rows:
            cells = dict(zip(header, row, strict=True))
            writer.writerow([*run.key, *(cells.get(name, "") for name in columns)])
        own = {"columns": header} if header != columns else {}
        facts.append({key: value for key, value in run.facts.items() if key != "columns"} | own)
    write_atomically(path, text.getvalue().encode())
    write_atomically(path.with_suffix(".json"), json_lines(facts))


def json_lines(runs: Iterable[Mapping[str, Any]]) -> bytes:
    """A JSON with a line for each run."""
    lines = ",\n".join(json.dumps(each) for each in runs)
    return f'{{"runs": [\n{lines}\n]}}\n'.encode()
