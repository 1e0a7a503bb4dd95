"""How a sweep falls with workers: `python benchmarks/sweeps.py`, about a minute, on an idle machine.

The same small sweep is done by one worker and by two, on 127.0.0.1. What only one process can do, the work of the
command and of the scheduler, is the serial part s, in CPU seconds a slice; w is the work of all runs. Then p workers
take at least

    T(p) = max(longest run, s slices + w / p)                      (Amdahl)

Writes results/cost/sweeps.csv.
"""

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import psutil

import kills
from bilevel_book.experiments import reproduce
from bilevel_book.experiments.cluster import Kept
from clock import machine
from table import keep


def seconds(process: Any) -> float:
    """CPU seconds of a process."""
    times = psutil.Process(process.pid).cpu_times()
    return times.user + times.system


def measured(place: Path, workers: int, steps: int = 1000) -> dict[str, float]:
    """Eight runs of a quadratic by so many workers."""
    (run, *_) = kills.sweep(place, seeds=1)
    run = replace(run, problem="Quadratic", problem_options={"noise": 0.5}, budget={"steps": steps, "every": 20})
    runs = [replace(run, seed=seed) for seed in range(8)]
    slices, write = [len(runs)], Kept.write
    with kills.Cast(workers=workers, threads=1) as cast:
        reproduce([replace(runs[0], label="warm")], place, dask=cast.address, progress=False)
        before = {name: seconds(process) for name, process in cast.running.items()}
        cpu, wall = time.process_time(), time.perf_counter()
        with mock.patch.object(Kept, "write", lambda *given: (slices.append(1), write(*given))):
            reproduce(runs, place / "measured", dask=cast.address, progress=False)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        spent = {name: seconds(process) - before[name] for name, process in cast.running.items()}
    serial = cpu + spent.pop("scheduler")
    found = {"workers": workers, "wall": wall, "work": sum(spent.values()), "serial": serial, "slices": sum(slices)}
    return found | {"serial a slice": serial / sum(slices)}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        table = pd.DataFrame([measured(Path(folder) / str(workers), workers) for workers in (1, 2)])
    keep(table, "sweeps", machine())
    print(table.to_string(index=False))
