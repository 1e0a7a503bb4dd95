"""A sweep on a Dask cluster, which does its runs in slices.

A slice takes the checkpoint of a run, and gives back the next one some seconds later, or the result. So a worker keeps
nothing. If it dies, the scheduler has the slice done by another, from the same checkpoint; the command, which alone
writes, has what came back in files, and sends from there whatever the scheduler lost.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from logging import ERROR
from pathlib import Path
from platform import node
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, NamedTuple

import pandas as pd

from bilevel_book.experiments.plan import Run
from bilevel_book.experiments.running import Pool, perform
from bilevel_book.experiments.storing import checkpoint_of, claim, store
from bilevel_core import __version__
from bilevel_core.checkpoint import write_atomically

try:
    from distributed import Client, KilledWorker, LocalCluster, Security, wait
    from distributed.comm.core import connect
except ImportError as error:
    raise ImportError('--dask needs Dask: python -m pip install "bilevel-core[cluster]"') from error

SLICE = 10.0  # seconds: what a kill can cost; to take a run up again costs some hundredths of one
ONE_RUN = Lock()  # a worker may have several threads, but the CPU time and the torch of a process are for one run


class Kept(NamedTuple):
    """The file of a checkpoint."""

    content: bytes

    @classmethod
    def of(cls, path: Path) -> "Kept | None":
        return cls(path.read_bytes()) if path.exists() else None

    def write(self, path: Path) -> None:
        write_atomically(path, self.content)


def a_slice(run: Run, name: str, kept: Kept | None, code: str) -> Kept | tuple[pd.DataFrame, dict[str, Any]]:
    """On a worker: go on with a run for some seconds; where it stands then, or its history and facts if it ended."""
    if __version__ != code:
        raise ValueError(f"the worker on {node()} has other code of bilevel_core: install there what is installed here")
    with ONE_RUN, TemporaryDirectory() as folder:
        path = Path(folder) / name
        if kept:
            kept.write(path)
        end = time.monotonic() + SLICE
        history, facts = perform(run, path, lambda state, row: time.monotonic() >= end)
        left = Kept.of(path) if facts["stop"] == "callback" else None
    return left or (history, facts)


@contextmanager
def connected(address: str, jobs: int, progress: bool = True) -> Iterator[Pool]:
    """The cluster at an address, or one of `jobs` processes on this machine ("local"), as a pool that does runs."""
    with ExitStack() as stack:
        here = {"n_workers": jobs, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": ERROR}
        place = stack.enter_context(LocalCluster(**here)) if address == "local" else _answering(address)
        client = stack.enter_context(Client(place))
        if progress:
            print(f"{_workers(client)} Dask workers, dashboard: {client.dashboard_link}", file=sys.stderr)
        yield partial(_on_cluster, client)


def _answering(address: str) -> str:
    """An address at which somebody answers. A Client that reaches nobody may lock the next one: none is made there."""

    async def greet() -> None:
        (await connect(address, **Security().get_connection_args("client"))).abort()

    try:
        asyncio.run(greet())
    except (OSError, ValueError) as error:
        cure = "start one with `dask scheduler`, or say --dask local"
        raise ValueError(f"no Dask scheduler answers at {address} ({error}): {cure}") from error
    return address


def _workers(client: Client) -> int:
    """How many workers there are; none while the scheduler is away, for which the client looks for half a minute."""
    if client.status not in ("running", "connecting"):
        raise OSError("the Dask scheduler is gone; once there is one again, the same command goes on from here")
    with suppress(OSError):
        return len(client.nthreads())
    return 0


def _on_cluster(client: Client, runs: list[Run], folder: Path) -> Iterator[tuple[Run, str]]:
    """Have done, and store, what nobody else is at; returns early if the scheduler is lost, and can be called again."""
    waiting, under_way = iter(runs), dict[Any, tuple[Run, Any]]()

    def send(run: Run, lock: Any) -> None:
        path = checkpoint_of(run, folder)
        future = client.submit(a_slice, run, path.name, Kept.of(path), __version__, pure=False)
        under_way[future] = run, lock

    def fill() -> None:  # one more than there are workers: those who start workers see that there is work
        while len(under_way) <= _workers(client) and (run := next(waiting, None)):
            if lock := claim(run, folder):
                send(run, lock)

    try:
        with suppress(CancelledError):  # the scheduler is gone, and what it knew
            fill()
            while under_way:
                for future in wait([*under_way], return_when="FIRST_COMPLETED").done:
                    run, lock = under_way[future]
                    result = future.result()
                    del under_way[future]
                    if isinstance(result, Kept):
                        result.write(checkpoint_of(run, folder))
                        send(run, lock)
                    else:
                        history, facts = result
                        store(run, history, facts, folder)
                        lock.release()
                        yield run, facts["stop"]
                    fill()
    except KilledWorker as error:
        raise BrokenExecutor(f"{run.name}: every worker that took it up died, perhaps for lack of memory") from error
    finally:
        for _, lock in under_way.values():
            lock.release()
