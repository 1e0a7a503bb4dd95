"""Verifying: the beginning of a stored run, done again."""

import math
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
from tqdm.auto import tqdm

import bilevel_core
from bilevel_book.experiments.environment import environment, one_thread
from bilevel_book.experiments.plan import Run
from bilevel_book.experiments.running import worker_processes
from bilevel_book.experiments.tables import as_csv
from bilevel_book.paths import RESULTS
from bilevel_core import run as run_solver


class Comparison(NamedTuple):
    """How many rows of a stored run were compared, and what is wrong with them, if anything is."""

    rows: int
    mismatch: str = ""


def verify(run: Run, results: Path = RESULTS, rows: int = 1) -> Comparison:
    """Redo a stored run up to its first `rows` rows after the start, and compare.

    On the processor and with the versions of the stored run, of what is not ours, the rows must be the same text;
    elsewhere the same numbers to a thousandth, since float32 rounds differently on another processor.
    """
    found = run.stored_in(results)
    if found is None or not run.is_stored(results):
        return Comparison(0, f"{run.name} is not stored in {results} as its experiment describes it today")
    lines = found.history.splitlines(keepends=True)[: rows + 2]
    marks = [int(line.split(",")[0]) for line in lines[2:]]
    solver, budget = run.make_solver(), {"steps": marks[-1], "every": marks}
    with one_thread():
        result = run_solver(run.make_problem(), solver, run.seed, **budget, blow_up=math.inf, progress=False)
    header = lines[0].strip().split(",")  # a method may add a column after these rows
    now = as_csv(result.history.reindex(columns=[*header, *result.history.columns.difference(header, sort=False)]))
    stored, here = "".join(lines), environment()
    ours = {"bilevel_core": bilevel_core.__version__}
    same_machine = here["cpu"] == found.facts["cpu"] and here["versions"] == found.facts["versions"] | ours
    if now == stored or (not same_machine and _is_close(now, stored)):
        return Comparison(len(marks))
    return Comparison(len(marks), f"{run.name}: the code gives other rows than are stored\n{stored}but\n{now}")


def verify_all(runs: list[Run], results: Path, rows: int, jobs: int) -> list[Comparison]:
    """`verify` for each run, `jobs` side by side."""
    with worker_processes(min(jobs, len(runs))):
        found = joblib.Parallel(return_as="generator")(joblib.delayed(verify)(run, results, rows) for run in runs)
        return list(tqdm(found, total=len(runs), unit="run", smoothing=0))


def _is_close(again: str, stored: str) -> bool:
    a, b = (np.genfromtxt(text.splitlines(), delimiter=",", skip_header=1) for text in (again, stored))
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-3, atol=1e-6, equal_nan=True)
