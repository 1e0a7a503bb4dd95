"""Everything around the steps: loading, importing, checkpoints, the runner."""

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from torch import Tensor

from bilevel_book.methods import SOLVERS
from bilevel_core import run
from bilevel_core.problems import Quadratic
from clock import fresh_side_by_side, side_by_side
from table import Row


def processes(rounds: int) -> Iterator[Row]:
    """CPU seconds and peak memory of a new Python, above one that does `import torch` and nothing else."""
    help_page = "import runpy, sys; sys.argv = ['', '--help']; runpy.run_module('bilevel_book', alter_sys=True)"
    codes = {
        "torch": "import torch",
        "bilevel_core": "import bilevel_core",
        "torchvision": "from bilevel_book.mnist.vision import import_torchvision; import_torchvision('datasets')",
        "load_mnist": "from bilevel_book.mnist.data import load_mnist; load_mnist()",
        "nothing": "",
        "--help": help_page,
    }
    used = fresh_side_by_side(codes, rounds)

    def above(name: str, base: str, unit: str) -> float:
        return used[name][unit] - used[base][unit]

    yield Row("import torchvision", "time", "import torch", above("torchvision", "torch", "seconds"), "s")
    seconds, megabytes = (above("load_mnist", "torchvision", unit) for unit in ("seconds", "megabytes"))
    yield Row("load_mnist, cold", "time", "import torchvision", seconds, "s", 0.35)
    yield Row("load_mnist, cold", "peak memory", "import torchvision", megabytes, "MB", 110)
    yield Row("import bilevel_core", "time", "import torch", above("bilevel_core", "torch", "seconds"), "s", 0.1)
    yield Row("python -m bilevel_book", "--help", "a bare Python", above("--help", "nothing", "seconds"), "s", 0.15)


class Stopwatch(Quadratic):
    """A quadratic that notes when each row of a history is evaluated."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        self.times.append(time.process_time())
        return {}


def checkpoints(around: int, at: tuple[int, ...] = (10, 100, 1000, 3000)) -> Iterator[Row]:
    """CPU time of one save when a run has so many rows: a row with a checkpoint less a row without, medians over the
    2 around + 1 rows about it."""

    def rows(**checkpoint: Path) -> list[float]:
        problem = Stopwatch()
        run(problem, SOLVERS["SOBA"](), steps=max(at) + around, every=1, progress=False, **checkpoint)
        return [later - sooner for sooner, later in zip(problem.times, problem.times[1:], strict=False)]

    plain = statistics.median(rows())
    with tempfile.TemporaryDirectory() as folder:
        spent = rows(checkpoint=Path(folder) / "run.ckpt")
    saves = {n: statistics.median(spent[n - around : n + around + 1]) - plain for n in at}
    for n, seconds in saves.items():
        yield Row("a checkpoint", f"{n} rows", "", 1e3 * seconds, "ms")
    growth = saves[at[-1]] / saves[at[0]]
    yield Row("a checkpoint", f"{at[-1]} rows", f"{at[0]} rows", growth, "x", 1.25)


def runner(rounds: int, steps: int = 1000) -> Iterator[Row]:
    """What `run` adds to a step, on a quadratic: its time less that of a bare loop, over the number of steps."""
    problem = Quadratic(noise=0.1)
    for name in ("FdeHBO", "SOBA", "alternating"):
        solver = SOLVERS[name]()

        def bare(solver=solver) -> None:
            state = solver.init(problem)
            for _ in range(steps):
                state = solver.step(problem, state)

        def whole(solver=solver) -> None:
            run(problem, solver, steps=steps, every=steps, progress=False)

        times = side_by_side({"bare": bare, "run": whole}, rounds)
        added = 1e6 * (times["run"] - times["bare"]) / steps
        yield Row("run() over bare steps", name, "a bare loop", added, "us", 15)
