"""What each process of tests/core/test_distributed.py does: python on_ranks.py FOLDER

Three ranks, of which one dies, then all again; and two ranks that torchrun's agent starts. What each rank tells is in
FOLDER/RANKS/RANK.pt. All are forked from one process, which has imported everything.
"""

import json
import multiprocessing
import os
import shutil
import signal
import socket
import sys
from dataclasses import fields
from pathlib import Path

import torch
from torch import nn

from bilevel_book.methods import SOLVERS
from bilevel_core import BilevelProblem, FdeHBO, Samples, from_modules, hypergradient, refit, run
from bilevel_core.distributed import Distributed, init_processes
from bilevel_core.problem import seeded

ROWS, BATCH, STEPS = 60, 4, 3
KINDS = "FMBO", "FdeHBO", "stocBiO", "VRBO", "F2SA", "PZOBO-S"


def data():
    """Rows that know their own number, in the last column."""
    generator = seeded(0)
    inputs = torch.randn(ROWS, 3, generator=generator, dtype=torch.float64)
    targets = torch.tanh(inputs.sum(1, keepdim=True)) + 0.1 * torch.randn(ROWS, 1, generator=generator).double()
    return inputs, targets


def part(rank, ranks):
    """The problem of one rank: features below a ridge regression, on every `ranks`-th row."""
    torch.manual_seed(7)
    outer, inner = nn.Sequential(nn.Linear(3, 4), nn.Tanh()).double(), nn.Linear(4, 1).double()
    rows = tuple(column[rank::ranks] for column in data())
    return from_modules(outer, inner, nn.functional.mse_loss, rows, rows, batch_size=BATCH, ridge=0.1)


class Joined(BilevelProblem):
    """The parts of all ranks on one process, with the draws that the ranks would make."""

    def __init__(self, parts):
        self.parts = parts

    def start(self, generator):
        return self.parts[0].start(generator)

    def sample(self, generator):
        shared = int(torch.randint(2**31, (), generator=generator))
        draws = [each.sample(seeded(shared + rank)) for rank, each in enumerate(self.parts)]
        return Samples(*zip(*draws, strict=True))

    def full(self):
        return Samples(*zip(*(each.full() for each in self.parts), strict=True))

    def upper(self, x, y, batch):
        return sum(each.upper(x, y, rows) for each, rows in zip(self.parts, batch, strict=True)) / len(self.parts)

    def lower(self, x, y, batch):
        return sum(each.lower(x, y, rows) for each, rows in zip(self.parts, batch, strict=True)) / len(self.parts)

    def evaluate(self, x, y):
        numbers = [each.evaluate(x, y) for each in self.parts]
        return {name: sum(each[name] for each in numbers) / len(numbers) for name in numbers[0]}

    def size(self, batch):
        return sum(each.size(rows) for each, rows in zip(self.parts, batch, strict=True))


def methods(ranks):
    """All on two ranks; on three one of each kind: momentum, differences, series, two loops, penalty, zeroth order."""
    return SOLVERS if ranks == 2 else {name: SOLVERS[name] for name in KINDS}


def answers(problem, ranks):
    """What is compared between ranks and one process: the ends of methods, and what else asks for f and g."""
    told = {}
    for name, method in methods(ranks).items():
        short = {f.name: 2 for f in fields(method) if f.name in ("inner", "K", "Q", "large")}
        result = run(problem, method(**short), steps=STEPS, every=STEPS, progress=False)
        told[name] = result.state, result.history.drop(columns=["cpu_seconds", "wall_seconds"])
    three, x = run(problem, FdeHBO(independent=True), steps=STEPS, progress=False).state, problem.start(seeded(0))[0]
    told["others"] = [three.x, three.y, three.v, *hypergradient(problem, x), refit(problem, x).y]
    return told


class Recording(BilevelProblem):
    """A part that notes which rows of all data it draws."""

    def __init__(self, rank, ranks):
        self.part, self.rank, self.ranks = part(rank, ranks), rank, ranks
        self.seen = {"upper": set(), "lower": set()}

    def start(self, generator):  # each rank says its own: that of rank 0 counts
        x, y = self.part.start(generator)
        return x + self.rank, y - self.rank

    def sample(self, generator):
        samples = self.part.sample(generator)
        for name, rows in samples._asdict().items():
            self.seen[name] |= {self.rank + self.ranks * row for row in rows.tolist()}
        return samples

    def upper(self, x, y, batch):
        return self.part.upper(x, y, batch)

    def lower(self, x, y, batch):
        return self.part.lower(x, y, batch)

    def size(self, batch):
        return len(batch)


