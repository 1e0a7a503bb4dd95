"""A bilevel problem from two networks and two sets of data: x holds the weights of one, y those of the other."""

import copy
import inspect
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, default_collate

from bilevel_core.checks import COUNT, SWITCH
from bilevel_core.problem import BilevelProblem, Loss, LossOfY, Samples, check_scalar, seeded

EXTRAS = {"index", "outer", "inner"}  # what a loss may take besides predictions and targets
BATCH_SIZE = 256  # by default, or all the data if it is less
Size = int | Literal["all"]
EXAMPLES_READ_TWICE = 256  # of a Dataset, to see whether it reads alike
EXAMPLES_FOR_CHECKS = 8  # in the batch on which the losses are tried


class Labelled(NamedTuple):
    """Inputs and targets in memory, each a tensor or a nest of tensors, one row a data point."""

    inputs: Any
    targets: Any

    def full(self) -> slice:
        """The places of all rows."""
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
        if not isinstance(tensors, dict) and not (isinstance(tensors, tuple | list) and len(tensors) == 2):
            raise ValueError("an example is a pair (input, target); nest several inputs, ((a, b), target)")
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
    also take `index`, the places of its examples in the data, and `outer` and `inner`, the modules at x and at y: it
    may call them, or take outer["weight"] or outer.parameters(). Without `features` predictions are inner_y(input), and
    x acts through the losses alone. Draws are uniform with replacement; a batch size of "all" is the data in order.
    """

    def __init__(
        self,
        outer: nn.Module,
        inner: nn.Module,
        loss: Loss | tuple[Loss, Loss],
        upper_data: Any,
        lower_data: Any,
        batch_size: Size | tuple[Size, Size] | None = None,
        ridge: float = 0.0,
        *,
        features: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        SWITCH.check(features=features)
        f, g = loss if isinstance(loss, tuple) else (loss, loss)
        if not (callable(f) and callable(g)):
            raise ValueError(f"loss must be a function, a module or a pair of such, got {loss!r}")
        takes = [inspect.signature(a.forward if isinstance(a, nn.Module) else a).parameters.keys() for a in (f, g)]
        self.losses, self.ridge, self.has_features = [(f, EXTRAS & takes[0]), (g, EXTRAS & takes[1])], ridge, features
        self.outer, self.inner = _Flat("outer", outer, device, dtype), _Flat("inner", inner, device, dtype)
        self.x_blocks = tuple(self.outer.sizes)
        if both := [name for name, p in outer.named_parameters() if p.requires_grad and p in {*inner.parameters()}]:
            raise ValueError(f"outer and inner share {', '.join(both)}: a parameter belongs to x or to y")
        x = self.outer.weights
        self.upper_data = labelled("upper_data", upper_data, x.device, x.dtype)
        self.lower_data = labelled("lower_data", lower_data, x.device, x.dtype)
        sizes = batch_size if isinstance(batch_size, tuple) else (batch_size, batch_size)
        self.upper_size = _batch_size(sizes[0], upper_data, self.upper_data)
        self.lower_size = _batch_size(sizes[1], lower_data, self.lower_data)
        if not x.is_meta:  # a device without values
            self._check_loss("upper", self.upper, self.upper_data.draw(EXAMPLES_FOR_CHECKS, seeded(0)))
            self._check_loss("lower", self.lower, self.lower_data.draw(EXAMPLES_FOR_CHECKS, seeded(0)))

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return self.outer.weights.clone(), self.inner.weights.clone()

    def load(self, x: Tensor, y: Tensor) -> tuple[nn.Module, nn.Module]:
        """The two modules that were given, with x and y written into their parameters."""
        for part, weights in ((self.outer.given, self.outer.at(x)), (self.inner.given, self.inner.at(y))):
            part.load_state_dict(weights, strict=False)
        return self.outer.given, self.inner.given

    def sample(self, generator: torch.Generator) -> Samples:
        sets = (self.upper_data, self.upper_size), (self.lower_data, self.lower_size)
        return Samples(*(data.full() if size == "all" else data.draw(size, generator) for data, size in sets))

    def full(self) -> Samples:
        return Samples(self.upper_data.full(), self.lower_data.full())

    def size(self, batch: Any) -> int:
        return batch.stop if isinstance(batch, slice) else len(batch)

    def predict(self, x: Tensor, y: Tensor, inputs: Any) -> Tensor:
        """inner_y(outer_x(inputs)): what the two modules say of new inputs, given as the outer module takes them."""
        return self.inner.at(y)(self.features(x, inputs))

    def upper_at(self, x: Tensor, batch: Any) -> LossOfY:
        return self._loss_at(x, *self.losses[0], self.upper_data, batch)

    def lower_at(self, x: Tensor, batch: Any) -> LossOfY:
        loss = self._loss_at(x, *self.losses[1], self.lower_data, batch)
        return (lambda y: loss(y) + self.ridge * (y @ y)) if self.ridge else loss

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        full = self.full()
        with torch.no_grad():
            f, g = self.upper(x, y, full.upper), self.lower(x, y, full.lower)
        return {"upper_loss": f.item(), "lower_loss": g.item()}

    def features(self, x: Tensor, inputs: Any) -> Any:
        """What the inner module sees."""
        return self.outer.at(x)(inputs) if self.has_features else inputs

    def _loss_at(self, x: Tensor, loss: Loss, takes: set[str], data: Labelled, batch: Any) -> LossOfY:
        """y -> the loss on a batch; the features are computed here, once for all y."""
        inputs, targets = tree_map(lambda tensor: tensor[batch], data)
        index = torch.arange(batch.stop, device=x.device) if isinstance(batch, slice) else batch
        features, known = self.features(x, inputs), {"index": index, "outer": self.outer.at(x)}

        def of_y(y: Tensor) -> Tensor:
            inner = self.inner.at(y)
            extra: dict[str, Any] = {name: value for name, value in {**known, "inner": inner}.items() if name in takes}
            return loss(inner(features), targets, **extra)

        return of_y

    def _check_loss(self, level: str, loss: Loss, batch: Tensor) -> None:
        """Raise ValueError unless a loss is a mean, and a function of x, y and the batch alone."""
        x, y = (part.weights.clone().requires_grad_() for part in (self.outer, self.inner))
        parts, given = ({"outer": self.outer.module, "inner": self.inner.module}, (self.outer.given, self.inner.given))
        both = nn.ModuleDict(parts)
        names = {layer: f"{name} ({type(layer).__name__})" for name, layer in both.named_modules()}
        own = {p: (part, name) for part, module in zip(parts, given, strict=True) for name, p in _learned(module)}
        before, buffers = torch.get_rng_state(), copy.deepcopy(dict(both.named_buffers()))
        done: list[tuple[str, bool]] = []  # the layers, in the order in which they end: has any drawn by then?

        def note(layer: nn.Module, *_: Any) -> None:
            done.append((names.get(layer, "the loss"), not torch.equal(before, torch.get_rng_state())))

        with torch.enable_grad(), warnings.catch_warnings(), register_module_forward_hook(note):
            warnings.filterwarnings("error", "Using a target size")  # (n, 1) and (n,) would become (n, n)
            try:
                value = check_scalar(level, loss(x, y, batch), graph=True)
                forward = len(done)
                slopes = torch.autograd.grad(value, (x, y, *own), allow_unused=True)
            except Exception as error:
                after = f"after {done[-1][0]}" if done else "at once"
                hint = "; give features=False if outer is for the losses alone" * (not done and self.has_features)
                what = f"the {level} loss fails on a batch of {level}_data, {after}: {error}{hint}"
                raise ValueError(what) from error
        for (part, name), slope in zip(own.values(), slopes[2:], strict=True):
            if slope is not None:
                what = f"the {level} loss uses the {name} of the {part} module itself, which stays as it is"
                raise ValueError(f'{what}: let the loss take `{part}` as an argument, and use {part}["{name}"]')
        random = [name for name, has_drawn in done if has_drawn]
        random += ["the loss"] * (not torch.equal(before, torch.get_rng_state()))
        changed = [name for name, now in both.named_buffers() if not torch.equal(now, buffers[name])]
        if random or changed:
            cure = "" if random[:1] == ["the loss"] else ": call .eval() on the layer, or use another one"
            what = f"{[*random, *changed][0]} is random or remembers earlier batches"
            raise ValueError(f"{what}, but the {level} loss must be a function of the weights and the batch{cure}")
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


class ModuleAt(dict[str, Tensor]):
    """A module at given weights, as a loss sees it: a dict of them by name, which can be called."""

    def __init__(self, module: nn.Module, weights: Mapping[str, Tensor]):
        super().__init__(weights)
        self.module = module

    def __call__(self, *inputs: Any) -> Any:
        return torch.func.functional_call(self.module, self, inputs)

    def parameters(self) -> Iterator[Tensor]:
        """The weights, one after the other."""
        return iter(self.values())


class _Flat:
    """A module as a pure function of one flat vector of the weights that it learns, unflattened by views."""

    def __init__(self, name: str, module: nn.Module, device: Any, dtype: torch.dtype | None):
        self.given, self.module = module, copy.deepcopy(module).to(device=device, dtype=dtype)
        learned = dict(_learned(self.module))
        if not learned:
            raise ValueError(f"{name} has no parameters to learn, none that requires a gradient")
        for key, p in learned.items():
            if nn.parameter.is_lazy(p) or p.dtype not in (torch.float32, torch.float64):
                what = "no shape yet: call the module once on an input" if nn.parameter.is_lazy(p) else f"{p.dtype}"
                raise ValueError(f"the parameters of {name} must be float32 or float64, and {key} has {what}")
        self.shapes, self.sizes = {key: p.shape for key, p in learned.items()}, [p.numel() for p in learned.values()]
        self.weights = nn.utils.parameters_to_vector(learned.values()).detach()

    def at(self, weights: Tensor) -> ModuleAt:
        pieces = zip(self.shapes.items(), weights.split(self.sizes), strict=True)
        return ModuleAt(self.module, {key: piece.view(shape) for (key, shape), piece in pieces})


def _batch_size(given: Size | None, data: Any, read: Labelled) -> Size:
    """The size that is given, or else that of the DataLoader, or else 256 or all the data if it is less."""
    if given is None:
        given = min(data.batch_size if isinstance(data, DataLoader) else BATCH_SIZE, read.full().stop)
    if given != "all":
        COUNT._replace(words=f'{COUNT.words}, or "all"').check(batch_size=given)
    return given


def _learned(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    return [(name, p) for name, p in module.named_parameters() if p.requires_grad]


from_modules = Modules
