"""A bilevel problem from two networks and two sets of data: x holds the weights of one network, y those of the other.

Data of any kind becomes batches that depend on a generator alone: kept in memory, or read again at every draw.
"""
# ruff: noqa: NPY002 - numpy's global generator is what transforms draw from

import copy
import inspect
import math
import pickle
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, default_collate

from bilevel_core.checks import COUNT
from bilevel_core.problem import BilevelProblem, Samples, check_scalar, check_vector

Loss = Callable[..., Tensor]
EXAMPLES_FOR_ALL = 10_000  # of data that is not kept, so many stand for all
EXAMPLES_FOR_CHECKS = 8  # in the batch on which the losses are tried


class Batch(NamedTuple):
    """Inputs, their targets, and their places in the data."""

    inputs: Any
    targets: Any
    places: Tensor


class Labelled(NamedTuple):
    """Inputs and their targets in memory, one row a data point. A draw is an index tensor, or a slice of all."""

    inputs: Any
    targets: Any

    @property
    def full(self) -> slice:
        """All rows: a slice, which is taken without copying anything."""
        return slice(0, len(_first(self.targets)))

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """The places of n rows, uniform and with replacement."""
        return torch.randint(self.full.stop, (n,), generator=generator)

    def batch(self, draw: Any) -> Batch:
        """The rows of a draw."""
        device = _first(self.targets).device
        rows = draw.to(device) if isinstance(draw, Tensor) else draw
        inputs, targets = (p[rows] if isinstance(p, Tensor) else tree_map(lambda t: t[rows], p) for p in self)
        return Batch(inputs, targets, rows if isinstance(rows, Tensor) else torch.arange(rows.stop, device=device))


def _first(nest: Any) -> Tensor:
    return nest if isinstance(nest, Tensor) else tree_leaves(nest)[0]  # a search takes time


class Reader:
    """A Dataset that is read anew at every draw, with the global generators of torch, numpy and Python seeded by that
    of the draw: augmentations are as random as they mean to be, and can be repeated."""

    def __init__(self, name: str, dataset: Any, collate: Callable[[Any], Any], tensor: Callable[[Any], Tensor]):
        self.name, self.dataset, self.collate, self.tensor = name, dataset, collate, tensor
        self.is_random = False

    @cached_property
    def full(self) -> Batch:
        """The first examples, always in the same reading."""
        return self.read(torch.arange(min(EXAMPLES_FOR_ALL, len(self.dataset))), seed=0)

    def draw(self, n: int, generator: torch.Generator) -> Batch:
        """n examples, uniform and with replacement."""
        seed = int(torch.randint(2**62, (1,), generator=generator))
        return self.read(torch.randint(len(self.dataset), (n,), generator=generator), seed)

    def batch(self, draw: Any) -> Batch:
        """A draw has its rows already."""
        return draw

    def read(self, places: Tensor, seed: int) -> Batch:
        """The examples at these places."""
        with reseeded(seed) as used:
            try:
                batch = self.collate([self.dataset[place] for place in places.tolist()])
            except Exception as error:
                cure = "make them tensors of one shape, or give a DataLoader whose collate_fn does"
                raise ValueError(f"{self.name}: its examples make no batch ({error!r}); {cure}") from error
            self.is_random |= used()
        return Batch(*_labelled(self.name, batch, self.tensor), self.tensor(places))


def batches(name: str, data: Any, n: int, device: torch.device, dtype: torch.dtype) -> Labelled | Reader:
    """Data of any kind, for draws of n: in memory, if it is always the same, or else a reader; floats in `dtype`."""
    tensor, collate = partial(_tensor, name, device, dtype), default_collate
    if isinstance(data, DataLoader):
        if data.batch_size is None or type(data.sampler) not in (RandomSampler, SequentialSampler):
            raise ValueError(f"{name}: draws are uniform, not those of the sampler of a DataLoader; give its Dataset")
        data, collate = data.dataset, data.collate_fn
    if isinstance(data, tuple | Mapping):
        kept = _labelled(name, data, tensor, list)
        lengths = {len(part) if part.dim() else 0 for part in tree_leaves(kept)}
        if len(lengths) != 1 or lengths == {0}:
            raise ValueError(f"{name}: inputs and targets must be equally many, at least one, got {sorted(lengths)}")
        return kept
    if isinstance(data, str) or not {"__getitem__", "__len__"} <= {*dir(data)} or "__array__" in dir(data):
        allowed = "a pair of arrays (inputs, targets), a dict of arrays, a list of examples, a Dataset or a DataLoader"
        raise ValueError(f"{name} must be {allowed}, got {type(data).__name__} (of a stream give list(stream))")
    reader = Reader(name, data, collate, tensor)
    if not is_same(*(reader.read(torch.arange(min(n, len(data))), seed=0) for _ in range(2))):
        cure = "draw from the global generators of torch, numpy or Python, which are seeded for every draw"
        raise ValueError(f"{name} cannot be read twice alike, so no run on it could be resumed; {cure}")
    if reader.is_random or collate is not default_collate:
        return reader
    everything = reader.read(torch.arange(len(data)), seed=0)
    return reader if reader.is_random else Labelled(everything.inputs, everything.targets)


