"""Data of any kind as batches that depend on a generator alone: kept in memory, or read again at every draw."""
# ruff: noqa: NPY002 - numpy's global generator is what transforms draw from

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler, default_collate

MOST = 10_000  # of data that is not kept, so many examples stand for all


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

    def at(self, draw: Any) -> Batch:
        """The rows of a draw."""
        device = _first(self.targets).device
        rows = draw.to(device) if isinstance(draw, Tensor) else draw
        inputs, targets = (p[rows] if isinstance(p, Tensor) else tree_map(lambda t: t[rows], p) for p in self)
        return Batch(inputs, targets, rows if isinstance(rows, Tensor) else torch.arange(rows.stop, device=device))


def _first(nest: Any) -> Tensor:
    return nest if isinstance(nest, Tensor) else tree_leaves(nest)[0]  # a search takes time


class Reader:
    """A Dataset that is read, or a stream that is opened, anew at every draw, with the global generators of torch,
    numpy and Python seeded by that of the draw: augmentations are as random as they mean to be, and can be repeated."""

    def __init__(self, name: str, dataset: Any, collate: Callable[[Any], Any], tensor: Callable[[Any], Tensor]):
        self.name, self.dataset, self.collate, self.tensor = name, dataset, collate, tensor
        self.is_stream, self.is_random = isinstance(dataset, IterableDataset), False
        self.size = MOST if self.is_stream else len(dataset)

    @cached_property
    def full(self) -> Batch:
        """The first examples, always in the same reading."""
        return self.read(torch.arange(min(MOST, self.size)), seed=0)

    def draw(self, n: int, generator: torch.Generator) -> Batch:
        """n examples, uniform and with replacement, or the first n of the stream."""
        seed, places = (torch.randint(most, (k,), generator=generator) for most, k in ((2**62, 1), (self.size, n)))
        return self.read(torch.arange(n) if self.is_stream else places, int(seed))

    def at(self, draw: Any) -> Batch:
        """A draw has its rows already."""
        return draw

    def read(self, places: Tensor, seed: int) -> Batch:
        """The examples at these places, as far as a stream goes."""
        found = islice(self.dataset, len(places)) if self.is_stream else map(self.dataset.__getitem__, places.tolist())
        with reseeded(seed) as used:
            try:
                examples = list(found)
                batch = self.collate(examples)
            except Exception as error:
                cure = "make them tensors of one shape, or give a DataLoader whose collate_fn does"
                raise ValueError(f"{self.name}: its examples make no batch ({error!r}); {cure}") from error
            self.is_random |= used()
        return Batch(*_labelled(self.name, batch, self.tensor), self.tensor(places[: len(examples)]))


def batches(
    name: str, data: Any, n: int, keep: bool, device: torch.device, dtype: torch.dtype, indexed: bool = False
) -> Labelled | Reader:
    """Data of any kind, for draws of n: in memory, if it is to be kept and is always the same, or else a reader.

    Floats are converted to `dtype`. If `indexed`, a loss takes the places of examples, which a stream does not have.
    """
    tensor, collate = partial(_tensor, name, device, dtype), default_collate
    if isinstance(data, DataLoader):
        is_plain = isinstance(data.dataset, IterableDataset) or type(data.sampler) in (RandomSampler, SequentialSampler)
        if data.batch_size is None or not is_plain:
            raise ValueError(f"{name}: draws are uniform, not those of the sampler of a DataLoader; give its Dataset")
        data, collate = data.dataset, data.collate_fn
    if isinstance(data, tuple | Mapping):
        kept = _labelled(name, data, tensor, list)
        lengths = {len(part) if part.dim() else 0 for part in tree_leaves(kept)}
        if len(lengths) != 1 or lengths == {0}:
            raise ValueError(f"{name}: inputs and targets must be equally many, at least one, got {sorted(lengths)}")
        return kept
    is_map = hasattr(data, "__getitem__") and hasattr(data, "__len__") and not hasattr(data, "__array__")
    if isinstance(data, str) or not (is_map or isinstance(data, IterableDataset)):
        allowed = "a pair of arrays (inputs, targets), a dict of arrays, a list of examples, a Dataset or a DataLoader"
        raise ValueError(f"{name} must be {allowed}, got {type(data).__name__}")
    reader = Reader(name, data, collate, tensor)
    if not same(*(reader.read(torch.arange(min(n, reader.size)), seed=0) for _ in range(2))):
        cure = "draw from the global generators of torch, numpy or Python, which are seeded for every draw"
        raise ValueError(f"{name} cannot be read twice alike, so no run on it could be resumed; {cure}")
    if reader.is_stream and (indexed or not reader.is_random):
        fault = "has no index for a loss" if indexed else "always gives the same examples"
        raise ValueError(f"{name} is a stream, which {fault}; give list(stream), or shuffle it")
    if reader.is_stream or reader.is_random or not keep or collate is not default_collate:
        return reader
    whole = reader.read(torch.arange(reader.size), seed=0)
    return reader if reader.is_random else Labelled(whole.inputs, whole.targets)


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


def same(one: Any, other: Any) -> bool:
    """Whether two nests of tensors are equal; those on the meta device have no values to compare."""
    a, b = ([leaf for leaf in tree_leaves(nest) if isinstance(leaf, Tensor)] for nest in (one, other))
    return len(a) == len(b) and all(p.is_meta or torch.equal(p, q) for p, q in zip(a, b, strict=True))


@contextmanager
def reseeded(seed: int) -> Iterator[Callable[[], bool]]:
    """Seed the global generators inside, and leave them as they were; gives a function: were they used inside?"""

    def standing() -> tuple[Any, ...]:
        numpy: Any = np.random.get_state()
        return torch.get_rng_state().numpy().tobytes(), numpy[1].tobytes(), numpy[2:], random.getstate()

    outside = torch.get_rng_state(), np.random.get_state(), random.getstate()
    torch.default_generator.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)
    start = standing()
    try:
        yield lambda: standing() != start
    finally:
        torch.set_rng_state(outside[0])
        np.random.set_state(outside[1])
        random.setstate(outside[2])
