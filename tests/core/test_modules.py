import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.utils.data import TensorDataset

from bilevel_core import FdeHBO, from_modules, hypergradient, run
from bilevel_core.directions import exact


def data(n, generator):
    return torch.randn(n, 4, generator=generator), torch.randint(3, (n,), generator=generator)


@pytest.fixture
def parts(generator):
    torch.manual_seed(0)
    outer, inner = nn.Sequential(nn.Linear(4, 5), nn.Tanh()), nn.Linear(5, 3)
    return outer, inner, cross_entropy, data(40, generator), data(30, generator)


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


def test_datasets_and_tensors_are_the_same(parts, generator):
    tensors = from_modules(*parts)
    datasets = from_modules(*parts[:3], TensorDataset(*parts[3]), TensorDataset(*parts[4]))
    x, y = tensors.start(generator)
    assert tensors.evaluate(x, y) == datasets.evaluate(x, y)


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


def test_layers_that_are_not_functions_of_weights_and_batch_are_refused(parts):
    outer, inner, *rest = parts
    with pytest.raises(ValueError, match="outer module holds Dropout in training mode"):
        from_modules(nn.Sequential(outer, nn.Dropout(0.5)), inner, *rest)
    with pytest.raises(ValueError, match="inner module holds BatchNorm1d in training mode"):
        from_modules(outer, nn.Sequential(nn.BatchNorm1d(5), inner), *rest)
    from_modules(outer, nn.Sequential(nn.BatchNorm1d(5), inner).eval(), *rest)


def test_bad_input_is_refused(parts):
    outer, inner, loss, upper_data, lower_data = parts
    with pytest.raises(ValueError, match="inner module has no parameters"):
        from_modules(outer, nn.Identity(), loss, upper_data, lower_data)
    with pytest.raises(ValueError, match="lower_data must be a Dataset"):
        from_modules(outer, inner, loss, upper_data, (lower_data[0], lower_data[1][:5]))
    with pytest.raises(ValueError, match="batch_size must be"):
        from_modules(*parts, batch_size=0)
    with pytest.raises(ValueError, match="ridge must not be negative"):
        from_modules(*parts, ridge=-1.0)
