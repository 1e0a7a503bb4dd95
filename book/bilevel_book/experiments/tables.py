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
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bilevel_book.paths import RESULTS, Named, experiment_name
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
        return self.facts.get("sha256") == sha256_of(self.history)


def sha256_of(history: str) -> str:
    return hashlib.sha256(history.encode()).hexdigest()


def as_csv(history: pd.DataFrame) -> str:
    """A history as it is stored: six digits, and no clock."""
    return history.drop(columns=CLOCKS).to_csv(index=False, float_format="%.6g")


def table_file(results: Path, experiment: str, group: str) -> Path:
    return results / experiment / f"{group}.csv"


def read(experiment: Named, group: str, results: Path = RESULTS) -> pd.DataFrame:
    """The stored histories of a group, as `pd.read_csv` reads their file: label, seed, step, samples, gradients, ..."""
    path = table_file(results, experiment_name(experiment), group)
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}; `python -m bilevel_book reproduce {experiment}` makes it")
    return pd.read_csv(path)


def stored_runs(experiment: str, group: str, results: Path = RESULTS) -> dict[Key, StoredRun]:
    """The runs of a table, by label and seed, in its order; none if there is no table."""
    path = table_file(results, experiment, group)
    files = path, path.with_suffix(".json")
    if not all(file.is_file() for file in files):
        return {}
    return _parsed(*files, tuple((file.stat().st_mtime_ns, file.stat().st_size) for file in files))


@lru_cache(maxsize=64)
def _parsed(path: Path, beside: Path, versions: tuple[tuple[int, int], ...]) -> dict[Key, StoredRun]:
    try:
        every = json.loads(beside.read_text(encoding="utf-8"))["runs"]
        facts = {(run["run"]["label"], run["run"]["seed"]): run for run in every}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{beside} does not describe the runs of a table ({error!r}): restore it") from error
    text = path.read_text(encoding="utf-8", errors="replace")  # what is damaged shows in the checksums
    header, *lines = list(csv.reader(io.StringIO(text))) or [[]]
    own = {key: run.get("columns", header[len(KEYS) :]) for key, run in facts.items()}  # not those of other runs only
    places = {key: [header.index(name) for name in names if name in header] for key, names in own.items()}
    histories = {key: [",".join(names)] for key, names in own.items()}
    named = {(label, str(seed)): (label, seed) for label, seed in facts}
    for line in lines:
        if len(line) == len(header) and (key := named.get((line[0], line[1]))):
            histories[key].append(",".join([line[place] for place in places[key]]))
    return {key: StoredRun("\n".join([*histories[key], ""]), run) for key, run in facts.items()}


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
