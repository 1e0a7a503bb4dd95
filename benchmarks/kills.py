"""A sweep on a Dask cluster under kill -9: `python benchmarks/kills.py`, 100 kills, some minutes.

A scheduler, workers and a command are processes of their own on 127.0.0.1. One after the other is killed in the middle
of its work, and started again. At the end every sweep must be stored once, byte for byte as one process does it.
"""

import asyncio
import multiprocessing
import os
import random
import socket
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bilevel_book.experiments import Run, reproduce
from bilevel_core.problems import Quadratic

FORK = multiprocessing.get_context("forkserver")  # a process that has imported everything is forked: no second is lost
FORK.set_forkserver_preload(["bilevel_book.experiments", "distributed"])


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
    """Runs of 60 draws each."""
    trace.mkdir(parents=True, exist_ok=True)
    given = {"alpha": 0.05}, "kills:Watched", {"trace": str(trace), "pause": pause}
    budget, methods = {"steps": 60, "every": 5}, ("FdeHBO", "SOBA")
    return [Run("kills", "main", name, name, *given, seed, budget) for seed in range(seeds) for name in methods]


def draws(trace: Path) -> int:
    """How many draws there were."""
    return sum(path.stat().st_size for path in trace.iterdir())


def play(part: str, address: str, *given: Any) -> None:
    """Be the scheduler, a worker or the command until killed; in silence, for the log of Dask is long here."""
    from distributed import Scheduler, Worker

    async def serve() -> None:
        port = int(address.split(":")[-1])
        if part == "scheduler":
            server = Scheduler(host="127.0.0.1", port=port, dashboard=False, allowed_failures=100)
        else:
            server = Worker(address, nthreads=2, dashboard=False)
        async with server:
            await server.finished()

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    reproduce(*given, dask=address, progress=False) if part == "command" else asyncio.run(serve())


class Cluster(ExitStack):
    """The processes, by name, and what each is given; all end when the `with` ends."""

    def __init__(self) -> None:
        super().__init__()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.running: dict[str, Any] = {}
        self.parts: dict[str, tuple[Any, ...]] = {"scheduler": (), "worker 1": (), "worker 2": ()}
        self.keep_up()

    def keep_up(self) -> None:
        """Start what is not there."""
        for name, given in self.parts.items():
            if name not in self.running or not self.running[name].is_alive():
                self.running[name] = FORK.Process(target=play, args=(name, self.address, *given), daemon=True)
                self.running[name].start()
                self.callback(self.running[name].kill)

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running[name].join()


def kill_in_sweeps(place: Path, kills: int, seeds: int = 4) -> tuple[Counter[str], float]:
    """Sweeps, one after the other, until there were so many kills: whose, and the share of work that was done again."""
    chance, killed, sweeps, drawn = random.Random(0), Counter[str](), 0, 0
    straight = sweep(place / "straight trace", seeds, pause=0.0)
    reproduce(straight, place / "straight", progress=False)
    with Cluster() as cluster:
        while killed.total() < kills:
            trace, results = place / f"trace {sweeps}", (place / f"sweep {sweeps}").resolve()
            runs, due = sweep(trace, seeds), chance.randrange(40)
            cluster.parts["command"] = runs, results
            while not all(run.is_stored(results) for run in runs):
                cluster.keep_up()
                time.sleep(0.05)
                if killed.total() < kills and draws(trace) > due:  # somebody is in the middle of a run
                    name = min(chance.sample([*cluster.parts], 4), key=killed.__getitem__)
                    cluster.kill(name)
                    killed[name], due = killed[name] + 1, draws(trace) + chance.randrange(40)
            cluster.running.pop("command").join()
            found = [run.stored_in(results).history for run in runs]
            assert found == [run.stored_in(place / "straight").history for run in straight]
            drawn, sweeps = drawn + draws(trace), sweeps + 1
    return killed, drawn / (sweeps * draws(place / "straight trace")) - 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        killed, again = kill_in_sweeps(Path(folder), 100)
    print(f"killed: {dict(killed)}; every run stored once, as by one process; {again:.0%} of the work done again")
