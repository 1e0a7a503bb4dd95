"""Storing: a run is a CSV, its history, and a JSON, all about it, in the folder of results that is given."""

import json
import os
from pathlib import Path
from typing import Any

import pandas as pd

from bilevel_core.experiments.files import load
from bilevel_core.experiments.plan import Run, sweep
from bilevel_core.files import rows_of, write_atomically


def store(run: Run, history: pd.DataFrame, facts: dict[str, Any], folder: Path) -> None:
    """The CSV first: a JSON that is there vouches for the CSV beside it."""
    write_atomically(folder / f"{run.name}.csv", history.to_csv(index=False, float_format="%.6g").encode())
    content = {"run": run.as_json} | facts
    write_atomically(folder / f"{run.name}.json", (json.dumps(content, indent=1) + "\n").encode())
    for left in (checkpoint_of(run, folder), rows_of(checkpoint_of(run, folder))):
        left.unlink(missing_ok=True)


def checkpoint_of(run: Run, folder: Path) -> Path:
    """Where an interrupted run is kept; other settings have another place."""
    return folder / f"{run.name}.{run.fingerprint}.ckpt"


def is_stored(run: Run, folder: Path) -> bool:
    """Whether this very run, with these settings, is there."""
    return facts_of(run, folder) is not None


def facts_of(run: Run, folder: Path) -> dict[str, Any] | None:
    """The JSON of this very run, if it is there."""
    path = folder / f"{run.name}.json"
    facts: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"run": None}
    return facts if facts["run"] == run.as_json else None


def read(
    experiment: str | os.PathLike[str], folder: Path, size: str = "full", group: str | None = None
) -> pd.DataFrame:
    """The stored histories of an experiment as one long table, with columns group, label, solver, seed and stop.

    Only what the experiment's file describes today is read, in its order; a file left by other settings is not.
    `folder` holds the results of all experiments, as `--results` on the command line.
    """
    place = folder / load(experiment).name / size
    tables = []
    for run in sweep(experiment, size, [group] if group else None):
        facts = facts_of(run, place)
        if facts is not None:
            history = pd.read_csv(place / f"{run.name}.csv")
            about = {name: getattr(run, name) for name in ("group", "label", "solver", "seed")}
            about |= {name: facts[name] for name in ("stop", "diverged_at")}
            tables.append(pd.concat([history, pd.DataFrame(about, index=history.index)], axis=1))
    if not tables:
        raise FileNotFoundError(
            f"no results in {place}: "
            f"run `python -m bilevel_core reproduce {experiment} --size {size} --results {folder}` first"
        )
    return pd.concat(tables, ignore_index=True)
