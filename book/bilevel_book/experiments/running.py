"""Running: every run of a sweep that is not stored yet, here, in several processes, or on a Dask cluster.

A run under way has a checkpoint and a lock in results/.scratch, and when it is done a file there. At the end of the
command, or at the start of the next one, what is done is collected into the tables.
"""

import json
import math
import os
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import contextmanager, suppress
from glob import escape
from itertools import groupby
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import joblib
from filelock import FileLock, Timeout
from tqdm.auto import tqdm

from bilevel_book.experiments.checking import known
from bilevel_book.experiments.environment import environment, one_thread
from bilevel_book.experiments.plan import MissingTrials, Plan, Run
from bilevel_book.experiments.tables import StoredRun, as_csv, sha256_of, stored_runs, table_file, write_table
from bilevel_book.paths import RESULTS
from bilevel_core import run as run_solver
from bilevel_core.checkpoint import ForeignCheckpoint, write_atomically

PAUSE = 0.5  # seconds from one look at what others do to the next
ONE_RUN = Lock()  # a Dask worker may have several threads, but the problem and the torch of a process are for one run


def reproduce(
    runs: list[Run],
    results: Path = RESULTS,
    jobs: int = 1,
    dask: str | None = None,
    replace: bool = False,
    progress: bool = True,
) -> list[Run]:
    """Do every run that is not stored in `results` yet, in `jobs` processes or, with `dask`, by the workers at that
    address; returns those that were done here.

    A run that is interrupted resumes from its checkpoint. Other commands on the same folder share the work: what one
    of them is at is left to it. A run that is stored with other settings is an error, unless `replace` is given.
    """
    results = results.resolve()
    collect(runs, results)
    other = [run for run in runs if run.stored_in(results) and not run.is_stored(results)]
    if other and not replace:
        raise ValueError(
            f"{len(other)} of {len(runs)} runs are stored in {results} with other settings or with damaged rows, the "
            f"first is {other[0].name}: give --replace to do them again, or another folder with --results"
        )
    waiting, done = [run for run in runs if not run.is_stored(results)], list[Run]()
    with tqdm(total=len(runs), initial=len(runs) - len(waiting), unit="run", disable=not progress, smoothing=0) as bar:
        try:
            while waiting:
                before = len(done)
                for run, result in _performed(waiting, results, jobs, dask):
                    write_atomically(_scratch_file(run, results, "json"), json.dumps(result).encode())
                    done.append(run)
                    bar.update()
                    bar.set_postfix_str(f"{run.name}: {result.facts['stop']}")
                if len(done) == before:  # another command is at all that is left
                    time.sleep(PAUSE)
                waiting = [run for run in waiting if not _is_done(run, results)]
                bar.update(len(runs) - len(waiting) - bar.n)
        finally:
            collect(runs, results)
    return done


def reproduce_in_order(plan: Plan, groups: list[str], labels: list[str] | None = None, **options: Any) -> list[int]:
    """`reproduce` groups, first those whose trials decide others: how many runs were done here, and of how many."""
    done, total, waiting = 0, 0, groups
    while waiting:
        plan = Plan(plan.file, plan.size, plan.results)  # more trials are stored than before
        runs, later = list[Run](), list[str]()
        for group in waiting:
            try:
                runs += plan.runs(known(group, plan.groups, f"group of {plan.file.name}, size {plan.size},"))
            except MissingTrials:
                later.append(group)
                if later == waiting:
                    raise
        chosen = [run for run in runs if not labels or run.label in labels]
        if not chosen and not later:
            all_labels = ", ".join(dict.fromkeys(run.label for run in runs))
            raise ValueError(f"no run of {plan.file.name} has the label {labels}; known are {all_labels}")
        done, total, waiting = done + len(reproduce(chosen, plan.results, **options)), total + len(chosen), later
    return [done, total]


def _performed(runs: list[Run], results: Path, jobs: int, dask: str | None) -> Iterator[tuple[Run, StoredRun]]:
    """Do the runs that nobody else is at, side by side."""
    with _dask_workers(dask) if dask else worker_processes(min(jobs, len(runs))):
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        for run, result in parallel(joblib.delayed(_perform_once)(run, results) for run in runs):
            if result is not None:
                yield run, result


