"""Data of every kind that two networks take; what is refused stands in inputs/modules.toml."""

import random
from functools import partial
from math import log

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, default_collate

from bilevel_core import FdeHBO, from_modules, run
from bilevel_core.batches import Labelled, Reader
from bilevel_core.directions import exact
from bilevel_core.networks import Modules


class Examples(Dataset):
    """Rows of a pair of tensors, changed by a transform whenever they are read."""

    def __init__(self, pair, transform=lambda inputs, target: (inputs, target)):
        self.pair, self.transform = pair, transform

    def __len__(self):
        return len(self.pair[0])

    def __getitem__(self, i):
        return self.transform(*(part[i] for part in self.pair))


class Stream(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.randn(4), random.randrange(3)


def jitter(inputs, target):
    shift = torch.randn(4) + float(np.random.rand()) + random.random()  # noqa: NPY002
    return inputs + shift, target


def both(kind):
    return lambda upper, lower: (kind(upper), kind(lower))


def as_dict(inputs, target):
    return {"input": inputs, "label": target}


SAME = {
    "tensors": both(lambda pair: pair),
    "numpy arrays": both(lambda pair: tuple(part.numpy() for part in pair)),
    "numpy arrays of doubles": both(lambda pair: (pair[0].double().numpy(), pair[1].numpy())),
    "a frame and a series": both(lambda pair: (pd.DataFrame(pair[0].numpy()), pd.Series(pair[1].numpy()))),
    "lists of numbers": both(lambda pair: tuple(part.tolist() for part in pair)),
    "a TensorDataset": both(lambda pair: TensorDataset(*pair)),
    "a Dataset": both(Examples),
    "a list of examples": both(lambda pair: list(zip(*pair, strict=True))),
    "a DataLoader": both(lambda pair: DataLoader(Examples(pair), 256, shuffle=True)),
}
KINDS = SAME | {
    "a DataLoader that collates": both(
        lambda pair: DataLoader(Examples(pair), 8, collate_fn=lambda b: default_collate(b))
    ),
    "noise of all kinds": both(lambda pair: Examples(pair, jitter)),
    "a DataLoader of noise": both(lambda pair: DataLoader(Examples(pair, jitter), 8)),
    "a stream": lambda upper, lower: (Stream(), lower),
    "a DataLoader of a stream": lambda upper, lower: (DataLoader(Stream(), 8), Examples(lower, jitter)),
}


@pytest.mark.parametrize("kind", SAME.values(), ids=SAME)
def test_data_that_never_changes_is_kept_and_makes_the_same_problem(parts, kind):
    tensors, other = from_modules(*parts), from_modules(*parts[:3], *kind(*parts[3:]))
    assert isinstance(other.upper_data, Labelled)
    runs = [run(problem, FdeHBO(), steps=3, progress=False) for problem in (tensors, other)]
    assert torch.equal(runs[0].state.x, runs[1].state.x)
    assert runs[0].history["upper_loss"].tolist() == runs[1].history["upper_loss"].tolist()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_run_that_was_interrupted_goes_on_as_if_it_had_not_been(parts, kind, tmp_path, monkeypatch):
    """Whatever happened to the global generators in the meantime."""
    monkeypatch.setattr("bilevel_core.batches.MOST", 50)  # of the stream, to be read for every row

    def go(draws=10**6, path=None):
        torch.manual_seed(draws)
        np.random.seed(draws)  # noqa: NPY002
        random.seed(draws)
        problem = from_modules(*parts[:3], *kind(*parts[3:]))
        left, draw = iter(range(draws)), Modules.sample

        def sample(self, generator):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return draw(self, generator)

        with monkeypatch.context() as patch:
            patch.setattr(Modules, "sample", sample)
            return run(problem, FdeHBO(), seed=3, steps=6, every=2, progress=False, checkpoint=path)

    whole = go()
    assert go(5, tmp_path / "run.ckpt").stop == "interrupted"
    resumed = go(path=tmp_path / "run.ckpt")
    assert resumed.state.t == 6
    for name in ("x", "y", "v", "rng"):
        assert torch.equal(getattr(whole.state, name), getattr(resumed.state, name)), name
    columns = ["step", "samples", "upper_loss", "lower_loss"]
    assert whole.history[columns].equals(resumed.history[columns])


def test_augmentations_are_drawn_anew_at_every_draw(parts):
    """Noise of mean 1 around each example: two draws of it differ, and their mean is its own plus 1."""
    (inputs, targets), lower_data = parts[3:]
    problem = from_modules(*parts[:3], Examples((inputs, targets), jitter), lower_data, batch_size=2000)
    batch, again = (problem.sample(torch.Generator().manual_seed(5)).upper for _ in range(2))
    assert problem.size(batch) == 2000
    assert torch.equal(batch.targets, targets[batch.places])
    shift = batch.inputs - inputs[batch.places]
    first = shift[batch.places == 0]
    assert first.std(0).min() > 0.7
    assert (shift.mean(0) - 1).abs().max() < 4 * (1 + 2 / 12) ** 0.5 / 2000**0.5
    assert torch.equal(batch.inputs, again.inputs)  # the same seed, the same noise


def test_a_rare_augmentation_is_found_too(parts):
    """Nothing moves in the first 39 examples."""

    class Rare(Examples):
        def __getitem__(self, i):
            inputs, target = super().__getitem__(i)
            return inputs + torch.randn(4) * (i == 39) if i == 39 else inputs, target

    problem = from_modules(*parts[:3], Rare(parts[3]), parts[4], batch_size=8)
    assert isinstance(problem.upper_data, Reader)


def test_data_that_is_not_to_be_kept_is_read_at_every_draw(parts, generator):
    reads = []

    class Watched(Examples):
        def __getitem__(self, i):
            reads.append(i)
            return super().__getitem__(i)

    problem = from_modules(*parts[:3], Watched(parts[3]), Watched(parts[4]), batch_size=5, keep=False)
    assert len(reads) <= 2 * 4 * 8  # never all of it
    reads.clear()
    samples = problem.sample(generator)
    assert reads == [*samples.upper.places.tolist(), *samples.lower.places.tolist()]
    assert torch.equal(samples.upper.inputs, parts[3][0][samples.upper.places])
    x, y = problem.start(generator)
    assert problem.evaluate(x, y) == from_modules(*parts).evaluate(x, y)


def test_a_stream_is_opened_at_every_draw(parts, generator):
    problem = from_modules(*parts[:3], Stream(), parts[4], batch_size=8)
    draws = [problem.sample(generator).upper for _ in range(3)]
    assert all(draw.inputs.shape == (8, 4) for draw in draws)
    assert len({tuple(row) for draw in draws for row in draw.inputs.tolist()}) == 24
    full = problem.full().upper
    assert problem.size(full) == 10_000
    assert problem.full().upper is full


def test_the_batch_size_is_that_of_the_loaders(parts, generator):
    upper, lower = (DataLoader(TensorDataset(*pair), n) for pair, n in zip(parts[3:], (7, 9), strict=True))
    assert sizes(from_modules(*parts[:3], upper, lower)) == [7, 9]
    assert sizes(from_modules(*parts[:3], upper, lower, batch_size=3)) == [3, 3]
    assert sizes(from_modules(*parts[:3], upper, lower, batch_size=(3, 4))) == [3, 4]
    assert sizes(from_modules(*parts[:4], lower)) == [9, 9]
    assert sizes(from_modules(*parts)) == [256, 256]


def sizes(problem):
    return [problem.size(batch) for batch in problem.sample(torch.Generator())]


def contrastive(prediction, target):
    """The examples of a batch against one another: log n where all of them are alike."""
    return cross_entropy(prediction @ prediction.T, torch.arange(len(prediction)))


def spread(prediction, target):
    return mse_loss(prediction, prediction.mean(0).expand_as(prediction)) + prediction.std(0).mean()


def pairs(prediction, target):
    return (prediction[:, None] - prediction).square().sum()


@pytest.mark.parametrize("batch_size", [2, 8])
@pytest.mark.parametrize("loss", [contrastive, spread, pairs])
def test_only_a_sum_is_refused_as_one(loss, batch_size, parts):
    """Two copies of two examples double log 2: three copies tell it from a sum."""
    outer, inner, _, *sets = parts
    with pytest.raises(ValueError, match="the upper loss grows with its batch"):
        from_modules(outer, inner, partial(cross_entropy, reduction="sum"), *sets, batch_size=batch_size)
    assert sizes(from_modules(outer, inner, loss, *sets, batch_size=batch_size)) == [batch_size, batch_size]
    nn.init.zeros_(inner.weight)
    nn.init.zeros_(inner.bias)
    alike = from_modules(outer, inner, contrastive, *sets, batch_size=batch_size)
    x, y = alike.start(torch.Generator())
    assert alike.upper(x, y, alike.sample(torch.Generator()).upper).item() == pytest.approx(log(batch_size))


def test_examples_may_be_dicts_and_inputs_nests(parts, generator):
    outer, inner, loss, upper_data, lower_data = parts
    plain = from_modules(*parts, batch_size=6)

    class ByName(nn.Sequential):
        def forward(self, batch):
            return super().forward(batch["input"])

    class First(nn.Sequential):
        def forward(self, pair):
            return super().forward(pair[0] + 0 * pair[1][:, None])

    def by_name(prediction, batch):
        return loss(prediction, batch["label"])

    dicts = [Examples(pair, as_dict) for pair in (upper_data, lower_data)]
    whole = [as_dict(*pair) for pair in (upper_data, lower_data)]
    nests = [((pair[0], torch.arange(len(pair[0]))), pair[1]) for pair in (upper_data, lower_data)]
    x, y = plain.start(generator)
    samples = plain.sample(generator)
    for problem in (
        from_modules(ByName(*outer), inner, by_name, *dicts, batch_size=6),
        from_modules(ByName(*outer), inner, by_name, *whole, batch_size=6),
        from_modules(First(*outer), inner, loss, *nests, batch_size=6),
    ):
        for level, batch in samples._asdict().items():
            assert torch.equal(getattr(problem, level)(x, y, batch), getattr(plain, level)(x, y, batch))
        assert problem.evaluate(x, y) == plain.evaluate(x, y)


def test_making_a_problem_and_drawing_leave_the_global_generators_alone(parts):
    def standing():
        return torch.rand(3).tolist(), np.random.rand(3).tolist(), random.random()  # noqa: NPY002

    found = []
    for kinds in ([], [KINDS["noise of all kinds"], KINDS["a stream"]]):
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        for kind in kinds:
            problem = from_modules(*parts[:3], *kind(*parts[3:]))
            problem.sample(torch.Generator())
        found.append(standing())
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "kind", [KINDS["tensors"], KINDS["noise of all kinds"], KINDS["a stream"]], ids=["kept", "read", "stream"]
)
def test_everything_is_on_the_device(parts, generator, kind):
    """`meta` is a device without values: with one tensor elsewhere, operations would fail."""
    problem = from_modules(*parts[:3], *kind(*parts[3:]), device="meta", batch_size=8, ridge=0.1)
    x, y = problem.start(generator)
    for samples in (problem.sample(generator), problem.full()):
        assert {part.device.type for part in exact(problem, x, y, torch.zeros_like(y), samples)} == {"meta"}
    assert {p.device.type for p in parts[0].parameters()} == {"cpu"}
