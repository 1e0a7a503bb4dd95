"""Running: every run of a sweep that is not stored yet, here, in several processes, or on a cluster."""

import os
import platform
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from itertools import compress
from pathlib import Path
from threading import Thread
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

import bilevel_core
from bilevel_book.experiments.boxes import Options
from bilevel_book.experiments.plan import Run
from bilevel_book.experiments.storing import as_csv, checkpoint_of, claim, facts_of, forget, is_stored, store
from bilevel_core import runner
from bilevel_core.runner import Result

Pool = Callable[[list[Run], Path], Iterator[tuple[Run, str]]]  # does and stores runs; yields those done, and their ends
PAUSE = 0.5  # seconds from one look at what others do to the next


def reproduce(
    runs: list[Run], folder: Path, jobs: int = 1, dask: str | None = None, progress: bool = True
) -> list[Run]:
    """Do every run that is not yet stored in `folder`; returns those that were done here.

    `jobs` processes share them, each on one thread; with `dask` the workers of the cluster at that address do, or those
    of one on this machine, "local". A run that is interrupted leaves a checkpoint in `folder`, and resumes from there,
    wherever it is taken up. Other commands on the same folder share the work: what one of them is at is left to it, and
    taken over if it ends without a result.
    """
    waiting, done = _waiting(runs, folder), list[Run]()
    with ExitStack() as stack:
        pool: Pool = partial(in_processes, jobs=jobs)
        if dask is not None and waiting:
            from bilevel_book.experiments.cluster import connected  # not sooner: Dask is an extra

            pool = stack.enter_context(connected(dask, min(jobs, len(waiting)), progress))
        bar = stack.enter_context(
            tqdm(total=len(runs), initial=len(runs) - len(waiting), unit="run", disable=not progress, smoothing=0)
        )
        while waiting:
            before = len(done)
            for run, stop in pool(waiting, folder):
                done.append(run)
                bar.update()
                bar.set_postfix_str(f"{run.name}: {stop}")
            if len(done) == before:  # another command is at all that is left
                time.sleep(PAUSE)
            waiting = _waiting(waiting, folder)
            bar.update(len(runs) - len(waiting) - bar.n)
    return done


def _waiting(runs: list[Run], folder: Path) -> list[Run]:
    """Those that are not stored. What a kill left beside one that is stored goes, or it would outlive the result."""
    stored = [is_stored(run, folder) for run in runs]
    for run in compress(runs, stored):
        forget(run, folder)
    return [run for run, there in zip(runs, stored, strict=True) if not there]


def in_processes(runs: list[Run], folder: Path, jobs: int) -> Iterator[tuple[Run, str]]:
    """Do and store what nobody else is at, in this process or in several; every run that was done, and why it ended."""
    n_jobs, alive = max(1, min(jobs, len(runs))), {"initializer": end_with, "initargs": (os.getpid(),)}
    with joblib.parallel_config(backend="loky", n_jobs=n_jobs, **alive):
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        for run, stop in parallel(joblib.delayed(_settle)(run, folder) for run in runs):
            if stop is not None:
                yield run, stop


def end_with(parent: int) -> None:
    """End this process soon after its parent, however that ends: idle or at work, it would stay for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PAUSE)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _settle(run: Run, folder: Path) -> tuple[Run, str | None]:
    """Do and store a run, unless it is stored or somebody else is at it; why it ended."""
    if (lock := claim(run, folder)) is None:
        return run, None
    try:
        history, facts = perform(run, checkpoint_of(run, folder))
        store(run, history, facts, folder)
    finally:
        lock.release()
    return run, facts["stop"]


def perform(
    run: Run, checkpoint: Path | None = None, callback: Callable[[Any, Any], object] | None = None
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Do one run, on one thread, from its checkpoint if there is one: its history, and the facts about it."""
    with one_thread():
        result = result_of(run, checkpoint, callback)
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
    return result.history, facts | environment()


def result_of(run: Run, checkpoint: Path | None = None, callback: Callable[[Any, Any], object] | None = None) -> Result:
    """Do one run, quietly."""
    quiet: Options = {"progress": False, "checkpoint": checkpoint, "callback": callback}
    return runner.run(run.make_problem(), run.make_solver(), run.seed, **run.budget, **quiet)


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

    On the processor and with the versions of the stored run, of what is not ours, the rows must be the same text;
    elsewhere the same numbers to a thousandth, since float32 rounds otherwise on another processor.
    """
    facts = facts_of(run, folder)
    if facts is None:
        return f"{run.name} is not stored in {folder} as its experiment describes it today"
    lines = (folder / f"{run.name}.csv").read_bytes().splitlines(keepends=True)[: rows + 2]
    stored, marks = b"".join(lines), [int(line.split(b",")[0]) for line in lines[2:]]
    with one_thread():
        history = result_of(replace(run, budget={"steps": marks[-1], "every": marks})).history
    header = lines[0].decode().strip().split(",")  # a method may add a column after these rows
    again = as_csv(history.reindex(columns=[*header, *history.columns.difference(header, sort=False)]))
    here = environment()
    ours = {"bilevel_core": bilevel_core.__version__}
    same_machine = here["cpu"] == facts["cpu"] and here["versions"] == facts["versions"] | ours
    if again == stored or (not same_machine and _alike(again, stored)):
        return None
    return f"{run.name}: the code no longer gives its first rows\n{stored.decode()}but\n{again.decode()}"


def wrong(runs: list[Run], folder: Path, rows: int, jobs: int) -> list[str]:
    """What `verify` finds wrong, `jobs` runs side by side."""
    found = joblib.Parallel(jobs, return_as="generator")(joblib.delayed(verify)(run, folder, rows) for run in runs)
    return [told for told in tqdm(found, total=len(runs), unit="run", smoothing=0) if told]


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
