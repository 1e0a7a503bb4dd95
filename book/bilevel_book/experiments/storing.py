"""Storing: a run is a CSV, its history, and a JSON, all about it, in the folder of results that is given.

A history holds no clock, so that the same run is the same file wherever and however often it is done. Time is that of
the calibration, steps x the median cost of one; what a run took is told in its JSON.
"""

import hashlib
import json
import os
from contextlib import suppress
from glob import escape
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock, Timeout

from bilevel_book.experiments.checking import find_problem, parameters
from bilevel_book.experiments.files import Experiment, load
from bilevel_book.experiments.plan import Run, sweep
from bilevel_core.checkpoint import write_atomically

CLOCKS = ["cpu_seconds", "wall_seconds"]


def store(run: Run, history: pd.DataFrame, facts: dict[str, Any], folder: Path) -> None:
    """The CSV first: a JSON that is there vouches for the CSV beside it, by its checksum."""
    text = as_csv(history)
    write_atomically(folder / f"{run.name}.csv", text)
    content = {"run": run.as_json} | facts | {"sha256": hashlib.sha256(text).hexdigest()}
    write_atomically(folder / f"{run.name}.json", (json.dumps(content, indent=1) + "\n").encode())
    forget(run, folder, "csv", "json")


def claim(run: Run, folder: Path) -> FileLock | None:
    """The right to do a run, until it is released or its owner ends; None if it is stored or somebody else has it.

    Whoever writes the files of a run, its checkpoint among them, holds this.
    """
    path = folder / f"{run.name}.{run.fingerprint}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return None
    if is_stored(run, folder):  # since the caller looked
        forget(run, folder)
        lock.release()
        return None
    return lock


def forget(run: Run, folder: Path, *ends: str) -> None:
    """Remove what stored runs leave behind: checkpoints, those of other code too, the lock, and what a kill cut off."""
    place = folder / run.name
    for start, end in product(("", "."), (run.fingerprint, *ends)):
        for left in place.parent.glob(f"{start}{escape(place.name)}.{end}.*"):
            with suppress(OSError):  # gone already; or a lock that is held, which Windows keeps
                left.unlink()


def as_csv(history: pd.DataFrame) -> bytes:
    """A history as it is stored: six digits, and no clock."""
    return history.drop(columns=CLOCKS).to_csv(index=False, float_format="%.6g").encode()


def checkpoint_of(run: Run, folder: Path) -> Path:
    """Where an interrupted run is kept; other settings have another place."""
    return folder / f"{run.name}.{run.fingerprint}.ckpt"


def is_stored(run: Run, folder: Path) -> bool:
    """Whether this very run, with these settings, is there, and whole."""
    return facts_of(run, folder) is not None


def facts_of(run: Run, folder: Path) -> dict[str, Any] | None:
    """The JSON of this very run, if it is there and so is the CSV that it vouches for."""
    path = folder / f"{run.name}.json"
    if not path.exists():
        return None
    try:
        facts: dict[str, Any] = json.loads(path.read_text())
        mine = facts["run"] == run.as_json
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not about a run ({error!r}): remove it, and the run is done again") from error
    csv = path.with_suffix(".csv")
    whole = csv.exists() and facts.get("sha256") == hashlib.sha256(csv.read_bytes()).hexdigest()
    return facts if mine and whole else None


def _batches(run: Run, file: Experiment) -> float:
    """How many batches of the experiment's own size a call of this run looks at; nan if it is the whole data."""
    usual = parameters(find_problem(file.problem)).get("batch_size")
    if usual is None or run.options.get("full"):
        return float("nan") if usual else 1.0
    own, shared = (options.get("batch_size", usual.default) for options in (run.problem_options, file.options))
    return float(own / shared)


def read(
    experiment: str | os.PathLike[str], folder: Path, size: str = "full", group: str | None = None
) -> pd.DataFrame:
    """The stored histories of an experiment as one long table, with columns group, label, solver, seed and stop.

    Where the experiment is calibrated there are three axes: step; equivalents = gradients + their prices x (Hv, Jv), of
    batches as large as the experiment's own (none for a method on the whole data); seconds = step x the median cost of
    a step. Only what the experiment's file describes today is read, in its order; a file left by other settings is not.
    `folder` holds the results of all experiments, as `--results` does.
    """
    file = load(experiment)
    place, costs = folder / file.name / size, file.calibration.get("steps", {})
    tables = []
    for run in sweep(experiment, size, [group] if group else None):
        facts = facts_of(run, place)
        if facts is None:
            continue
        history = pd.read_csv(place / f"{run.name}.csv")
        if file.calibration:
            calls = history.gradients + sum(price * history[name] for name, price in file.calibration["prices"].items())
            history["equivalents"] = calls * _batches(run, file)
            cost = costs.get(file.sizes[size][run.group].priced_as(run.label), {"median": float("nan")})
            history["seconds"] = history.step * cost["median"]
        about = {name: getattr(run, name) for name in ("group", "label", "solver", "seed")}
        about |= {name: facts[name] for name in ("stop", "diverged_at")}
        tables.append(pd.concat([history, pd.DataFrame(about, index=history.index)], axis=1))
    if not tables:
        raise FileNotFoundError(
            f"no results in {place}: "
            f"run `python -m bilevel_book reproduce {experiment} --size {size} --results {folder}` first"
        )
    return pd.concat(tables, ignore_index=True)
