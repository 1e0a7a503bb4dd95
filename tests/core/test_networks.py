"""Two networks as a problem, and the data of every kind that they take; what is refused is in inputs/modules.toml."""

from functools import partial

import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.nn.utils.parametrizations import spectral_norm
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate

from bilevel_core import SOBA, FdeHBO, from_modules, hypergradient, run
from bilevel_core.directions import exact, grad_x
from core.runs import quiet


def test_losses_and_gradients_are_those_of_the_modules(parts, generator):
    outer, inner, loss, upper_data, lower_data = parts
    problem = from_modules(*parts, batch_size=8, ridge=0.1)
    x, y = problem.start(generator)
    samples = problem.sample(generator)
    inputs, targets = (t[samples.lower] for t in lower_data)
    expected = loss(inner(outer(inputs)), targets) + 0.1 * sum((p**2).sum() for p in inner.parameters())
    torch.testing.assert_close(problem.lower(x, y, samples.lower), expected)
    expected.backward()
    flat = torch.cat([p.grad.flatten() for p in inner.parameters()])
    torch.testing.assert_close(exact(problem, x, y, torch.zeros_like(y), samples).y, flat)
    inputs, targets = (t[samples.upper] for t in upper_data)
    torch.testing.assert_close(problem.upper(x, y, samples.upper), loss(inner(outer(inputs)), targets))
    assert problem.size(samples.upper) == 8
    assert problem.size(problem.full().lower) == 30


def test_frozen_parameters_and_buffers_stay_as_they_are(parts, generator):
    """A frozen layer is a constant of the features: x has neither its weights nor a slope through other ones."""
    outer, inner, *rest = parts
    norm = nn.BatchNorm1d(5).eval()
    norm.running_mean.normal_(generator=generator)
    deep = nn.Sequential(nn.Linear(4, 4), outer, norm)
    deep[0].requires_grad_(False)
    inner.bias.requires_grad_(False)
    before = {name: tensor.clone() for name, tensor in deep.state_dict().items()}
    problem = from_modules(deep, inner, *rest, batch_size=8)
    assert list(problem.outer.shapes) == ["1.0.weight", "1.0.bias", "2.weight", "2.bias"]
    state = run(problem, FdeHBO(), steps=5, **quiet).state
    assert (len(state.x), len(state.y)) == (5 * 4 + 5 + 5 + 5, 3 * 5)
    learned, _ = problem.load(state.x, state.y)
    after = learned.state_dict()
    still = {name for name in before if torch.equal(before[name], after[name])}
    assert still == {name for name in before if name.startswith("0.") or "running" in name or "batches" in name}


def test_learned_weights_go_back_into_the_modules(parts, generator):
    outer, inner, loss, upper_data, _ = parts
    problem = from_modules(*parts, dtype=torch.float64)
    state = run(problem, FdeHBO(), steps=3, **quiet).state
    assert problem.load(state.x, state.y) == (outer, inner)
    assert outer[0].weight.dtype == torch.float32
    inputs, targets = upper_data
    torch.testing.assert_close(
        loss(inner(outer(inputs)), targets).item(), problem.evaluate(state.x, state.y)["upper_loss"]
    )
    before = [p.clone() for p in outer.parameters()]
    with pytest.raises(RuntimeError, match="split_sizes to sum exactly to 17"):
        problem.load(state.x + 1, state.y[1:])
    assert all(map(torch.equal, before, outer.parameters()))  # not half of it


QUIET = {
    "dropout": lambda: nn.Dropout(0.5).eval(),
    "batch norm": lambda: nn.BatchNorm1d(5).eval(),
    "spectral norm": lambda: spectral_norm(nn.Linear(5, 5)).eval(),
    "a transformer": lambda: nn.TransformerEncoderLayer(5, 1, 7, batch_first=True).eval(),
}


@pytest.mark.parametrize("layer", QUIET.values(), ids=QUIET)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_deterministic_layers_are_allowed(parts, layer):
    outer, inner, *rest = parts
    torch.manual_seed(1)
    problem = from_modules(nn.Sequential(outer, layer()), inner, *rest, batch_size=8)
    runs = [run(problem, FdeHBO(), steps=4, **quiet).state for _ in range(2)]
    assert torch.equal(runs[0].x, runs[1].x)


