"""One problem on several processes, each with a part of the data: every rank holds x, y and v, and draws from its part.

    f = (1 / W) sum_r f_r,    g = (1 / W) sum_r g_r          f_r, g_r: the losses of rank r on its draw; W ranks

A method sees this mean only, of a loss or a derivative of any order, so all ranks do the same arithmetic. In the inner
product  <a, b> = (1 / W) sum_r <a_r, b_r>,  to copy a vector to all ranks and to take the mean over them are adjoint.
The three directions are linear in the losses: they are taken on the `local` problem, and `average` is one message.
"""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import HashStore
from torch.autograd import Function

from bilevel_core.problem import BilevelProblem, Samples, check_problem, full_samples, seeded


def init_processes(timeout: float = 60.0) -> tuple[int, int]:
    """Join the processes that torchrun started, by gloo, or the group that exists; the rank of this one, and how many.
    One that ends, or does not answer for `timeout` seconds, stops all by a ConnectionError. Without torchrun: 0, 1."""
    if not dist.is_initialized():
        place: Any = {} if "RANK" in os.environ else {"store": HashStore(), "rank": 0, "world_size": 1}
        _communicate(lambda: dist.init_process_group("gloo", timeout=timedelta(seconds=timeout), **place))
    return dist.get_rank(), dist.get_world_size()


class Distributed(BilevelProblem):
    """The mean over all processes of the problem that each of them gives here, for every method and for `run`.

    Their x, y and sizes of draws must be the same, their data should not: `data[rank::ranks]`. The first iterates are
    those of rank 0, `evaluate` is the mean; rows and states are the same on all. Samples are counted over all ranks,
    gradients as for the joined batch, `messages` and `numbers` sent on this one. Rank 0 writes checkpoints, all read.
    """

    def __init__(self, problem: BilevelProblem):
        check_problem(problem, seed=0)
        if problem.state_dict():
            raise ValueError(f"{type(problem).__name__} changes as it is used: rank 0 cannot save others' state_dict")
        self.rank, self.ranks = init_processes()
        self.on_this_rank, self.x_blocks = problem, problem.x_blocks
        self.messages = self.numbers = 0
        _check_agreement("x and y", [(z.shape, z.dtype) for z in problem.start(seeded(0))])
        _check_agreement("the sizes of a draw", [problem.size(batch) for batch in problem.sample(seeded(0))])

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        x, y = (z.detach().clone() for z in self.on_this_rank.start(generator))
        _communicate(lambda: (dist.broadcast(x, 0), dist.broadcast(y, 0)))
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
        loss = at(_copy_or_mean(x, self, False), batch)
        return lambda y: _copy_or_mean(loss(_copy_or_mean(y, self, False)), self, True)

    def project_x(self, x: Tensor) -> Tensor:
        return self.on_this_rank.project_x(x)

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        numbers = self.on_this_rank.evaluate(x, y)
        (means,) = self.average(torch.tensor([*map(float, numbers.values())], dtype=torch.float64, device=x.device))
        return dict(zip(numbers, means.tolist(), strict=True))

    def full(self) -> Samples:
        samples = full_samples(self.on_this_rank)
        _check_agreement("the sizes of all data", [self.on_this_rank.size(batch) for batch in samples])
        return samples

    def size(self, batch: Any) -> int:
        return self.ranks * self.on_this_rank.size(batch)

    def local(self) -> BilevelProblem:
        return self.on_this_rank

    def processes(self) -> tuple[int, int]:
        return self.rank, self.ranks

    def average(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The mean over the ranks of each of these, all in one message."""
        joined = torch.cat([tensor.reshape(-1) for tensor in tensors])
        self.messages, self.numbers = self.messages + 1, self.numbers + len(joined)
        _communicate(lambda: dist.all_reduce(joined))
        parts = (joined / self.ranks).split([tensor.numel() for tensor in tensors])
        return tuple(part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True))


class _CopyOrMean(Function):
    """z on every rank, or the mean of z over the ranks; the backward pass of each is the other."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, problem: Distributed, is_mean: bool) -> Tensor:
        ctx.problem, ctx.is_mean = problem, is_mean
        return problem.average(z)[0] if is_mean else z.view_as(z)

    @staticmethod
    def backward(ctx: Any, d: Tensor) -> Any:
        return _copy_or_mean(d, ctx.problem, not ctx.is_mean), None, None


_copy_or_mean: Any = _CopyOrMean.apply


def _check_agreement(what: str, here: object) -> None:
    found: list[object] = [None] * dist.get_world_size()
    _communicate(lambda: dist.all_gather_object(found, here))
    if any(each != here for each in found):
        raise ValueError(f"{what} must be the same on every rank, got {found}")


def _communicate(message: Callable[[], object]) -> None:
    """Send a message that all ranks take part in; if one does not, say so."""
    try:
        message()
    except RuntimeError as error:
        who = f"rank {dist.get_rank()} of {dist.get_world_size()}" if dist.is_initialized() else "this process"
        cure = "Start all of them again; with a checkpoint the run goes on from there."
        what = f"{who} lost the others: a process has ended, or did not answer in time ({str(error).splitlines()[0]}). "
        raise ConnectionError(what + cure) from error
