"""Running: every run of a sweep that is not stored yet, here, in several processes, or on a cluster."""

import os
import platform
import re
import subprocess
from contextlib import ExitStack
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
from bilevel_core.experiments.storing import checkpoint_of, is_stored, store


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
            stack.enter_context(joblib.parallel_config(backend="loky", n_jobs=jobs))
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
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    problem, solver, path = run.make_problem(), run.make_solver(), checkpoint_of(run, Path(folder))
    try:
        result = runner.run(problem, solver, run.seed, **run.budget, progress=False, checkpoint=path)
    finally:
        torch.set_num_threads(threads)
    if result.stop == "interrupted":
        raise KeyboardInterrupt
    last = result.history.iloc[-1]
    facts = {
        "stop": result.stop,
        "diverged_at": result.diverged_at,
        "steps": int(last.step),
        "cpu_seconds": round(float(last.cpu_seconds), 3),
        "wall_seconds": round(float(last.wall_seconds), 3),
        "threads": 1,
        "cpu": processor(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "bilevel_core": bilevel_core.__version__,
        },
        "commit": commit(),
        "settings": repr(solver),
    }
    return run, result.history, facts


def processor() -> str:
    """Its name, as far as the system tells."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"model name\s*:\s*(.+)", text)
    return f"{found.group(1) if found else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


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
