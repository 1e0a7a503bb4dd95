"""A bilevel problem from two networks: x holds the weights of one, y those of the other."""

import copy
from collections.abc import Callable, Sized
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, default_collate

from bilevel_core.problem import BilevelProblem, Samples


class Labelled(NamedTuple):
    """Inputs and their targets, one row a data point."""

    inputs: Tensor
    targets: Tensor


Data = Dataset[Any] | tuple[Tensor, Tensor]
Loss = Callable[[Tensor, Tensor], Tensor]


class Modules(BilevelProblem):
    """The problem of learning `outer` so that `inner`, fitted on top of it, does well elsewhere:

        f(x, y) = mean of loss(inner_y(outer_x(input)), target) over upper_data
        g(x, y) = the same over lower_data + ridge ||y||^2

    `loss(prediction, target)` returns a scalar, the mean over a batch. Data is a torch Dataset of (input, target)
    pairs or a pair of tensors; it is kept in memory. Iterates start at the weights that the modules have now, and the
    modules are left alone. Batches are index tensors, drawn uniformly with replacement, or a slice of all.
    """

    shares_x = False  # `lower_at` computes the features once, and a head at a time is faster than three at once

    def __init__(
        self,
        outer: nn.Module,
        inner: nn.Module,
        loss: Loss,
        upper_data: Data,
        lower_data: Data,
        batch_size: int = 256,
        ridge: float = 0.0,
    ):
        if not (isinstance(batch_size, int) and batch_size >= 1):
            raise ValueError(f"batch_size must be a whole number of at least 1, got {batch_size}")
        if not ridge >= 0:
            raise ValueError(f"ridge must not be negative, got {ridge}")
        self.outer, self.inner = _Flat("outer", outer), _Flat("inner", inner)
        self.x_blocks = tuple(shape.numel() for shape in self.outer.shapes.values())
        self.loss, self.batch_size, self.ridge = loss, batch_size, ridge
        self.upper_data = _in_memory("upper_data", upper_data)
        self.lower_data = _in_memory("lower_data", lower_data)

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return self.outer.weights(), self.inner.weights()

    def sample(self, generator: torch.Generator) -> Samples:
        return Samples(
            *(
                torch.randint(len(data.targets), (self.batch_size,), generator=generator)
                for data in (self.upper_data, self.lower_data)
            )
        )

    def full(self) -> Samples:
        return Samples(range_of(self.upper_data.targets), range_of(self.lower_data.targets))

    def size(self, batch: Tensor | slice) -> int:
        return batch.stop if isinstance(batch, slice) else len(batch)

    def predict(self, x: Tensor, y: Tensor, inputs: Tensor) -> Tensor:
        return self.inner(y, self.features(x, inputs))

    def upper_at(self, x: Tensor, batch: Tensor | slice) -> Callable[[Tensor], Tensor]:
        return self._loss_at(x, self.upper_data, batch)

    def lower_at(self, x: Tensor, batch: Tensor | slice) -> Callable[[Tensor], Tensor]:
        loss = self._loss_at(x, self.lower_data, batch)
        return (lambda y: loss(y) + self.ridge * (y @ y)) if self.ridge else loss

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        with torch.no_grad():
            full = self.full()
            return {
                "upper_loss": self.upper(x, y, full.upper).item(),
                "lower_loss": self.lower(x, y, full.lower).item(),
            }

    def features(self, x: Tensor, inputs: Tensor) -> Tensor:
        """What the inner module sees."""
        return self.outer(x, inputs)

    def _loss_at(self, x: Tensor, data: Labelled, batch: Tensor | slice) -> Callable[[Tensor], Tensor]:
        """y -> the loss on a batch; the features are computed here, once for all y."""
        batch = batch.to(data.targets.device) if isinstance(batch, Tensor) else batch
        features, targets = self.features(x, data.inputs[batch]), data.targets[batch]
        return lambda y: self.loss(self.inner(y, features), targets)


from_modules = Modules


def range_of(targets: Tensor) -> slice:
    """The batch of all data points: a slice, which is taken without copying anything."""
    return slice(0, len(targets))


class _Flat:
    """A module as a pure function of one flat vector of weights, unflattened by views."""

    def __init__(self, name: str, module: nn.Module):
        if not any(p.requires_grad for p in module.parameters()):
            raise ValueError(f"the {name} module has no parameters to learn")
        for child in module.modules():
            random = isinstance(child, nn.modules.dropout._DropoutNd) and child.p > 0
            stateful = isinstance(child, nn.modules.batchnorm._NormBase) and child.track_running_stats
            if child.training and (random or stateful):
                raise ValueError(
                    f"the {name} module holds {type(child).__name__} in training mode: its loss is not a function of "
                    "the weights and the batch; call .eval() on it or use another layer"
                )
        self.module = copy.deepcopy(module)
        self.shapes = {n: p.shape for n, p in module.named_parameters()}

    def weights(self) -> Tensor:
        return nn.utils.parameters_to_vector(self.module.parameters()).detach().clone()

    def __call__(self, weights: Tensor, inputs: Tensor) -> Tensor:
        pieces = weights.split([shape.numel() for shape in self.shapes.values()])
        named = {name: piece.view(shape) for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)}
        return torch.func.functional_call(self.module, named, (inputs,))


def _in_memory(name: str, data: Data) -> Labelled:
    if isinstance(data, Dataset) and isinstance(data, Sized):
        data = default_collate([data[i] for i in range(len(data))])
    try:
        inputs, targets = cast(tuple[Tensor, Tensor], data)
        if len(inputs) == len(targets) > 0:
            return Labelled(inputs, targets)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name} must be a Dataset of (input, target) pairs, or two tensors of equal length")
