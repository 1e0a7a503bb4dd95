"""Two networks as a problem; what is refused stands in inputs/modules.toml."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.nn.utils.parametrizations import spectral_norm
from torch.utils.data import TensorDataset

from bilevel_core import FdeHBO, from_modules, hypergradient, run
from bilevel_core.directions import exact, grad_x


def test_the_losses_and_gradients_are_those_of_the_modules(parts, generator):
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


def test_the_modules_are_left_alone(parts):
    before = [p.clone() for p in (*parts[0].parameters(), *parts[1].parameters())]
    run(from_modules(*parts), FdeHBO(), steps=5, progress=False)
    after = (*parts[0].parameters(), *parts[1].parameters())
    assert all(torch.equal(a, b) and b.grad is None for a, b in zip(before, after, strict=True))


@pytest.mark.slow  # small batches, small steps
def test_fdehbo_descends_the_true_objective(parts):
    problem = from_modules(*parts, batch_size=16, ridge=0.05)
    result = run(problem, FdeHBO(alpha=0.1, beta=0.3, lam=0.1, eta=0.5), steps=500, every=500, progress=False)

    def objective(x):
        return problem.upper(x, hypergradient(problem, x).y, problem.full().upper).item()

    x, _ = problem.start(torch.Generator())
    assert objective(result.state.x) < objective(x) - 0.05


def test_regression_with_a_closed_form_lower_level(generator):
    """With identity features scaled by x and a ridge, the lower level is ridge regression."""

    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.s = nn.Parameter(torch.ones(3, dtype=torch.float64))

        def forward(self, inputs):
            return inputs * self.s

    inputs = torch.randn(20, 3, generator=generator, dtype=torch.float64)
    targets = torch.randn(20, 1, generator=generator, dtype=torch.float64)
    head = nn.Linear(3, 1, bias=False).double()
    problem = from_modules(Scale(), head, mse_loss, (inputs, targets), (inputs, targets), ridge=0.3)
    x = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    Z = inputs * x
    expected = torch.linalg.solve(Z.T @ Z / 20 + 0.3 * torch.eye(3, dtype=torch.float64), Z.T @ targets[:, 0] / 20)
    torch.testing.assert_close(hypergradient(problem, x).y, expected, rtol=1e-9, atol=1e-9)


# Parameters


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
    state = run(problem, FdeHBO(), steps=5, progress=False).state
    assert (len(state.x), len(state.y)) == (5 * 4 + 5 + 5 + 5, 3 * 5)
    learned, _ = problem.load(state.x, state.y)
    after = learned.state_dict()
    still = {name for name in before if torch.equal(before[name], after[name])}
    assert still == {name for name in before if name.startswith("0.") or "running" in name or "batches" in name}


def test_the_learned_weights_go_back_into_the_modules(parts, generator):
    outer, inner, loss, upper_data, _ = parts
    problem = from_modules(*parts, dtype=torch.float64)
    state = run(problem, FdeHBO(), steps=3, progress=False).state
    assert problem.load(state.x, state.y) == (outer, inner)
    assert outer[0].weight.dtype == torch.float32
    inputs, targets = upper_data
    torch.testing.assert_close(
        loss(inner(outer(inputs)), targets).item(), problem.evaluate(state.x, state.y)["upper_loss"]
    )
    before = [p.clone() for p in outer.parameters()]
    with pytest.raises(ValueError, match=r"inner takes 18 numbers \(weight \(3, 5\), bias \(3,\)\), got 17"):
        problem.load(state.x + 1, state.y[1:])
    assert all(map(torch.equal, before, outer.parameters()))  # not half of it


def test_tied_weights_are_one_part_of_x(parts, generator):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(4, 4)
            self.two = self.one

        def forward(self, inputs):
            return self.two(torch.tanh(self.one(inputs)))

    problem = from_modules(Tied(), nn.Linear(4, 3), *parts[2:])
    assert len(problem.start(generator)[0]) == 20


# What layers may do


QUIET = {
    "dropout": lambda: nn.Dropout(0.5).eval(),
    "batch norm": lambda: nn.BatchNorm1d(5).eval(),
    "batch norm of the batch alone": lambda: nn.BatchNorm1d(5, track_running_stats=False),
    "spectral norm": lambda: spectral_norm(nn.Linear(5, 5)).eval(),
    "a transformer": lambda: nn.TransformerEncoderLayer(5, 1, 7, batch_first=True).eval(),
    "a mask of infinities": lambda: Masked(),
}


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.tensor([0.0, 0.0, 0.0, 0.0, -torch.inf]))

    def forward(self, inputs):
        return torch.softmax(inputs + self.mask, 1)


@pytest.mark.parametrize("layer", QUIET.values(), ids=QUIET)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_layers_that_are_functions_of_their_inputs_are_allowed(parts, layer):
    outer, inner, *rest = parts
    torch.manual_seed(1)
    problem = from_modules(nn.Sequential(outer, layer()), inner, *rest, batch_size=8)
    runs = [run(problem, FdeHBO(), steps=4, progress=False).state for _ in range(2)]
    assert torch.equal(runs[0].x, runs[1].x)


def test_a_power_iteration_that_has_converged_remembers_all_the_same(parts):
    """Spectral norm finds its vectors when it is made, and only another matrix shows that it will lag behind."""
    outer, inner, *rest = parts
    for _ in range(2):
        layer = spectral_norm(nn.Linear(5, 5), n_power_iterations=200)
        layer.parametrizations.weight[0].n_power_iterations = 1
        with pytest.raises(
            ValueError, match=r"outer\.1\.parametrizations\.weight\.0 \(_SpectralNorm\) is random or remembers"
        ):
            from_modules(nn.Sequential(outer, layer), inner, *rest)


# The loss


class Weights(nn.Module):
    """One weight for each example of the lower data."""

    def __init__(self, n):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(n))

    def forward(self, index):
        return self.logits[index].sigmoid()


def weighted(prediction, target, index, outer):
    return (outer(index) * cross_entropy(prediction, target, reduction="none")).mean()


@pytest.mark.parametrize("keep", [True, False])
def test_weights_of_data_are_learned_by_a_loss_that_takes_index_and_outer(parts, generator, keep):
    """Data cleaning: f is the mean loss of the head, g the weighted one, whose slope in x is at its own examples."""
    upper_data, lower_data = parts[3:]
    head, sets = nn.Linear(4, 3), (TensorDataset(*upper_data), TensorDataset(*lower_data))
    problem = from_modules(Weights(30), head, (cross_entropy, weighted), *sets, batch_size=6, keep=keep)
    x, y = torch.randn(30, generator=generator), problem.start(generator)[1]
    samples = problem.sample(generator)
    places = samples.lower if keep else samples.lower.places
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


def test_a_module_may_be_the_loss(parts, generator):
    outer, inner, _, *rest = parts
    x, y = from_modules(*parts).start(generator)
    assert from_modules(outer, inner, nn.CrossEntropyLoss(), *rest).evaluate(x, y) == from_modules(*parts).evaluate(
        x, y
    )


# Devices and dtypes


def test_dtype_is_that_of_weights_and_of_data_but_for_whole_numbers(parts, generator):
    problem = from_modules(*parts, dtype=torch.float64)
    x, y = problem.start(generator)
    assert (x.dtype, y.dtype) == (torch.float64, torch.float64)
    assert (problem.upper_data.inputs.dtype, problem.upper_data.targets.dtype) == (torch.float64, torch.int64)
    single = from_modules(*parts)
    torch.testing.assert_close(problem.evaluate(x, y), single.evaluate(*single.start(generator)))
    doubles = [(inputs.double(), targets) for inputs, targets in parts[3:]]
    x, y = single.start(generator)
    assert from_modules(*parts[:3], *doubles).evaluate(x, y) == single.evaluate(x, y)  # the modules decide


class Penalties(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.log = nn.Parameter(torch.zeros(n))

    def forward(self):
        return self.log.exp()


def penalised(prediction, target, outer, inner):
    return mse_loss(prediction, target) + (outer() * inner["weight"] ** 2).sum()


def test_a_loss_may_take_the_weights_of_the_inner_module_and_penalise_them(generator):
    """Ridge regression with a penalty for each feature, against its closed form and its hypergradient."""
    (U, u), (A, b) = (
        (z, z @ torch.tensor([[1.0], [2.0], [0.0]]).double())
        for z in torch.randn(2, 30, 3, generator=generator).double()
    )
    losses = mse_loss, penalised
    problem = from_modules(Penalties(3).double(), nn.Linear(3, 1, bias=False).double(), losses, (U, u), (A, b), 8)
    x = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64, requires_grad=True)
    y = torch.linalg.solve(A.T @ A / 30 + x.exp().diag(), A.T @ b / 30)
    (slope,) = torch.autograd.grad(mse_loss(U @ y, u), x)
    found = hypergradient(problem, x.detach())
    torch.testing.assert_close(found.y, y.detach()[:, 0])
    torch.testing.assert_close(found.gradient, slope)
    assert run(problem, FdeHBO(alpha=0.01, beta=0.01, lam=0.01), steps=20, progress=False).stop == "steps"