class Weights(nn.Module):
    """One weight for each example of the lower data."""

    def __init__(self, n):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(n))

    def forward(self, index):
        return self.logits[index].sigmoid()


def weighted(prediction, target, index, outer):
    return (outer(index) * cross_entropy(prediction, target, reduction="none")).mean()


def test_loss_with_index_and_outer_learns_weights_of_data(parts, generator):
    """Data cleaning: f is the mean loss of the head, g the weighted one, whose slope in x is at its own examples."""
    upper_data, lower_data = parts[3:]
    head, sets = nn.Linear(4, 3), (TensorDataset(*upper_data), TensorDataset(*lower_data))
    problem = from_modules(Weights(30), head, (cross_entropy, weighted), *sets, batch_size=6, features=False)
    x, y = torch.randn(30, generator=generator), problem.start(generator)[1]
    samples = problem.sample(generator)
    places = samples.lower
    inputs, targets = (part[places] for part in lower_data)
    losses = cross_entropy(head(inputs), targets, reduction="none").detach()
    torch.testing.assert_close(problem.lower(x, y, samples.lower), (x[places].sigmoid() * losses).mean())
    slope = x[places].sigmoid() * (1 - x[places].sigmoid()) * losses / 6
    expected = torch.zeros(30).index_add(0, places, slope)
    torch.testing.assert_close(grad_x(problem.lower, x, y, samples.lower), expected)
    everything = problem.full()
    torch.testing.assert_close(
        problem.upper(x, y, everything.upper), cross_entropy(head(upper_data[0]), upper_data[1]).detach()
    )
    assert problem.lower(x, y, everything.lower).isfinite()


class Penalties(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.log = nn.Parameter(torch.zeros(n))

    def forward(self):
        return self.log.exp()


def penalised(prediction, target, outer, inner):
    return mse_loss(prediction, target) + (outer() * inner["weight"] ** 2).sum()


def test_loss_with_inner_penalises_weights(generator):
    """Ridge regression with a penalty for each feature, against its closed form and its hypergradient."""
    (U, u), (A, b) = (
        (z, z @ torch.tensor([[1.0], [2.0], [0.0]]).double())
        for z in torch.randn(2, 30, 3, generator=generator).double()
    )
    losses = mse_loss, penalised
    problem = from_modules(
        Penalties(3).double(), nn.Linear(3, 1, bias=False).double(), losses, (U, u), (A, b), 8, features=False
    )
    x = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64, requires_grad=True)
    y = torch.linalg.solve(A.T @ A / 30 + x.exp().diag(), A.T @ b / 30)
    (slope,) = torch.autograd.grad(mse_loss(U @ y, u), x)
    found = hypergradient(problem, x.detach())
    torch.testing.assert_close(found.y, y.detach()[:, 0])
    torch.testing.assert_close(found.gradient, slope)
    assert run(problem, FdeHBO(alpha=0.01, beta=0.01, lam=0.01), steps=20, **quiet).stop == "steps"


def test_loss_with_outer_penalises_the_features_themselves(parts, generator):
    """outer and inner can be called, indexed and walked over, and predictions go through both as before."""
    outer, inner, loss, *sets = parts

    def penalised(prediction, target, outer, inner):
        size = sum((p**2).sum() for p in outer.parameters())
        return loss(prediction, target) + size + outer["0.bias"].sum() + inner(outer(torch.ones(4))).sum()

    problem, plain = (from_modules(outer, inner, each, *sets, batch_size="all") for each in (penalised, loss))
    x, y = (torch.randn(len(z), generator=generator) for z in problem.start(generator))
    batch, features = problem.full().upper, torch.tanh(x[:20].view(5, 4).sum(1) + x[20:])
    penalty = x @ x + x[20:].sum() + (y[:15].view(3, 5) @ features + y[15:]).sum()
    torch.testing.assert_close(problem.upper(x, y, batch), plain.upper(x, y, batch) + penalty)


