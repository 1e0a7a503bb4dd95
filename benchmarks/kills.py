"""A sweep on a Dask cluster under kill -9: `python benchmarks/kills.py`, 100 kills, some minutes.

A scheduler, workers and a command are processes of their own on 127.0.0.1. One after the other is killed in the middle
of its work, and started again. At the end every sweep must be stored once, byte for byte as one process does it.
"""

import argparse
import asyncio
import multiprocessing
import os
import random
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from bilevel_book.experiments import Run, reproduce
from bilevel_core.problems import Quadratic

FORK = multiprocessing.get_context("forkserver")  # a process that has imported everything is forked: no second is lost
FORK.set_forkserver_preload(["bilevel_book.experiments", "distributed"])
STEPS = 60


class Watched(Quadratic):
    """A quadratic that takes its time, and tells who works at it: a file for each process, a byte for each draw."""

    def __init__(self, trace: str, pause: float = 0.005, seed: int = 0):
        super().__init__(noise=0.5, seed=seed)
        self.trace, self.pause = trace, pause

    def sample(self, generator: Any) -> Any:
        with open(Path(self.trace) / str(os.getpid()), "a") as file:
            file.write(".")
        time.sleep(self.pause)
        return super().sample(generator)


def sweep(trace: Path, seeds: int = 4, pause: float = 0.005) -> list[Run]:
    """Runs of `STEPS` draws each."""
    trace.mkdir(parents=True, exist_ok=True)
    options, budget = {"trace": str(trace), "pause": pause}, {"steps": STEPS, "every": 5}
    return [
        Run("kills", "main", name, name, {"alpha": 0.05}, "kills:Watched", options, seed, budget)
        for seed in range(seeds)
        for name in ("FdeHBO", "SOBA")
    ]


def draws(trace: Path) -> int:
    """How many draws there were."""
    return sum(path.stat().st_size for path in trace.iterdir())


def scheduler(port: int) -> None:
    from distributed import Scheduler

    _serve(lambda: Scheduler(host="127.0.0.1", port=port, dashboard=False, allowed_failures=100))


def worker(address: str) -> None:
    from distributed import Worker

    with tempfile.TemporaryDirectory() as folder:
        _serve(lambda: Worker(address, nthreads=2, dashboard=False, local_directory=folder))


def _serve(make: Callable[[], Any]) -> None:
    async def serve() -> None:
        async with make() as server:
            await server.finished()

    _silence()
    asyncio.run(serve())


def command(runs: list[Run], results: Path, dask: str | None = None) -> None:
    _silence()
    reproduce(runs, results, dask=dask, progress=False)


def _silence() -> None:
    """The log of Dask is long where everything is killed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def ended(family: list[psutil.Process], seconds: float = 60.0) -> bool:
    """Whether all of these processes end by then; one that nobody has buried yet has ended too."""
    end = time.monotonic() + seconds
    while any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in family):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


class Cluster:
    """The processes, by name; ended when the `with` ends."""

    def __init__(self, workers: int = 2) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address, self.running = f"tcp://127.0.0.1:{port}", dict[str, Any]()
        self.parts: dict[str, tuple[Callable[..., None], tuple[Any, ...]]] = {"scheduler": (scheduler, (port,))}
        self.parts |= {f"worker {k + 1}": (worker, (self.address,)) for k in range(workers)}

    def keep_up(self) -> None:
        """Start what is not there."""
        for name, (target, arguments) in self.parts.items():
            if name not in self.running or not self.running[name].is_alive():
                self.running[name] = FORK.Process(target=target, args=arguments, daemon=True)
                self.running[name].start()

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running[name].join()

    def __enter__(self) -> "Cluster":
        self.keep_up()
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.running:
            self.kill(name)


def storm(place: Path, kills: int, seed: int = 0, seeds: int = 4) -> dict[str, Any]:
    """Sweeps, one after the other, until there were so many kills; what was seen."""
    chance, killed, sweeps, drawn, turns = random.Random(seed), Counter[str](), 0, 0, list[str]()
    straight = sweep(place / "straight trace", seeds, pause=0.0)
    reproduce(straight, place / "straight", progress=False)
    with Cluster() as cluster:
        while killed.total() < kills:
            trace, results = place / f"trace {sweeps}", place / f"sweep {sweeps}"
            runs, due = sweep(trace, seeds), chance.randrange(40)
            cluster.parts["command"] = command, (runs, results, cluster.address)
            while not all(run.is_stored(results.resolve()) for run in runs):
                cluster.keep_up()
                time.sleep(0.05)
                if killed.total() < kills and draws(trace) > due:  # somebody is in the middle of a run
                    turns = turns or chance.sample([*cluster.parts], len(cluster.parts))
                    killed[turns[-1].split()[0]] += 1
                    cluster.kill(turns.pop())
                    due = draws(trace) + chance.randrange(40)
                    print(f"{killed.total()} kills, {sweeps} sweeps", end="\r", file=sys.stderr)
            cluster.running.pop("command").join()
            found = [run.stored_in(results.resolve()).history for run in runs]
            assert found == [run.stored_in(place / "straight").history for run in straight]
            drawn, sweeps = drawn + draws(trace), sweeps + 1
    needed = sweeps * draws(place / "straight trace")
    return {"kills": dict(killed), "sweeps": sweeps, "runs": sweeps * len(runs), "again": drawn / needed - 1}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    sys.path.insert(0, str(Path(__file__).parent))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        seen = storm(Path(folder), parser.parse_args().kills)
    print(f"{seen['kills']}: {seen['runs']} runs in {seen['sweeps']} sweeps are stored, each once, as one process does")
    print(f"it; {100 * seen['again']:.0f} % of the work was done again")
