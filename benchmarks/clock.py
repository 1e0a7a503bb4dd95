"""How everything here is measured: CPU seconds on one thread, candidates taking turns, medians; megabytes at the peak.

A ratio of two medians of one run can be trusted to about 8 % on a shared machine; a single time cannot.
"""

import ctypes
import datetime
import gc
import importlib.metadata
import math
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
PROC = Path("/proc/self/status")
PACKAGES = ("torch", "numpy", "bilevel-core", "torchopt", "higher", "betty-ml")


def side_by_side(
    candidates: dict[Any, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[Any, float]:
    """Median CPU seconds of one call of each. They take turns, so that a slow moment of the machine hits all of them;
    a first call of each is not timed."""
    times: dict[Any, list[float]] = {name: [] for name in candidates}
    for call in candidates.values():
        call()
    for _ in range(rounds):
        for name, call in candidates.items():
            start = clock()
            call()
            times[name].append(clock() - start)
    return {name: statistics.median(spent) for name, spent in times.items()}


def peak_megabytes(call: Callable[[], object]) -> float:
    """How far the memory of this process rises during one call; nan where Linux's /proc is not there to tell."""
    try:
        call()
        gc.collect()
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # what is free but still held would hide a rise
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew, from here
    except OSError:
        return math.nan
    before = _kilobytes("VmRSS", PROC.read_text())
    call()
    return (_kilobytes("VmHWM", PROC.read_text()) - before) / 1024


def _kilobytes(name: str, status: str) -> int:
    return int(re.search(rf"{name}:\s+(\d+)", status).group(1))


def fresh(code: str) -> dict[str, float]:
    """CPU seconds and peak megabytes of a new Python that runs `code`, one thread, from its start to its end."""
    # The new process tells its peak itself: what the system reports to the parent includes the parent's own.
    tell = "import atexit; atexit.register(lambda: print(open('/proc/self/status').read()))\n" if PROC.exists() else ""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", tell + code], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"a fresh Python failed on {code!r}: {done.stderr}")
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "megabytes": _kilobytes("VmHWM", done.stdout) / 1024 if tell else math.nan}


def fresh_side_by_side(codes: dict[str, str], rounds: int) -> dict[str, dict[str, float]]:
    """Medians of `fresh` for each piece of code, the pieces taking turns; a first turn, to fill caches, is not kept."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in codes}
    for turn in range(rounds + 1):
        for name, code in codes.items():
            used = fresh(code)
            if turn:
                runs[name].append(used)
    return {
        name: {unit: statistics.median(used[unit] for used in kept) for unit in ("seconds", "megabytes")}
        for name, kept in runs.items()
    }


def machine() -> dict[str, Any]:
    """Where and with what a table was measured."""
    from bilevel_book.experiments.environment import commit  # not above: who imports this module is weighed

    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": found.group(1) if found else platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "commit": commit(),
    }


def version(package: str) -> str:
    """Of an installed package, or "not installed"."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
