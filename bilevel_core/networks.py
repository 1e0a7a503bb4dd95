"""A bilevel problem from two networks and two sets of data: x holds the weights of one, y those of the other."""

import copy
import inspect
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, default_collate

from bilevel_core.checks import COUNT
from bilevel_core.problem import BilevelProblem, Loss, Samples, check_scalar, seeded

EXTRAS = {"index", "outer", "inner"}  # what a loss may take besides predictions and targets
EXAMPLES_READ_TWICE = 256  # of a Dataset, to see whether it reads alike
EXAMPLES_FOR_CHECKS = 8  # in the batch on which the losses are tried


class Labelled(NamedTuple):
    """Inputs and targets in memory, each a tensor or a nest of tensors, one row a data point."""

    inputs: Any
    targets: Any

    def full(self) -> slice:
        return slice(0, len(tree_leaves(self.targets)[0]))  # which is taken without copying anything

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """The places of n rows, uniform and with replacement."""
        return torch.randint(self.full().stop, (n,), generator=generator).to(tree_leaves(self.targets)[0].device)


def labelled(name: str, data: Any, device: torch.device, dtype: torch.dtype) -> Labelled:
    """Data of any kind in memory: floats in `dtype`, whole numbers as they are. A dict is both inputs and targets."""

    def tensor(value: Any) -> Tensor:
        found = value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
        if not found.isfinite().all():
            raise ValueError(f"{found[~found.isfinite()][0]} is in it; drop or fill such examples")
        return found.detach().to(device, dtype if found.is_floating_point() else None)

    def kept(batch: Any) -> Labelled:
        tensors = tree_map(tensor, dict(batch) if isinstance(batch, Mapping) else batch)
        inputs, targets = (tensors, tensors) if isinstance(tensors, dict) else tensors
        lengths = sorted({len(part) for part in tree_leaves((inputs, targets))})
        if len(lengths) != 1 or lengths == [0]:
            raise ValueError(f"inputs and targets must be equally many, at least one, got {lengths}")
        return Labelled(inputs, targets)

    collate = default_collate
    if isinstance(data, DataLoader):
        if data.batch_size is None or type(data.sampler) not in (RandomSampler, SequentialSampler):
            raise ValueError(f"{name}: draws are uniform, not those of the sampler of a DataLoader; give its Dataset")
        data, collate = data.dataset, data.collate_fn
    try:
        if isinstance(data, tuple | Mapping):
            return kept(data)
        few = min(EXAMPLES_READ_TWICE, len(data))
        once, again, everything = (kept(collate([data[i] for i in range(n)])) for n in (few, few, len(data)))
    except Exception as error:
        allowed = "a pair of arrays (inputs, targets), a dict of arrays, a list of examples, a Dataset or a DataLoader"
        raise ValueError(f"{name} must be {allowed}, with finite numbers: {error!r}") from error
    if not all(map(torch.equal, tree_leaves(once), tree_leaves(again))):
        raise ValueError(f"{name} does not read twice alike; to augment, write a BilevelProblem with its own sample")
    return everything