class Dying(Recording):
    """The last rank is killed when it evaluates for the third time, if it is to die."""

    def __init__(self, rank, ranks, dies=False):
        super().__init__(rank, ranks)
        self.dies, self.evaluated = dies, 0

    def evaluate(self, x, y):
        self.evaluated += 1
        if self.dies and self.rank == self.ranks - 1 and self.evaluated == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.part.evaluate(x, y)


def kept(path, problem):
    """The end of a run with a checkpoint, and how many of its rows were evaluated here."""
    run_ = run(Distributed(problem), FdeHBO(), steps=8, every=2, progress=False, checkpoint=path)
    return run_.state, run_.history.drop(columns=["cpu_seconds", "wall_seconds"]), problem.evaluated


def sent(problem, solver):
    """Messages, and numbers in them, of two steps."""
    state, told = solver.init(problem), []
    for _ in range(2):
        messages, numbers = problem.messages, problem.numbers
        state = solver.step(problem, state)
        told.append((problem.messages - messages, problem.numbers - numbers))
    return told


def refusals(folder, rank, ranks):
    """What is said to a rank that comes with something else, on every rank."""
    problem = part(rank, ranks)

    def other(**changes):
        made = part(rank, ranks)
        for name, value in changes.items():
            setattr(made, name, value)
        return Distributed(made)

    class Longer(Recording):
        def start(self, generator):
            x, y = super().start(generator)
            return torch.cat([x, x[: self.rank]]), y

        def upper(self, x, y, batch):
            return super().upper(x[:16], y, batch)

        lower = upper

    def uneven():
        rows = tuple(column[: 20 + rank] for column in data())
        return Distributed(
            from_modules(problem.outer.given, problem.inner.given, nn.functional.mse_loss, rows, rows, 4)
        )

    calls = {
        "draw": lambda: other(upper_size=BATCH + rank),
        "x": lambda: Distributed(Longer(rank, ranks)),
        "full": lambda: refit(uneven(), problem.start(seeded(0))[0]),
        "checkpoint": lambda: run(Distributed(problem), FdeHBO(), steps=9, checkpoint=folder / "whole.ckpt"),
    }
    said = {}
    for name, call in calls.items():
        try:
            call()
        except ValueError as error:
            said[name] = str(error)
    return said


def tell(folder):
    """All that the tests compare, from this rank."""
    rank, ranks = init_processes(timeout=600)
    problem, recording = Distributed(part(rank, ranks)), Recording(rank, ranks)
    told = {
        "answers": answers(problem, ranks),
        "start": Distributed(recording).start(seeded(0)),
        "draws": run(Distributed(recording), FdeHBO(), steps=10, progress=False).stop and recording.seen,
        "sent": {name: sent(problem, SOLVERS[name](eta=0.5)) for name in ("FdeHBO", "FMBO")},
        "whole": kept(folder / "whole.ckpt", Dying(rank, ranks)),
        "resumed": kept(folder / "killed.ckpt", Dying(rank, ranks)),
        "refused": refusals(folder, rank, ranks),
    }
    torch.save(told, folder / f"{rank}.pt")


def die(folder):
    """A run that the last rank does not survive."""
    kept(folder / "killed.ckpt", Dying(*init_processes(timeout=600), dies=True))


def forked(folder, ranks, call):
    """The exit codes of so many processes; nothing but the end of one can end the others. Their words are in files."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def work(rank):
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_PORT": str(port)}
        os.dup2(os.open(folder / f"{call.__name__}_{rank}.txt", os.O_WRONLY | os.O_CREAT), 2)
        call(folder)

    processes = [multiprocessing.get_context("fork").Process(target=work, args=(rank,)) for rank in range(ranks)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


def elastic(folder, ranks, call):
    """The same under torchrun's agent, which chooses rank, address and port."""
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(1, 1, ranks, run_id="ranks", rdzv_backend="c10d", rdzv_endpoint="localhost:0")
    config.start_method = "fork"
    elastic_launch(config, call)(folder)


def main():
    import pandas  # noqa: F401  here once, not in every rank
    import torch._dynamo

    torch.set_num_threads(1)
    two, three = (Path(sys.argv[1]) / ranks for ranks in "23")
    dead = forked(three, 3, die)
    shutil.copy(three / "killed.ckpt", three / "first_killed.ckpt")
    print(json.dumps([dead, forked(three, 3, tell)]))
    elastic(two, 2, tell)


if __name__ == "__main__":
    main()
