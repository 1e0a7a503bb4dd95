"""Runs under kill -9 and under Ctrl-C twice: `python benchmarks/kill_checkpoints.py`, 200 of each, some minutes.

Each run is a process with a checkpoint that is written at every row. It is stopped at a random moment and started
again, until it is done; its state must then be that of a run in one go, bit for bit. All methods take turns.
"""

import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from itertools import cycle
from pathlib import Path

import torch

from bilevel_book.methods import SOLVERS
from bilevel_core import checkpoint, run
from bilevel_core.problems import Quadratic

FORK = multiprocessing.get_context("forkserver")  # a process that has imported everything is forked: no second is lost
FORK.set_forkserver_preload(["bilevel_book.methods"])
TIMES = 200  # of each kind
STEPS = 100


def go(name: str, folder: Path, is_checkpointed: bool = True) -> None:
    """Run a method to its end, and leave its last x, y and v in a file; or in another one, why it could not go on."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # where Ctrl-C would be told
    checkpoint.PAUSE_SECONDS, checkpoint.SAVING_SHARE = 0.0, 1.0
    path = folder / "run.ckpt" if is_checkpointed else None
    (folder / "started").touch()
    problem, solver = Quadratic(noise=0.5), SOLVERS[name]()
    try:
        state = run(problem, solver, 1, steps=STEPS, every=4, progress=False, checkpoint=path).state
    except Exception as error:
        (folder / "failed").write_text(str(error), encoding="utf-8")
        raise
    if state.t == STEPS:
        torch.save([state.x, state.y, state.v], folder / f"done {is_checkpointed}")


def start(name: str, folder: Path, is_checkpointed: bool = True) -> multiprocessing.Process:
    """A process that has begun its run."""
    process, started = FORK.Process(target=go, args=(name, folder, is_checkpointed)), folder / "started"
    process.start()
    while not started.exists():
        process.join(0.01)
    started.unlink()
    return process


def stop(process: multiprocessing.Process, kind: str, longest: float, chance: random.Random) -> bool:
    """At a random moment of the next so many seconds: kill -9, or Ctrl-C and very soon another one. Did all arrive?"""
    process.join(chance.uniform(0, longest))
    arrived = []
    for signum in {"kill": [signal.SIGKILL], "Ctrl-C twice": [signal.SIGINT] * 2}[kind]:
        arrived.append(process.is_alive())
        if process.is_alive():
            os.kill(process.pid, signum)
            time.sleep(chance.uniform(0, 0.002))
    process.join()
    return all(arrived)


if __name__ == "__main__":
    chance, stopped, runs = random.Random(0), Counter[str](), 0
    for name in cycle(SOLVERS):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            whole, began = start(name, folder, False), time.monotonic()
            whole.join()
            longest = (time.monotonic() - began) / 2
            while not (folder / "done True").exists():
                kind = min(("kill", "Ctrl-C twice"), key=stopped.__getitem__)
                process = start(name, folder)
                stopped[kind] += stop(process, kind, longest, chance)
                longest *= 1.05  # a run must end, however busy the machine has become
                failed = folder / "failed"
                assert not failed.exists(), f"{name}: {failed.read_text(encoding='utf-8')}"
            ends = [torch.load(folder / f"done {each}") for each in (False, True)]
            assert all(map(torch.equal, *ends)), f"{name} differs"
            assert not [*folder.glob(".*")], f"{name} left {[*folder.iterdir()]}"
        runs += 1
        print(f"{runs} runs, {dict(stopped)}", flush=True)
        if min(stopped.values()) >= TIMES and len(stopped) == 2:
            break
    print(f"{dict(stopped)} in {runs} runs, each bit-equal to a run in one go")
