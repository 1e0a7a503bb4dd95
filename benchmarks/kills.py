"""A sweep on a Dask cluster under kill -9: `python benchmarks/kills.py`, 200 kills, some minutes.

A scheduler, workers and commands are processes of their own on 127.0.0.1. One after the other is killed in the middle
of its work, and started again. At the end every sweep must be stored once, byte for byte as one process does it. Prints
what was killed and how much work was done again.
"""

import argparse
import asyncio
import multiprocessing
import os
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from bilevel_book.experiments import Run, is_stored, reproduce
from bilevel_core.problems import Quadratic

FORK = multiprocessing.get_context("forkserver")  # a process that has imported everything is forked: no second is lost
FORK.set_forkserver_preload(["bilevel_book.experiments.cluster"])
SHORT = 0.1  # seconds of a slice, here
STEPS = 60


class Watched(Quadratic):
    """A quadratic that takes its time, and tells who works at it: a file for each process, a byte for each draw."""

    inside = threading.Lock()

    def __init__(self, trace: str, pause: float = 0.005, seed: int = 0):
        super().__init__(noise=0.5, seed=seed)
        self.trace, self.pause = trace, pause

    def sample(self, generator: Any) -> Any:
        alone = self.inside.acquire(blocking=False)
        with open(Path(self.trace) / str(os.getpid()), "a") as file:
            file.write("." if alone else "2")  # 2: another thread of this process is in here too
        time.sleep(self.pause)
        if alone:
            self.inside.release()
        return super().sample(generator)


class Deadly(Quadratic):
    """A quadratic whose draws end the process, as the system does when memory is short."""

    def sample(self, generator: Any) -> Any:
        os._exit(1)


def sweep(trace: Path, seeds: int = 4, pause: float = 0.005) -> list[Run]:
    """Runs of `STEPS` draws each."""
    trace.mkdir(parents=True, exist_ok=True)
    options, budget = {"trace": str(trace), "pause": pause}, {"steps": STEPS, "every": 5}
    methods = [("FdeHBO", {"alpha": 0.05}), ("SOBA", {"alpha": 0.05})]
    return [
        Run("kills", "main", name, name, settings, "kills:Watched", options, seed, budget)
        for seed in range(seeds)
        for name, settings in methods
    ]


def draws(trace: Path) -> dict[int, str]:
    """What each process drew."""
    return {int(path.name): path.read_text() for path in trace.iterdir()}


def total(trace: Path) -> int:
    """How many draws there were."""
    return sum(path.stat().st_size for path in trace.iterdir())


def content(folder: Path) -> dict[str, bytes]:
    """Every file but the JSONs, which tell the time that a run took."""
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".json"}


def scheduler(port: int, allowed_failures: int) -> None:
    from distributed import Scheduler

    _serve(lambda: Scheduler(host="127.0.0.1", port=port, dashboard=False, allowed_failures=allowed_failures))


def worker(address: str, threads: int) -> None:
    from distributed import Worker

    from bilevel_book.experiments import cluster

    cluster.SLICE = SHORT
    with tempfile.TemporaryDirectory() as folder:
        _serve(lambda: Worker(address, nthreads=threads, dashboard=False, local_directory=folder))


def _serve(make: Callable[[], Any]) -> None:
    async def serve() -> None:
        async with make() as server:
            await server.finished()

    _quiet()
    asyncio.run(serve())


def command(runs: list[Run], folder: Path, dask: str | None = None) -> None:
    _quiet()
    reproduce(runs, folder, dask=dask, progress=False)


def _quiet() -> None:
    """The log of Dask is long where everything is killed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def ended(family: list[psutil.Process], seconds: float = 60.0) -> bool:
    """Whether all of these processes end by then; one that nobody has buried yet has ended too.

    They need a second or two, a minute where the machine has much else to do; an orphan would stay for several.
    """
    end = time.monotonic() + seconds
    while alive := [each for each in family if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]:
        if time.monotonic() > end:
            print(alive, file=sys.stderr)
            return False
        time.sleep(0.05)
    return True


class Cast:
    """The processes, by name; ended when the `with` ends."""

    def __init__(self, allowed_failures: int = 100, workers: int = 2, threads: int = 2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address, self.running = f"tcp://127.0.0.1:{self.port}", dict[str, Any]()
        self.parts: dict[str, tuple[Callable[..., None], tuple[Any, ...]]] = {
            "scheduler": (scheduler, (self.port, allowed_failures))
        } | {f"worker {k + 1}": (worker, (self.address, threads)) for k in range(workers)}

    def start(self, name: str, target: Callable[..., None], *arguments: Any) -> Any:
        self.running[name] = process = FORK.Process(target=target, args=arguments, daemon=True)
        process.start()
        return process

    def keep_up(self) -> None:
        """Start what is not there."""
        for name, (target, arguments) in self.parts.items():
            if name not in self.running or not self.running[name].is_alive():
                self.start(name, target, *arguments)

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running[name].join()

    def __enter__(self) -> "Cast":
        self.keep_up()
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.running:
            self.kill(name)


def storm(place: Path, kills: int, seed: int = 0, seeds: int = 4) -> dict[str, Any]:
    """Sweeps, one after the other, each under two commands, until there were so many kills; what was seen."""
    chance, killed, sweeps, drawn = random.Random(seed), Counter[str](), 0, 0
    commands, turns = ("command 1", "command 2"), list[str]()
    reproduce(sweep(place / "straight trace", seeds, pause=0.0), place / "straight", progress=False)
    with Cast() as cast:
        while killed.total() < kills:
            trace, folder = place / f"trace {sweeps}", place / f"sweep {sweeps}"
            runs, due = sweep(trace, seeds), chance.randrange(40)
            cast.parts |= dict.fromkeys(commands, (command, (runs, folder, cast.address)))
            while not all(is_stored(run, folder) for run in runs):
                cast.keep_up()
                time.sleep(0.05)
                if killed.total() < kills and (count := total(trace)) > due:  # somebody is in the middle of a run
                    everybody = [*cast.parts, "worker 1", "worker 2"]  # in seven kills each has its turn, workers two
                    turns = turns or chance.sample(everybody, len(everybody))
                    cast.kill(who := turns.pop())
                    killed[who.split()[0]] += 1
                    due = count + chance.randrange(40)
                    print(f"{killed.total()} kills, {sweeps} sweeps", end="\r", file=sys.stderr)
            for name in commands:
                cast.running.pop(name).join()
            stored, right = content(folder), content(place / "straight")
            assert stored == right, [name for name in stored | right if stored.get(name) != right.get(name)]
            assert "2" not in "".join(draws(trace).values()), "two runs at once in one process"
            drawn, sweeps = drawn + total(trace), sweeps + 1
    needed = sweeps * total(place / "straight trace")
    return {"kills": dict(killed), "sweeps": sweeps, "runs": sweeps * len(runs), "again": drawn / needed - 1}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    sys.path.insert(0, str(Path(__file__).parent))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        seen = storm(Path(folder), parser.parse_args().kills)
    print(f"{seen['kills']}: {seen['runs']} runs in {seen['sweeps']} sweeps are stored, each once, as one process does")
    print(f"it; {100 * seen['again']:.0f} % of the work was done again")