def _labelled(name: str, data: Any, tensor: Callable[[Any], Tensor], array: type = Tensor) -> Labelled:
    """Inputs and targets; a dict is both, for the module and the loss to take from it what they know by name."""
    converted = partial(tree_map, tensor, is_leaf=lambda part: isinstance(part, array))
    if isinstance(data, Mapping):
        return Labelled(*[converted(dict(data))] * 2)
    if isinstance(data, list | tuple) and len(data) == 2:
        return Labelled(*map(converted, data))
    raise ValueError(f"{name}: its examples must be pairs (input, target) or dicts, got {type(data).__name__}")


def _tensor(name: str, device: torch.device, dtype: torch.dtype, value: Any) -> Tensor:
    """Finite numbers as a tensor: floats in `dtype`, whole numbers as they are."""
    try:
        found = value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, encode the rest: {error}") from error
    if not (found.is_meta or found.isfinite().all()):
        raise ValueError(f"{name} must be finite, got {found[~found.isfinite()][0]}; drop or fill such examples")
    return found.detach().to(device, dtype if found.is_floating_point() else None)


def is_same(one: Any, other: Any) -> bool:
    """Whether two nests of tensors are equal; those on the meta device have no values to compare."""
    a, b = ([leaf for leaf in tree_leaves(nest) if isinstance(leaf, Tensor)] for nest in (one, other))
    return len(a) == len(b) and all(p.is_meta or torch.equal(p, q) for p, q in zip(a, b, strict=True))


@contextmanager
def reseeded(seed: int) -> Iterator[Callable[[], bool]]:
    """Seed the global generators inside, and leave them as they were; gives a function: were they used inside?"""

    def states() -> bytes:
        return pickle.dumps((torch.get_rng_state().numpy(), np.random.get_state(), random.getstate()))

    before = torch.get_rng_state(), np.random.get_state(), random.getstate()
    torch.default_generator.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)
    start = states()
    try:
        yield lambda: states() != start
    finally:
        torch.set_rng_state(before[0])
        np.random.set_state(before[1])
        random.setstate(before[2])