class Examples(Dataset):
    """Rows of a pair of tensors, changed by a transform whenever they are read."""

    def __init__(self, pair, transform=lambda inputs, target: (inputs, target)):
        self.pair, self.transform = pair, transform

    def __len__(self):
        return len(self.pair[0])

    def __getitem__(self, i):
        return self.transform(*(part[i] for part in self.pair))


def both(kind):
    return lambda upper, lower: (kind(upper), kind(lower))


def as_dict(inputs, target):
    return {"input": inputs, "label": target}


SAME = {
    "tensors": both(lambda pair: pair),
    "numpy arrays": both(lambda pair: tuple(part.numpy() for part in pair)),
    "a frame and a series": both(lambda pair: (pd.DataFrame(pair[0].numpy()), pd.Series(pair[1].numpy()))),
    "a Dataset": both(Examples),
    "a list of examples": both(lambda pair: list(zip(*pair, strict=True))),
    "a DataLoader": both(lambda pair: DataLoader(Examples(pair), 256, shuffle=True)),
    "a DataLoader that collates": both(
        lambda pair: DataLoader(Examples(pair), 256, collate_fn=lambda b: default_collate(b))
    ),
}


@pytest.mark.parametrize("kind", SAME.values(), ids=SAME)
def test_data_of_any_kind_is_the_same_in_memory(parts, kind):
    tensors, other = from_modules(*parts), from_modules(*parts[:3], *kind(*parts[3:]))
    runs = [run(problem, FdeHBO(), steps=3, **quiet) for problem in (tensors, other)]
    assert torch.equal(runs[0].state.x, runs[1].state.x)
    assert runs[0].history["upper_loss"].tolist() == runs[1].history["upper_loss"].tolist()


def test_batch_size_is_that_of_the_loaders(parts, generator):
    upper, lower = (DataLoader(TensorDataset(*pair), n) for pair, n in zip(parts[3:], (7, 9), strict=True))
    assert sizes(from_modules(*parts[:3], upper, lower)) == [7, 9]
    assert sizes(from_modules(*parts[:3], upper, lower, batch_size=3)) == [3, 3]
    assert sizes(from_modules(*parts[:3], upper, lower, batch_size=(3, 4))) == [3, 4]
    assert sizes(from_modules(*parts[:4], lower)) == [40, 9]
    assert sizes(from_modules(*parts)) == [40, 30]  # all there is
    many = torch.zeros(300, 4), torch.zeros(300).long()
    assert sizes(from_modules(*parts[:3], many, many, batch_size=(None, "all"))) == [256, 300]


def test_batches_of_all_data_have_no_noise(parts):
    problem = from_modules(*parts, batch_size="all")
    assert problem.sample(torch.Generator()) == problem.full()
    first, second = (run(problem, SOBA(), seed, steps=5, **quiet).state.x for seed in (0, 1))
    assert torch.equal(first, second)


def sizes(problem):
    return [problem.size(batch) for batch in problem.sample(torch.Generator())]


def contrastive(prediction, target):
    """The examples of a batch against one another: log n where all of them are alike."""
    return cross_entropy(prediction @ prediction.T, torch.arange(len(prediction)))


@pytest.mark.parametrize("batch_size", [2, 8])
def test_only_a_sum_is_refused(batch_size, parts):
    """Two copies of two examples double log 2: three copies tell it from a sum."""
    outer, inner, _, *sets = parts
    with pytest.raises(ValueError, match="the upper loss grows with its batch"):
        from_modules(outer, inner, partial(cross_entropy, reduction="sum"), *sets, batch_size=batch_size)
    assert sizes(from_modules(outer, inner, contrastive, *sets, batch_size=batch_size)) == [batch_size, batch_size]


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


def test_everything_is_on_the_device(parts, generator):
    """`meta` is a device without values: with one tensor elsewhere, operations would fail."""
    problem = from_modules(*parts, device="meta", batch_size=8, ridge=0.1)
    x, y = problem.start(generator)
    for samples in (problem.sample(generator), problem.full()):
        assert {part.device.type for part in exact(problem, x, y, torch.zeros_like(y), samples)} == {"meta"}
    assert {p.device.type for p in parts[0].parameters()} == {"cpu"}
