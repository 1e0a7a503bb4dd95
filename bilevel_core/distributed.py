"""One problem on several processes, each with a part of the data: every rank holds x, y and v, and draws from its part.

    f = (1 / W) sum_r f_r,    g = (1 / W) sum_r g_r          f_r, g_r: the losses of rank r on its draw; W ranks

Whatever a method sees, a loss or a derivative of any order, is this mean already. So all ranks do the same arithmetic,
also where a method is not linear in the samples: a projection, a norm, a line search, a product of random length. In
the inner product  <a, b> = (1 / W) sum_r <a_r, b_r>  of what the ranks hold, to copy a vector to all of them and to
take the mean over them are adjoint: the backward pass of each is the other.

A loss costs a message of one number, a derivative one of dim x or dim y numbers. The three directions of a step are
linear in the losses: they travel together, in one message for each point (`directions.directions`).
"""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import HashStore
from torch.autograd import Function

from bilevel_core.checkpoint import Checkpoint
from bilevel_core.checks import POSITIVE
from bilevel_core.problem import BilevelProblem, Samples, check_problem, full_samples, seeded

T = TypeVar("T")


def together(timeout: float = 60.0) -> tuple[int, int]:
    """Join the processes that torchrun started, by gloo; the number of this one (its rank), and how many they are.

    A process that ends, or does not answer for `timeout` seconds, stops all of them with a ConnectionError. Without
    torchrun this process is the only one. A group that exists already is taken as it is.
    """
    POSITIVE.check(timeout=timeout)
    if not dist.is_initialized():
        place: Any = {} if "RANK" in os.environ else {"store": HashStore(), "rank": 0, "world_size": 1}
        _heard(lambda: dist.init_process_group("gloo", timeout=timedelta(seconds=timeout), **place))
    return dist.get_rank(), dist.get_world_size()


class _OneFile(Checkpoint):
    """The states of all ranks are one: rank 0 writes it, all read it. What must not change is that of all ranks."""

    def __init__(self, path: Path, identity: dict[str, str]):
        told = _gathered(identity)
        each = {name: [facts.get(name, "") for facts in told] for name in identity}
        same = {name: values[0] if {*values} == {values[0]} else str(values) for name, values in each.items()}
        super().__init__(path, same | {"number of ranks": str(len(told))})

    def exists(self) -> bool:
        _agree(f"whether {self.path} is there", here := super().exists())
        return here

    def add(self, row: object, content: dict[str, Any]) -> None:
        if dist.get_rank() == 0:
            super().add(row, content)


class Distributed(BilevelProblem):
    """The mean over all processes of the problem that each of them gives here, for every method and for `run`.

    Their x, y and sizes of draws must be the same, their data should not: `data[rank::ranks]`, with the pair of
    `together`. The first iterates are those of rank 0. Samples are counted over all ranks, gradients as on one process
    with the joined batch; `messages` and `numbers` count what this rank sent. Rows and states are the same on all
    ranks; `evaluate` is the mean of theirs. A checkpoint is one file, which rank 0 writes and all ranks must see.
    """

    checkpoint = _OneFile

    def __init__(self, problem: BilevelProblem):
        check_problem(problem, seed=0)
        if problem.state_dict():
            name = type(problem).__name__
            raise ValueError(f"{name} changes as it is used (state_dict): rank 0 cannot save that of the others")
        self.rank, self.ranks = together()
        self.on_this_rank, self.x_blocks = problem, problem.x_blocks
        self.messages = self.numbers = 0
        _agree("x and y", [(z.shape, z.dtype) for z in problem.start(seeded(0))])
        _agree("the sizes of a draw", [problem.size(batch) for batch in problem.sample(seeded(0))])

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        x, y = (z.detach().clone() for z in self.on_this_rank.start(generator))
        _heard(lambda: (dist.broadcast(x, 0), dist.broadcast(y, 0)))
        return x, y

    def sample(self, generator: torch.Generator) -> Samples:
        # The generator stays the same on all ranks, so that a method draws the same directions and lengths from it.
        shared = int(torch.randint(2**31, (), generator=generator))
        return self.on_this_rank.sample(seeded(shared + self.rank))

    def upper_at(self, x: Tensor, batch: Any) -> Callable[[Tensor], Tensor]:
        return self._mean_loss(self.on_this_rank.upper_at, x, batch)

    def lower_at(self, x: Tensor, batch: Any) -> Callable[[Tensor], Tensor]:
        return self._mean_loss(self.on_this_rank.lower_at, x, batch)

    def _mean_loss(self, at: Callable[..., Callable[[Tensor], Tensor]], x: Tensor, batch: Any) -> Any:
        loss = at(_copy(x, self), batch)
        return lambda y: _mean(loss(_copy(y, self)), self)

    def project_x(self, x: Tensor) -> Tensor:
        return self.on_this_rank.project_x(x)

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        numbers = self.on_this_rank.evaluate(x, y)
        (means,) = self.mean(torch.tensor([*map(float, numbers.values())], dtype=torch.float64, device=x.device))
        return dict(zip(numbers, means.tolist(), strict=True))

    def full(self) -> Samples:
        samples = full_samples(self.on_this_rank)
        _agree("the sizes of all data", [self.on_this_rank.size(batch) for batch in samples])
        return samples

    def size(self, batch: Any) -> int:
        return self.ranks * self.on_this_rank.size(batch)

    def mean(self, *tensors: Tensor) -> list[Tensor]:
        """The mean over the ranks of each of these, all in one message."""
        joined = torch.cat([tensor.reshape(-1) for tensor in tensors])
        self.messages, self.numbers = self.messages + 1, self.numbers + len(joined)
        _heard(lambda: dist.all_reduce(joined))
        parts = (joined / self.ranks).split([tensor.numel() for tensor in tensors])
        return [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]

    def local(self) -> BilevelProblem:
        return self.on_this_rank

    def average(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.mean(*tensors))


class _Copy(Function):
    """z on every rank."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, problem: Distributed) -> Tensor:
        ctx.problem = problem
        return z.view_as(z)

    @staticmethod
    def backward(ctx: Any, d: Tensor) -> Any:
        return _mean(d, ctx.problem), None


class _Mean(Function):
    """The mean over the ranks."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, problem: Distributed) -> Tensor:
        ctx.problem = problem
        return problem.mean(z)[0]

    @staticmethod
    def backward(ctx: Any, d: Tensor) -> Any:
        return _copy(d, ctx.problem), None


_copy: Any = _Copy.apply
_mean: Any = _Mean.apply


def _gathered(here: T) -> list[T]:
    found: list[Any] = [None] * dist.get_world_size()
    _heard(lambda: dist.all_gather_object(found, here))
    return found


def _agree(what: str, here: object) -> None:
    found = _gathered(here)
    if any(each != here for each in found):
        raise ValueError(f"{what} must be the same on every rank, got {found}")


def _heard(message: Callable[[], object]) -> None:
    """Send a message that all ranks take part in; if one does not, say so."""
    try:
        message()
    except RuntimeError as error:
        who = f"rank {dist.get_rank()} of {dist.get_world_size()}" if dist.is_initialized() else "this process"
        raise ConnectionError(
            f"{who} lost the others: a process has ended, or did not answer in time, so that no mean can be taken. "
            "Start all of them again; with a checkpoint the run goes on from there. What torch says: "
            f"{str(error).splitlines()[0]}"
        ) from error