class Modules(BilevelProblem):
    """The problem of learning `outer` so that `inner`, fitted on top of it, does well elsewhere:

        f(x, y) = mean of loss(inner_y(outer_x(input)), target) over upper_data
        g(x, y) = the same over lower_data + ridge ||y||^2

    x and y are the parameters that require a gradient, from where they are now, on `device` and in `dtype` if given;
    all else in the modules stays as it is. `loss` returns the mean over a batch; a pair is that of f and that of g, as
    a pair of batch sizes is. A loss may also take `index`, the places of its examples in the data; `outer`, the outer
    module at x, to weigh them, say: then predictions are inner_y(input); and `inner`, the weights y by name, to
    penalise them. Draws are uniform with replacement, from data of any kind; what is the same in every reading stays in
    memory.
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
        if not 0 < len(sizes) < 3 or not all(map(COUNT.test, sizes)):
            raise ValueError(f"batch_size must be a whole number of at least 1, or a pair of them, got {batch_size!r}")
        self.upper_size, self.lower_size = sizes[0], sizes[-1]
        if not isinstance(ridge, int | float) or not 0 <= ridge < math.inf:
            raise ValueError(f"ridge must be a number of at least 0, got {ridge!r}")
        self.ridge = ridge
        pair = loss if isinstance(loss, tuple) and len(loss) == 2 else (loss, loss)
        self.losses = [(part, _asks(part)) for part in pair]
        self.outer, self.inner = _Flat("outer", outer, device, dtype), _Flat("inner", inner, device, dtype)
        self.x_blocks = tuple(self.outer.sizes)
        if both := [name for name, p in outer.named_parameters() if p.requires_grad and p in {*inner.parameters()}]:
            raise ValueError(f"outer and inner share {', '.join(both)}: a parameter belongs to x or to y")
        x, y = self.outer.weights(), self.inner.weights()
        self.upper_data = batches("upper_data", upper_data, self.upper_size, x.device, x.dtype)
        self.lower_data = batches("lower_data", lower_data, self.lower_size, x.device, x.dtype)
        self._check_loss("upper", x, y)
        self._check_loss("lower", x, y)

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return self.outer.weights(), self.inner.weights()

    def load(self, x: Tensor, y: Tensor) -> tuple[nn.Module, nn.Module]:
        """The two modules that were given, with x and y written into their parameters."""
        check_vector("x", x)
        check_vector("y", y)
        for flat, named in [(self.outer, self.outer.named(x)), (self.inner, self.inner.named(y))]:
            flat.given.load_state_dict(named, strict=False)
        return self.outer.given, self.inner.given

    def sample(self, generator: torch.Generator) -> Samples:
        upper = self.upper_data.draw(self.upper_size, generator)
        return Samples(upper, self.lower_data.draw(self.lower_size, generator))

    def full(self) -> Samples:
        """All the data that is kept; of other data the first 10000 examples, always in the same reading."""
        return Samples(self.upper_data.full, self.lower_data.full)

    def size(self, batch: Any) -> int:
        return batch.stop if isinstance(batch, slice) else len(batch if isinstance(batch, Tensor) else batch.places)

    def predict(self, x: Tensor, y: Tensor, inputs: Any) -> Tensor:
        """inner_y(outer_x(inputs))."""
        return self.inner(y, self.features(x, inputs))

    def upper_at(self, x: Tensor, batch: Any) -> Callable[[Tensor], Tensor]:
        return self._loss_at(x, *self.losses[0], self.upper_data.batch(batch))

    def lower_at(self, x: Tensor, batch: Any) -> Callable[[Tensor], Tensor]:
        loss = self._loss_at(x, *self.losses[1], self.lower_data.batch(batch))
        return (lambda y: loss(y) + self.ridge * (y @ y)) if self.ridge else loss

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        full = self.full()
        with torch.no_grad():
            f, g = self.upper(x, y, full.upper), self.lower(x, y, full.lower)
        return {"upper_loss": f.item(), "lower_loss": g.item()}

    def features(self, x: Tensor, inputs: Any) -> Any:
        """What the inner module sees."""
        return inputs if any("outer" in asks for _, asks in self.losses) else self.outer(x, inputs)

    def _loss_at(self, x: Tensor, loss: Loss, asks: set[str], batch: Batch) -> Callable[[Tensor], Tensor]:
        """y -> the loss on a batch; the features are computed here, once for all y."""
        features, known = self.features(x, batch.inputs), {"index": batch.places, "outer": partial(self.outer, x)}
        extra = {name: known[name] for name in asks & known.keys()}
        if "inner" not in asks:
            return lambda y: loss(self.inner(y, features), batch.targets, **extra)
        return lambda y: loss(self.inner(y, features), batch.targets, inner=self.inner.named(y), **extra)

    def _check_loss(self, level: str, x: Tensor, y: Tensor) -> None:
        """Raise ValueError, with the name of a layer, unless a loss is a function of x, y and the batch alone: after a
        visit to other weights every layer must make of the same inputs what it made of them before."""
        data = self.upper_data if level == "upper" else self.lower_data
        loss: Loss = self.upper if level == "upper" else self.lower
        batch = data.draw(min(EXAMPLES_FOR_CHECKS, self.upper_size, self.lower_size), torch.Generator().manual_seed(0))
        parts = [(part.name, *named) for part in (self.outer, self.inner) for named in part.module.named_modules()]
        names = {layer: f"{part}.{key}".rstrip(".") + f" ({type(layer).__name__})" for part, key, layer in parts}
        other = tuple(z * torch.linspace(0.8, 1.2, len(z), dtype=z.dtype, device=z.device) for z in (x, y))
        calls: list[tuple[str, Any, Any]] = []  # of layers: name, inputs, outputs
        value: Any

        def record(layer: nn.Module, given: Any, made: Any) -> None:
            buffers = [buffer.clone() for buffer in layer.buffers(recurse=False)]
            calls.append((names.get(layer, "the loss"), given, (made, buffers)))

        with reseeded(0) as used, register_module_forward_hook(record), warnings.catch_warnings():
            warnings.filterwarnings("error", "Using a target size")  # (n, 1) and (n,) would become (n, n)
            try:
                with torch.no_grad():
                    for point in ((x, y), other, (x, y)):
                        value = check_scalar(level, loss(*point, batch))
                        calls.append(("the loss", (), value))
            except Exception as error:
                where = f"after {calls[-1][0]}" if calls else "at once"
                raise ValueError(f"the {level} loss fails on a batch of {level}_data, {where}: {error}") from error
            if not (value.is_meta or value.isfinite()):
                raise ValueError(f"the {level} loss is {value.item()} on a batch of {level}_data")
            again = zip(calls, calls[2 * len(calls) // 3 :], strict=False)
            changed = [a[0] for a, b in again if is_same(a[1], b[1]) and not is_same(a[2], b[2])]
            if changed or used():
                raise ValueError(
                    f"{[*changed, 'a layer'][0]} is random or remembers earlier batches, but the {level} loss must be "
                    "a function of the weights and the batch; call .eval() on it, or use another layer"
                )
        calls.clear()
        with torch.enable_grad(), suppress(RuntimeError):  # no graph, no backward pass
            point = x.clone().requires_grad_(), y.clone().requires_grad_()
            value = loss(*point, batch)
            with register_module_forward_hook(record):
                torch.autograd.grad(value, point, allow_unused=True)
        if calls:
            raise ValueError(
                f"{calls[0][0]} is computed again in the backward pass of the {level} loss, as torch.utils.checkpoint "
                "does, but x and y are not in it any more; write a BilevelProblem that hands it the weights"
            )
        # Copies of a batch add equally much to a sum, nothing to a mean, and more or less each time to a loss that
        # compares examples with one another.
        is_sum = False
        with suppress(Exception):  # what a collate_fn makes need not have rows to repeat
            repeated = (partial(torch.repeat_interleave, repeats=k, dim=0) for k in (1, 2, 3))
            copies = (tree_map(repeat, data.batch(batch)) for repeat in repeated)
            one, two, three = (self._loss_at(x, *self.losses[level == "lower"], each)(y).item() for each in copies)
            is_sum = abs(two - one) > 1e-3 * abs(one) and abs(three - 2 * two + one) < 1e-2 * abs(two - one)
        if is_sum:
            raise ValueError(
                f"the {level} loss grows with its batch, by as much for every copy of it, as a sum over examples does, "
                "but it must be their mean (reduction='mean' in the losses of torch)"
            )


from_modules = Modules


def _asks(loss: Loss) -> set[str]:
    """Which of `index`, `outer` and `inner` a loss takes."""
    if not callable(loss) or isinstance(loss, type):
        raise ValueError(f"loss must be a function loss(prediction, target) or a pair of such, got {loss!r}")
    with suppress(ValueError):  # a builtin may not say
        call = loss.forward if isinstance(loss, nn.Module) else loss
        return {"index", "outer", "inner"} & inspect.signature(call).parameters.keys()
    return set()


class _Flat:
    """A module as a pure function of one flat vector of the weights that it learns, unflattened by views."""

    def __init__(self, name: str, module: nn.Module, device: Any, dtype: torch.dtype | None):
        if not isinstance(module, nn.Module):
            raise ValueError(f"{name} must be an nn.Module, got {module!r}")
        for key, p in module.named_parameters():
            if nn.parameter.is_lazy(p) or not p.is_floating_point() or not (p.is_meta or p.isfinite().all()):
                raise ValueError(f"{name}.{key} must be finite floats; lazy layers have them once called on data")
        try:
            self.name, self.given, self.module = name, module, copy.deepcopy(module).to(device=device, dtype=dtype)
        except Exception as error:
            raise ValueError(f"{name} cannot be copied to device {device}, dtype {dtype}: {error}") from error
        self.shapes = {key: p.shape for key, p in self.module.named_parameters() if p.requires_grad}
        self.sizes = [shape.numel() for shape in self.shapes.values()]
        if not self.shapes:
            raise ValueError(f"{name} has no parameters to learn, none that requires a gradient")

    def weights(self) -> Tensor:
        parameters = dict(self.module.named_parameters())
        return nn.utils.parameters_to_vector(parameters[key] for key in self.shapes).detach().clone()

    def named(self, weights: Tensor) -> dict[str, Tensor]:
        if len(weights) != sum(self.sizes):
            needed = ", ".join(f"{key} {tuple(shape)}" for key, shape in self.shapes.items())
            raise ValueError(f"{self.name} takes {sum(self.sizes)} numbers ({needed}), got {len(weights)}")
        pieces = zip(self.shapes.items(), weights.split(self.sizes), strict=True)
        return {key: piece.view(shape) for (key, shape), piece in pieces}

    def __call__(self, weights: Tensor, *inputs: Any) -> Any:
        return torch.func.functional_call(self.module, self.named(weights), inputs)