class Modules(BilevelProblem):
    """The problem of learning `outer` so that `inner`, fitted on top of it, does well elsewhere:

        f(x, y) = mean of loss(inner_y(outer_x(input)), target) over upper_data
        g(x, y) = the same over lower_data + ridge ||y||^2

    x and y are the parameters that require a gradient, from where they are now, on `device` and in `dtype` if given.
    `loss` returns the mean over a batch; a pair is that of f and that of g, as a pair of batch sizes is. A loss may
    also take `index`, the places of its examples in the data; `outer`, the outer module at x: then predictions are
    inner_y(input); and `inner`, the weights y by name. Draws are uniform with replacement.
    """

    def __init__(
        self,
        outer: nn.Module,
        inner: nn.Module,
        loss: Loss | tuple[Loss, Loss],
        upper_data: Any,
        lower_data: Any,
        batch_size: int | tuple[int, int] | None = None,
        ridge: float = 0.0,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        sizes: Any = batch_size if isinstance(batch_size, tuple) else (batch_size,)
        if batch_size is None:
            sizes = [data.batch_size for data in (upper_data, lower_data) if isinstance(data, DataLoader)] or [256]
        self.upper_size, self.lower_size = sizes if len(sizes) == 2 else sizes * 2
        COUNT.check(batch_size=min(sizes))
        f, g = loss if isinstance(loss, tuple) else (loss, loss)
        asks = [
            inspect.signature(each.forward if isinstance(each, nn.Module) else each).parameters.keys()
            for each in (f, g)
        ]
        self.losses, self.ridge = [(f, EXTRAS & asks[0]), (g, EXTRAS & asks[1])], ridge
        self.outer, self.inner = _Flat("outer", outer, device, dtype), _Flat("inner", inner, device, dtype)
        self.x_blocks = tuple(self.outer.sizes)
        if both := [name for name, p in outer.named_parameters() if p.requires_grad and p in {*inner.parameters()}]:
            raise ValueError(f"outer and inner share {', '.join(both)}: a parameter belongs to x or to y")
        x = self.outer.weights
        self.upper_data = labelled("upper_data", upper_data, x.device, x.dtype)
        self.lower_data = labelled("lower_data", lower_data, x.device, x.dtype)
        if not x.is_meta:  # a device without values
            self._check_loss("upper", self.upper, self.upper_data.draw(EXAMPLES_FOR_CHECKS, seeded(0)))
            self._check_loss("lower", self.lower, self.lower_data.draw(EXAMPLES_FOR_CHECKS, seeded(0)))

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return self.outer.weights.clone(), self.inner.weights.clone()

    def load(self, x: Tensor, y: Tensor) -> tuple[nn.Module, nn.Module]:
        """The two modules that were given, with x and y written into their parameters."""
        for part, weights in ((self.outer, self.outer.named(x)), (self.inner, self.inner.named(y))):
            part.given.load_state_dict(weights, strict=False)
        return self.outer.given, self.inner.given

    def sample(self, generator: torch.Generator) -> Samples:
        upper = self.upper_data.draw(self.upper_size, generator)
        return Samples(upper, self.lower_data.draw(self.lower_size, generator))

    def full(self) -> Samples:
        return Samples(self.upper_data.full(), self.lower_data.full())

    def size(self, batch: Any) -> int:
        return batch.stop if isinstance(batch, slice) else len(batch)

    def predict(self, x: Tensor, y: Tensor, inputs: Any) -> Tensor:
        """inner_y(outer_x(inputs))."""
        return self.inner(y, self.features(x, inputs))

    def upper_at(self, x: Tensor, batch: Any) -> Callable[[Tensor], Tensor]:
        return self._loss_at(x, *self.losses[0], self.upper_data, batch)

    def lower_at(self, x: Tensor, batch: Any) -> Callable[[Tensor], Tensor]:
        loss = self._loss_at(x, *self.losses[1], self.lower_data, batch)
        return (lambda y: loss(y) + self.ridge * (y @ y)) if self.ridge else loss

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        full = self.full()
        with torch.no_grad():
            f, g = self.upper(x, y, full.upper), self.lower(x, y, full.lower)
        return {"upper_loss": f.item(), "lower_loss": g.item()}

    def features(self, x: Tensor, inputs: Any) -> Any:
        """What the inner module sees."""
        return inputs if any("outer" in asks for _, asks in self.losses) else self.outer(x, inputs)

    def _loss_at(self, x: Tensor, loss: Loss, asks: set[str], data: Labelled, batch: Any) -> Callable[[Tensor], Tensor]:
        """y -> the loss on a batch; the features are computed here, once for all y."""
        inputs, targets = tree_map(lambda tensor: tensor[batch], data)
        index = torch.arange(batch.stop, device=x.device) if isinstance(batch, slice) else batch
        features, known = self.features(x, inputs), {"index": index, "outer": partial(self.outer, x)}
        extra = {name: known[name] for name in asks & known.keys()}
        if "inner" in asks:
            return lambda y: loss(self.inner(y, features), targets, inner=self.inner.named(y), **extra)
        return lambda y: loss(self.inner(y, features), targets, **extra)

    def _check_loss(self, level: str, loss: Loss, batch: Tensor) -> None:
        """Raise ValueError unless a loss is a mean, and a function of x, y and the batch alone."""
        x, y = (part.weights.clone().requires_grad_() for part in (self.outer, self.inner))
        names = {layer: f"{name} ({type(layer).__name__})" for name, layer in self._both().named_modules()}
        before, buffers = torch.get_rng_state(), copy.deepcopy(dict(self._both().named_buffers()))
        done: list[
            tuple[str, bool]
        ] = []  # the layers, in the order in which they end, and whether any has drawn by then

        def note(layer: nn.Module, *_: Any) -> None:
            done.append((names.get(layer, "the loss"), not torch.equal(before, torch.get_rng_state())))

        with torch.enable_grad(), warnings.catch_warnings(), register_module_forward_hook(note):
            warnings.filterwarnings("error", "Using a target size")  # (n, 1) and (n,) would become (n, n)
            try:
                value = check_scalar(level, loss(x, y, batch), graph=True)
                forward = len(done)
                torch.autograd.grad(value, (x, y), allow_unused=True)
            except Exception as error:
                after = f"after {done[-1][0]}" if done else "at once"
                raise ValueError(f"the {level} loss fails on a batch of {level}_data, {after}: {error}") from error
        random = [name for name, has_drawn in done if has_drawn]
        random += ["the loss"] * (not torch.equal(before, torch.get_rng_state()))
        changed = [name for name, now in self._both().named_buffers() if not torch.equal(now, buffers[name])]
        if random or changed:
            cure = "must be a function of the weights and the batch: call .eval() on the layer, or use another one"
            raise ValueError(
                f"{[*random, *changed][0]} is random or remembers earlier batches, but the {level} loss {cure}"
            )
        recomputed = [name for name, _ in done[forward:]]
        if recomputed:
            what = f"{recomputed[0]} is computed again in the backward pass of the {level} loss, as in checkpoint"
            raise ValueError(f"{what}, without x and y in it; write a BilevelProblem that hands it the weights")
        # Copies of a batch add equally much to a sum, nothing to a mean, and more or less each time to a loss that
        # compares examples with one another.
        with torch.no_grad():
            one, two, three = (loss(x, y, batch.repeat_interleave(k)).item() for k in (1, 2, 3))
        if abs(two - one) > 1e-3 * abs(one) and abs(three - 2 * two + one) < 1e-2 * abs(two - one):
            what = f"the {level} loss grows with its batch, by as much for every copy of it, as a sum over examples"
            raise ValueError(f"{what} does, but it must be their mean (reduction='mean' in the losses of torch)")

    def _both(self) -> nn.Module:
        return nn.ModuleDict({"outer": self.outer.module, "inner": self.inner.module})


from_modules = Modules


class _Flat:
    """A module as a pure function of one flat vector of the weights that it learns, unflattened by views."""

    def __init__(self, name: str, module: nn.Module, device: Any, dtype: torch.dtype | None):
        self.given, self.module = module, copy.deepcopy(module).to(device=device, dtype=dtype)
        learned = {key: p for key, p in self.module.named_parameters() if p.requires_grad}
        if not learned:
            raise ValueError(f"{name} has no parameters to learn, none that requires a gradient")
        self.shapes, self.sizes = {key: p.shape for key, p in learned.items()}, [p.numel() for p in learned.values()]
        self.weights = nn.utils.parameters_to_vector(learned.values()).detach()

    def named(self, weights: Tensor) -> dict[str, Tensor]:
        pieces = zip(self.shapes.items(), weights.split(self.sizes), strict=True)
        return {key: piece.view(shape) for (key, shape), piece in pieces}

    def __call__(self, weights: Tensor, *inputs: Any) -> Any:
        return torch.func.functional_call(self.module, self.named(weights), inputs)
