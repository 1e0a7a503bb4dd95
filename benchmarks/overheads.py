"""Everything around the steps: layers of the network, loading, importing, checkpoints, the runner, a slider's frame."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from bilevel_book.methods import SOLVERS
from bilevel_book.mnist import HyperRepresentation
from bilevel_book.mnist.hyper_representation import MEAN, STD, lenet
from bilevel_core import run
from bilevel_core.problems import Quadratic, Valley
from clock import fresh_side_by_side, side_by_side
from table import Row

# LeNet's own layers


def plain_lenet() -> nn.Sequential:
    """LeNet as it is usually written."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 120, 5), nn.ReLU(), nn.Flatten(),
        nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return make()


def passes(nets: dict[str, nn.Module], rounds: int) -> Iterator[Row]:
    """A pass of each network over a batch, forward alone and with its backward pass, over that of the first; the
    difference is that of the gradients, on real images, whose flat parts make many ties."""
    problem = HyperRepresentation()
    batch = problem.sample(torch.Generator().manual_seed(0)).lower
    images, labels = (problem.lower_data.inputs[batch] / 255 - MEAN) / STD, problem.lower_data.targets[batch]

    def forward(net: nn.Module) -> Tensor:
        with torch.no_grad():
            return net(images)

    def gradient(net: nn.Module) -> Tensor:
        loss = nn.functional.cross_entropy(net(images), labels)
        return nn.utils.parameters_to_vector(torch.autograd.grad(loss, list(net.parameters())))

    first, *others = nets
    for kind, call in {"forward": forward, "forward and backward": gradient}.items():
        times = side_by_side({name: lambda call=call, net=net: call(net) for name, net in nets.items()}, rounds)
        answer = gradient(nets[first])
        for name in others:
            far = ((gradient(nets[name]) - answer).norm() / answer.norm()).item()
            yield Row.ratio(f"LeNet, {kind}", name, times[name], first, times[first], difference=far)


def layers(rounds: int) -> Iterator[Row]:
    ours = seeded(lambda: nn.Sequential(*lenet()))
    return passes({"nn.MaxPool2d, nn.Conv2d": seeded(plain_lenet), "this book's": ours}, rounds)


# Fresh processes


def processes(rounds: int) -> Iterator[Row]:
    """CPU seconds and peak memory of a new Python, above one that does `import torch` and nothing else."""
    help_page = (
        "import runpy, sys; sys.argv = ['bilevel_core', '--help']; runpy.run_module('bilevel_core', alter_sys=True)"
    )
    codes = {
        "torch": "import torch",
        "bilevel_core": "import bilevel_core",
        "load_mnist": "from bilevel_book.mnist.data import load_mnist; load_mnist()",
        "nothing": "",
        "--help": help_page,
    }
    used = fresh_side_by_side(codes, rounds)

    def above(name: str, base: str, unit: str) -> float:
        return used[name][unit] - used[base][unit]

    yield Row("load_mnist, cold", "time", "import torch", above("load_mnist", "torch", "seconds"), "s", 0.35)
    yield Row("load_mnist, cold", "peak memory", "import torch", above("load_mnist", "torch", "megabytes"), "MB", 110)
    yield Row("import bilevel_core", "time", "import torch", above("bilevel_core", "torch", "seconds"), "s", 0.1)
    yield Row("python -m bilevel_book", "--help", "a bare Python", above("--help", "nothing", "seconds"), "s", 0.15)


# The runner


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


def frame(frames: int) -> Iterator[Row]:
    """One stored frame of each slider of Chapter 1: drawn, turned into a picture, quantised, compressed."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from bilevel_book.figures import slice_of_lower, step_by_step
    from bilevel_book.sliders import explore

    valley, solver = Valley(), SOLVERS["FdeHBO"]()
    path = [solver.init(valley)]
    for _ in range(60):
        path.append(solver.step(valley, path[-1]))
    sliders = {
        "one panel": explore(lambda x: slice_of_lower(valley, x), alt="", x=[k / 10 for k in range(-20, 20)]),
        "three panels": explore(lambda t: step_by_step(valley, path, t), alt="", t=range(40)),
    }
    for name, slider in sliders.items():
        at = iter(range(40))
        slider.frame([next(at)])  # makes the palette, once for all

        def one(slider=slider, at=at) -> None:
            slider.frame([next(at)])
            plt.close("all")

        seconds = side_by_side({name: one}, frames)[name]
        yield Row("a stored frame", name, "", seconds, "s", 0.2)
