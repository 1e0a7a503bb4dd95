"""A bilevel problem from two networks: x holds the weights of one, y those of the other."""

import copy
import inspect
import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils._pytree import tree_map
from torch.utils.data import DataLoader

from bilevel_core.batches import Batch, batches, reseeded, same
from bilevel_core.checks import COUNT
from bilevel_core.problem import BilevelProblem, Samples, check_scalar, check_vector

Loss = Callable[..., Tensor]
Drawn = Tensor | slice | Batch


class Modules(BilevelProblem):
    """The problem of learning `outer` so that `inner`, fitted on top of it, does well elsewhere:

        f(x, y) = mean of loss(inner_y(outer_x(input)), target) over upper_data
        g(x, y) = the same over lower_data + ridge ||y||^2

    x and y are the parameters that require a gradient, from where they are now, on `device` and in `dtype` if given;
    all else in the modules stays as it is. `loss` returns the mean over a batch; a pair is that of f and that of g, as
    a pair of batch sizes is. A loss may also take `index`, the places of its examples in the data; `outer`, the outer
    module at x, to weigh them, say: then predictions are inner_y(input); and `inner`, the weights y by name, to
    penalise them. Draws are uniform with replacement, from data of any kind; what is the same in every reading stays in
    memory, unless `keep` is False.
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
        keep: bool = True,
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
        settings, (f, g) = (keep, x.device, x.dtype), self.losses
        self.upper_data = batches("upper_data", upper_data, self.upper_size, *settings, "index" in f[1])
        self.lower_data = batches("lower_data", lower_data, self.lower_size, *settings, "index" in g[1])
        self._check_losses(x, y)

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

    def size(self, batch: Drawn) -> int:
        return batch.stop if isinstance(batch, slice) else len(batch if isinstance(batch, Tensor) else batch.places)

    def predict(self, x: Tensor, y: Tensor, inputs: Any) -> Tensor:
        return self.inner(y, self.features(x, inputs))

    def upper_at(self, x: Tensor, batch: Drawn) -> Callable[[Tensor], Tensor]:
        return self._loss_at(x, *self.losses[0], self.upper_data.at(batch))

    def lower_at(self, x: Tensor, batch: Drawn) -> Callable[[Tensor], Tensor]:
        loss = self._loss_at(x, *self.losses[1], self.lower_data.at(batch))
        return (lambda y: loss(y) + self.ridge * (y @ y)) if self.ridge else loss

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        with torch.no_grad():
            full = self.full()._asdict().items()
            return {f"{level}_loss": getattr(self, level)(x, y, batch).item() for level, batch in full}

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

    def _check_losses(self, x: Tensor, y: Tensor) -> None:
        """Raise ValueError, with the name of a layer, unless f and g are functions of x, y and the batch alone: after a
        visit to other weights every layer must make of the same inputs what it made of them before."""
        parts = [(part.name, *named) for part in (self.outer, self.inner) for named in part.module.named_modules()]
        names = {layer: f"{part}.{key}".rstrip(".") + f" ({type(layer).__name__})" for part, key, layer in parts}
        other = [z * torch.linspace(0.8, 1.2, len(z), dtype=z.dtype, device=z.device) for z in (x, y)]
        done: list[tuple[str, Any, Any]] = []

        def record(layer: nn.Module, given: Any, made: Any) -> None:
            buffers = [buffer.clone() for buffer in layer.buffers(recurse=False)]
            done.append((names.get(layer, "the loss"), given, (made, buffers)))

        for level, data in {"upper": self.upper_data, "lower": self.lower_data}.items():
            batch = data.draw(min(8, self.upper_size, self.lower_size), torch.Generator().manual_seed(0))
            done.clear()
            with reseeded(0) as used, torch.no_grad(), register_module_forward_hook(record), warnings.catch_warnings():
                warnings.filterwarnings("error", "Using a target size")  # (n, 1) and (n,) would become (n, n)
                try:
                    for point in ((x, y), other, (x, y)):
                        value = check_scalar(level, getattr(self, level)(*point, batch))
                        done.append(("the loss", (), value))
                except Exception as error:
                    where = f"after {done[-1][0]}" if done else "at once"
                    raise ValueError(f"the {level} loss fails on a batch of {level}_data, {where}: {error}") from error
                if not (value.is_meta or value.isfinite()):
                    raise ValueError(f"the {level} loss is {value.item()} on a batch of {level}_data")
                runs = zip(done, done[2 * len(done) // 3 :], strict=False)
                changed = [a[0] for a, b in runs if same(a[1], b[1]) and not same(a[2], b[2])]
                if changed or used():
                    raise ValueError(
                        f"{[*changed, 'a layer'][0]} is random or remembers earlier batches, but the {level} loss must "
                        "be a function of the weights and the batch; call .eval() on it, or use another layer"
                    )
            if again := self._recomputed(level, x, y, batch, record, done):
                raise ValueError(
                    f"{again} is computed again in the backward pass of the {level} loss, as torch.utils.checkpoint "
                    "does, but x and y are not in it any more; write a BilevelProblem that hands it the weights"
                )
            if self._is_sum(level, x, y, data.at(batch)):
                raise ValueError(
                    f"the {level} loss grows with its batch, by as much for every copy of it, as a sum over examples "
                    "does, but it must be their mean (reduction='mean' in the losses of torch)"
                )

    def _recomputed(self, level: str, x: Tensor, y: Tensor, batch: Drawn, record: Any, done: list[Any]) -> str:
        """The first layer, if any, that `record` sees in the backward pass."""
        done.clear()
        with torch.enable_grad(), suppress(RuntimeError):  # no graph, no pass
            z = x.clone().requires_grad_(), y.clone().requires_grad_()
            value = getattr(self, level)(*z, batch)
            with register_module_forward_hook(record):
                torch.autograd.grad(value, z, allow_unused=True)
        return done[0][0] if done else ""

    def _is_sum(self, level: str, x: Tensor, y: Tensor, batch: Batch) -> bool:
        """Whether copies of a batch add equally much to a loss; to a mean they add nothing, and to a loss that compares
        examples with one another more or less each time."""
        with suppress(Exception):  # what a collate_fn makes need not have rows to repeat
            copies = (tree_map(partial(torch.repeat_interleave, repeats=k, dim=0), batch) for k in (1, 2, 3))
            loss = self.losses[level == "lower"]
            one, two, three = (self._loss_at(x, *loss, each)(y).item() for each in copies)
            return abs(two - one) > 1e-3 * abs(one) and abs(three - 2 * two + one) < 1e-2 * abs(two - one)
        return False


from_modules = Modules


def _asks(loss: Loss) -> set[str]:
    """Which of `index`, `outer` and `inner` a loss takes."""
    if not callable(loss) or isinstance(loss, type):
        raise ValueError(f"loss must be a function loss(prediction, target) or a pair of such, got {loss!r}")
    with suppress(ValueError):  # a builtin may not say
        return {"index", "outer", "inner"} & inspect.signature(getattr(loss, "forward", loss)).parameters.keys()
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