def worker_processes(jobs: int) -> Any:
    """So many processes for joblib, none of which outlives this one."""
    ending = {"initializer": exit_with_parent, "initargs": (os.getpid(),)}
    return joblib.parallel_config("loky", n_jobs=max(1, jobs), **ending)


@contextmanager
def _dask_workers(address: str) -> Iterator[None]:
    try:
        from distributed import Client, KilledWorker  # not sooner: Dask is an extra
    except ImportError as error:
        raise ImportError('--dask needs Dask: python -m pip install "bilevel-book[cluster]"') from error
    try:
        with Client(address), joblib.parallel_config("dask"):
            yield
    except CancelledError as error:
        raise OSError(f"the scheduler at {address} is gone; start one, and the same command goes on here") from error
    except KilledWorker as error:
        raise BrokenExecutor(f"every worker that took up a run died, perhaps for lack of memory: {error}") from error


def exit_with_parent(parent: int) -> None:
    """End this process soon after its parent, however that ends: idle or at work, it would stay for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PAUSE)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _perform_once(run: Run, results: Path) -> tuple[Run, StoredRun | None]:
    """In a worker: do a run, unless it is done or somebody else is at it."""
    checkpoint = _scratch_file(run, results, "ckpt")
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    try:
        with ONE_RUN, FileLock(_scratch_file(run, results, "lock"), blocking=False):
            return run, None if _is_done(run, results) else perform(run, checkpoint)
    except Timeout:  # of the lock
        return run, None


def perform(run: Run, checkpoint: Path | None = None) -> StoredRun:
    """Do one run, on one thread, from its checkpoint if there is one: its history, and the facts about it."""
    solver = run.make_solver()
    try:
        with one_thread():
            given = {"progress": False, "checkpoint": checkpoint, "blow_up": math.inf} | run.budget_of_run
            result = run_solver(run.make_problem(), solver, run.seed, **given)
    except ForeignCheckpoint:  # of other code, or damaged: the run starts anew
        checkpoint.unlink()
        return perform(run, checkpoint)
    if result.stop == "interrupted":
        raise KeyboardInterrupt
    last, history = result.history.iloc[-1], as_csv(result.history)
    facts = {
        "run": run.as_json,
        "stop": result.stop,
        "diverged_at": result.diverged_at,
        "warnings": list(result.warnings),
        "steps": int(last.step),
        "cpu_seconds": round(float(last.cpu_seconds), 3),
        "wall_seconds": round(float(last.wall_seconds), 3),
        "settings": repr(solver),
    }
    return StoredRun(history, facts | environment() | {"sha256": sha256_of(history)})


def _scratch_file(run: Run, results: Path, suffix: str) -> Path:
    return results / ".scratch" / run.experiment / f"{run.name}.{run.fingerprint}.{suffix}"


def _is_done(run: Run, results: Path) -> bool:
    return _scratch_file(run, results, "json").exists() or run.is_stored(results)


def collect(runs: list[Run], results: Path) -> None:
    """Move the runs that are done from the scratch folder into their tables, which have the order of `runs`."""
    for (experiment, group), own in groupby(runs, lambda run: (run.experiment, run.group)):
        planned = list(own)
        done = [run for run in planned if _scratch_file(run, results, "json").exists()]
        if not done:
            continue
        with FileLock(results / ".scratch" / experiment / f"{group}.lock"):
            table = dict(stored_runs(experiment, group, results))
            for run in done:
                with suppress(FileNotFoundError):  # collected by another command
                    found = json.loads(_scratch_file(run, results, "json").read_text(encoding="utf-8"))
                    table[run.label, run.seed] = StoredRun(*found)
            first = {(run.label, run.seed): table.pop((run.label, run.seed), None) for run in planned}
            write_table([run for run in (first | table).values() if run], table_file(results, experiment, group))
    for run in runs:
        if run.is_stored(results):  # its checkpoint, lock and result go, and what a kill cut off
            place = _scratch_file(run, results, "")
            for left in [*place.parent.glob(f"{escape(place.name)}*"), *place.parent.glob(f".{escape(place.name)}*")]:
                with suppress(OSError):  # gone already; or a lock that is held, which Windows keeps
                    left.unlink()
