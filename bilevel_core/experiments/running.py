"""Running: every run of a sweep that is not stored yet, here, in several processes, or on a cluster."""

import os
import platform
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

import bilevel_core
from bilevel_core import runner
from bilevel_core.experiments.plan import Run
from bilevel_core.experiments.storing import as_csv, checkpoint_of, facts_of, is_stored, store
from bilevel_core.results import Result


def reproduce(
    runs: list[Run], folder: Path, jobs: int = 1, dask: str | None = None, progress: bool = True
) -> list[Run]:
    """Do every run that is not yet stored in `folder`; returns those that were done.

    `jobs` processes share them, each on one thread; with `dask`, the workers of the cluster at that address do. The
    results come back to this process, which alone writes them. A run that is interrupted leaves a checkpoint with its
    worker, and resumes from there.
    """
    waiting = [run for run in runs if not is_stored(run, folder)]
    with ExitStack() as stack:
        if dask is not None:
            from dask.distributed import Client

            stack.enter_context(Client(dask))
            stack.enter_context(joblib.parallel_config(backend="dask"))
        else:
            stack.enter_context(joblib.parallel_config(backend="loky", n_jobs=max(1, min(jobs, len(waiting)))))
        bar = stack.enter_context(
            tqdm(total=len(runs), initial=len(runs) - len(waiting), unit="run", disable=not progress, smoothing=0)
        )
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        for run, history, facts in parallel(joblib.delayed(perform)(run, str(folder)) for run in waiting):
            store(run, history, facts, folder)
            bar.update()
            bar.set_postfix_str(f"{run.name}: {facts['stop']}")
    return waiting


def perform(run: Run, folder: str) -> tuple[Run, pd.DataFrame, dict[str, Any]]:
    """Do one run, on one thread, from its checkpoint if there is one; also its history and the facts about it."""
    with one_thread():
        result = result_of(run, checkpoint_of(run, Path(folder)))
    if result.stop == "interrupted":
        raise KeyboardInterrupt
    last = result.history.iloc[-1]
    facts = {
        "stop": result.stop,
        "diverged_at": result.diverged_at,
        "warnings": list(result.warnings),
        "steps": int(last.step),
        "cpu_seconds": round(float(last.cpu_seconds), 3),
        "wall_seconds": round(float(last.wall_seconds), 3),
        "settings": repr(run.make_solver()),
    }
    return run, result.history, facts | environment()


def result_of(run: Run, checkpoint: Path | None = None) -> Result:
    """Do one run, quietly."""
    return runner.run(
        run.make_problem(), run.make_solver(), run.seed, **run.budget, progress=False, checkpoint=checkpoint
    )


@contextmanager
def one_thread() -> Iterator[None]:
    """torch on one thread, as every run of an experiment is."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def verify(run: Run, folder: Path, rows: int = 1) -> str | None:
    """Redo a stored run up to its first `rows` rows after the start; what is wrong with what is stored, if anything is.

    On the processor and with the versions of the stored run the rows must be the same text; elsewhere the same numbers
    to a thousandth, since float32 rounds otherwise on another processor.
    """
    facts = facts_of(run, folder)
    if facts is None:
        return f"{run.name} is not stored in {folder} as its experiment describes it today"
    lines = (folder / f"{run.name}.csv").read_bytes().splitlines(keepends=True)[: rows + 2]
    stored, marks = b"".join(lines), [int(line.split(b",")[0]) for line in lines[2:]]
    with one_thread():
        history = result_of(replace(run, budget={"steps": marks[-1], "every": marks})).history
    header = lines[0].decode().strip().split(",")  # a method may add a column after these rows
    again = as_csv(history.reindex(columns=[*header, *history.columns.difference(header, sort=False)]), run)
    here = environment()
    same_machine = all(here[name] == facts[name] for name in ("cpu", "versions"))
    if again == stored or (not same_machine and _alike(again, stored)):
        return None
    return f"{run.name}: the code no longer gives its first rows\n{stored.decode()}but\n{again.decode()}"


def _alike(again: bytes, stored: bytes) -> bool:
    a, b = (np.genfromtxt(text.decode().splitlines(), delimiter=",", skip_header=1) for text in (again, stored))
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-3, atol=1e-6, equal_nan=True)


def environment() -> dict[str, Any]:
    """What a run was done with: processor, threads, versions, commit."""
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    versions["bilevel_core"] = bilevel_core.__version__
    return {"threads": 1, "cpu": processor(), "versions": versions, "commit": commit()}


def processor() -> str:
    """Its name, family and model, as far as the system tells, and the instructions that torch uses."""
    try:
        told = dict(re.findall(r"^(model name|cpu family|model)\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M))
    except OSError:
        told = {}
    name = ", ".join(told.values()) or platform.processor() or platform.machine()
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}, {os.cpu_count()} cores"


@lru_cache(maxsize=1)
def commit() -> str | None:
    """The commit of the checkout that this library is in, "-dirty" if a file of it was changed; None outside of one."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)  # a checkout of something else may lie around us
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "..")  # in the library, not in results
        return git("rev-parse", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None
