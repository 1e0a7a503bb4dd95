"""Six problems as somebody new would first write and run them, by a method's name alone.

Each ends with a right answer, or with a warning that says why not. The truth comes from outside the library. An answer
is right if x, with y fitted to it afresh, has four fifths of what the best x gains over the first one.
"""

from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.nn.functional import avg_pool2d, cross_entropy
from torch.utils.data import Dataset

from bilevel_book.mnist.data import load_mnist
from bilevel_core import SOBA, BilevelProblem, Samples, from_modules, objective, refit, run
from bilevel_core.directions import exact
from bilevel_core.problems import Quadratic
from bilevel_core.schedules import Power, Rate, Step
from bilevel_core.solvers.base import POSITIVE, UNIT, SingleLoop, State, method, option

RIGHT = 0.8  # of the gain that is possible


def first_try(problem, steps):
    return run(problem, "FdeHBO", steps=steps, progress=False, refit=True)


def is_on_its_way(result):
    return any("x is on its way" in sentence for sentence in result.warnings)


def gain(start, found, best):
    return (start - found) / (start - best)


def shares(problem, result, column, *, first, best):
    """The gain of the x of a run, where x `first` gains nothing and `best` all, each with a y fitted afresh."""
    start, all_of_it = (refit(problem, x).numbers[column] for x in (first, best))
    return gain(start, result.refit.numbers[column], all_of_it)


def linear(inputs, outputs):
    """A layer that is the same in every test run, whatever ran before."""
    layer, generator = nn.Linear(inputs, outputs), torch.Generator().manual_seed(inputs)
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -(inputs**-0.5), inputs**-0.5, generator=generator)
    return layer


def pixels(images):
    """7 x 7 of them."""
    return avg_pool2d(images[:, None].float() / 255, 4).flatten(1)


# 1. Twenty ridge penalties.


class Ridges(BilevelProblem):
    """Linear regression y with a penalty exp(x_i) y_i^2 for each feature; six of twenty features matter."""

    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        truth = torch.cat([2 * torch.randn(6, generator=generator), torch.zeros(14)])
        inputs = torch.randn(160, 20, generator=generator)
        targets = inputs @ truth + 2 * torch.randn(160, generator=generator)
        self.train, self.validation = (inputs[:60], targets[:60]), (inputs[60:], targets[60:])

    def start(self, generator):
        return torch.zeros(20), torch.zeros(20)

    def sample(self, generator):
        i, j = torch.randint(100, (16,), generator=generator), torch.randint(60, (16,), generator=generator)
        return Samples(tuple(data[i] for data in self.validation), tuple(data[j] for data in self.train))

    def full(self):
        return Samples(self.validation, self.train)

    def upper(self, x, y, batch):
        inputs, targets = batch
        return (inputs @ y - targets).square().mean()

    def lower(self, x, y, batch):
        return self.upper(x, y, batch) + x.exp() @ y**2

    def evaluate(self, x, y):
        return {"validation_loss": self.upper(x, y, self.validation).item()}

    def phi(self, x):
        """The upper loss at y*(x) = (A'A / n + diag(exp x))^-1 A'b / n."""
        inputs, targets = self.train
        y = torch.linalg.solve(inputs.T @ inputs / 60 + x.exp().diag(), inputs.T @ targets / 60)
        return self.upper(x, y, self.validation)


@pytest.mark.slow
def test_twenty_ridge_penalties_come_close_to_the_closed_form():
    problem, best = Ridges(), torch.zeros(20, requires_grad=True)
    lbfgs = torch.optim.LBFGS([best], max_iter=300, line_search_fn="strong_wolfe")

    def closure():
        lbfgs.zero_grad()
        loss = problem.phi(best)
        loss.backward()
        return loss

    lbfgs.step(closure)
    result = first_try(problem, steps=500)
    ends = problem.phi(torch.zeros(20)), problem.phi(best)
    assert gain(ends[0], problem.phi(result.state.x), ends[1]) > RIGHT or is_on_its_way(result)
    assert result.refit.numbers["validation_loss"] == pytest.approx(problem.phi(result.state.x).item(), rel=1e-3)
    # The penalties say which features matter: all but one of the six are below all of the others.
    small = result.state.x[:6].sort().values
    assert small[4] < result.state.x[6:].min()


# 2. Weights of classes.


class ClassWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(10))

    def forward(self):
        return 10 * self.logits.softmax(0)


def weighted(prediction, target, outer):
    return (outer()[target] * cross_entropy(prediction, target, reduction="none")).mean()


@pytest.fixture(scope="module")
def unbalanced():
    """MNIST with three in a hundred of the digits 0 to 4, and a small set with all of them."""
    mnist, generator = load_mnist(), torch.Generator().manual_seed(0)
    images, labels = pixels(mnist.train_images[:8500]), mnist.train_labels[:8500]
    few = (labels[:8000] < 5) & (torch.rand(8000, generator=generator) > 0.03)
    return (images[8000:], labels[8000:]), (images[:8000][~few], labels[:8000][~few])


@pytest.fixture(scope="module")
def unseen_digits():
    mnist = load_mnist()
    return pixels(mnist.test_images[:4000]), mnist.test_labels[:4000]


def accuracy(problem, x, y, digits):
    images, labels = digits
    return (problem.predict(x, y, images).argmax(1) == labels).float().mean().item()


@pytest.mark.slow
def test_class_weights_are_as_good_as_inverse_frequencies(unbalanced, unseen_digits):
    problem = from_modules(ClassWeights(), linear(49, 10), (cross_entropy, weighted), *unbalanced, 64, 1e-4)
    result = first_try(problem, steps=600)
    x, uniform, inverse = result.state.x, torch.zeros(10), -unbalanced[1][1].bincount().log()
    assert shares(problem, result, "upper_loss", first=uniform, best=inverse) > RIGHT or is_on_its_way(result)
    baseline = accuracy(problem, inverse, refit(problem, inverse).y, unseen_digits)
    assert accuracy(problem, x, result.refit.y, unseen_digits) > baseline - 0.03 or is_on_its_way(result)


# 3. Features of sinusoids.

TASKS = 10


def sinusoids(shots, generator, amplitudes, phases):
    inputs = 10 * torch.rand(TASKS, shots, generator=generator) - 5
    tasks = torch.arange(TASKS)[:, None].expand(TASKS, shots)
    values = amplitudes * (inputs + phases).sin()
    return inputs.reshape(-1, 1), torch.stack([values.flatten(), tasks.flatten()], 1)


def of_its_task(prediction, target):
    values, tasks = target.T
    return (prediction.gather(1, tasks.long()[:, None])[:, 0] - values).square().mean()


def with_best_heads(features, upper, lower, ridge):
    """The upper loss with the head of every task in closed form."""
    padded = [torch.cat([features(inputs), torch.ones(len(inputs), 1)], 1) for inputs in (upper[0], lower[0])]
    total, n = torch.zeros(()), len(lower[0])
    for task in range(TASKS):
        (U, u), (A, b) = (
            (inputs[data[1][:, 1] == task], data[1][data[1][:, 1] == task, 0])
            for inputs, data in zip(padded, (upper, lower), strict=True)
        )
        head = torch.linalg.solve(A.T @ A / n + ridge * torch.eye(A.shape[1]), A.T @ b / n)
        total = total + (U @ head - u).square().sum() / len(upper[0])
    return total


@pytest.mark.slow
def test_features_for_few_shots_come_close_to_those_through_the_closed_form():
    generator, ridge = torch.Generator().manual_seed(0), 1e-3
    tasks = 0.5 + 2 * torch.rand(TASKS, 1, generator=generator), 3 * torch.rand(TASKS, 1, generator=generator)
    lower, upper = (sinusoids(shots, generator, *tasks) for shots in (10, 20))

    def network():
        return nn.Sequential(linear(1, 20), nn.Tanh(), linear(20, 10), nn.Tanh())

    truth = network()
    adam = torch.optim.Adam(truth.parameters(), lr=1e-2)
    start = with_best_heads(truth, upper, lower, ridge).item()
    for _ in range(300):
        adam.zero_grad()
        with_best_heads(truth, upper, lower, ridge).backward()
        adam.step()
    features = network()
    problem = from_modules(features, linear(10, TASKS), of_its_task, upper, lower, 50, ridge)
    result = first_try(problem, steps=1000)
    problem.load(result.state.x, result.state.y)
    found, best = (with_best_heads(each, upper, lower, ridge).item() for each in (features, truth))
    assert gain(start, found, best) > RIGHT or is_on_its_way(result)
    assert result.refit.numbers["upper_loss"] == pytest.approx(found, rel=0.02)


# 4. Labels of which some are wrong.


class Blobs(Dataset):
    """Points around four centres; a part of the labels is wrong."""

    def __init__(self, n, wrong, seed):
        generator = torch.Generator().manual_seed(seed)
        centres = 2 * torch.randn(4, 10, generator=torch.Generator().manual_seed(99))
        right = torch.randint(4, (n,), generator=generator)
        self.inputs = centres[right] + 2 * torch.randn(n, 10, generator=generator)
        self.bad = torch.rand(n, generator=generator) < wrong
        self.labels = torch.where(self.bad, (right + torch.randint(1, 4, (n,), generator=generator)) % 4, right)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.inputs[i], self.labels[i]


class Filter(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(n))

    def forward(self, index):
        return self.logits[index].sigmoid()


def filtered(prediction, target, index, outer):
    return (outer(index) * cross_entropy(prediction, target, reduction="none")).mean()


def auc(x, bad):
    """How often a right label weighs more than a wrong one."""
    return (x[~bad][:, None] > x[bad]).float().mean().item()


@pytest.mark.slow
def test_a_filter_finds_wrong_labels_and_does_as_well_as_one_that_knows_them():
    clean, noisy = Blobs(100, 0.0, seed=2), Blobs(400, 0.4, seed=1)
    problem = from_modules(Filter(400), linear(10, 4), (cross_entropy, filtered), clean, noisy, 32, 1e-3)
    result = first_try(problem, steps=1500)
    assert auc(result.state.x, noisy.bad) > 0.95
    nothing, oracle = torch.zeros(400), torch.where(noisy.bad, -6.0, 6.0)
    assert shares(problem, result, "upper_loss", first=nothing, best=oracle) > RIGHT or is_on_its_way(result)

    # The same by an optimiser of torch.
    phi, x = objective(problem), nothing.requires_grad_()
    adam = torch.optim.Adam([x], lr=0.3)
    for _ in range(20):
        adam.zero_grad()
        phi(x).backward()
        adam.step()
    assert auc(x.detach(), noisy.bad) > 0.95


# 5. Twenty images that stand for many.


class Images(nn.Module):
    """Numbers of images become the images that are learned, real images stay as they are."""

    def __init__(self):
        super().__init__()
        self.images = nn.Parameter(0.1 * torch.randn(20, 49, generator=torch.Generator().manual_seed(0)))

    def forward(self, inputs):
        return inputs if inputs.is_floating_point() else self.images[inputs]


def trained_afresh(images, labels, ridge, seed):
    """A network of torch's own, fitted to the images by Adam."""
    layers = nn.Linear(49, 16), nn.Linear(16, 10)
    generator = torch.Generator().manual_seed(seed)
    for parameter in (p for layer in layers for p in layer.parameters()):
        nn.init.normal_(parameter, std=0.2, generator=generator)
    network = nn.Sequential(layers[0], nn.Tanh(), layers[1])
    adam = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(500):
        adam.zero_grad()
        loss = cross_entropy(network(images), labels)
        (loss + ridge * sum(p.square().sum() for p in network.parameters())).backward()
        adam.step()
    return network


@pytest.mark.slow
def test_networks_trained_afresh_learn_more_from_twenty_learned_images_than_from_twenty_real_ones(unseen_digits):
    mnist, digits, ridge = load_mnist(), torch.arange(20) % 10, 5e-3
    real = pixels(mnist.train_images[:2000]), mnist.train_labels[:2000]
    chosen = torch.stack([real[0][real[1] == digit][k] for k in range(2) for digit in range(10)])
    network = nn.Sequential(linear(49, 16), nn.Tanh(), linear(16, 10))
    problem = from_modules(Images(), network, cross_entropy, real, (torch.arange(20), digits), 64, ridge)
    result = first_try(problem, steps=1000)

    def score(images):
        images_of_test, labels = unseen_digits
        networks = [trained_afresh(images, digits, ridge, seed) for seed in range(3)]
        return sum((each(images_of_test).argmax(1) == labels).float().mean().item() for each in networks) / 3

    learned = score(result.state.x.view(20, 49))
    assert learned > score(chosen) + 0.05 or is_on_its_way(result)
    assert accuracy(problem, result.state.x, result.refit.y, unseen_digits) == pytest.approx(learned, abs=0.03)


# 6. A method of one's own.


@dataclass(frozen=True)
class Averaged(State):
    """Also the average of d_x."""

    h: torch.Tensor


@method
class MASOBA(SingleLoop[Averaged]):
    """SOBA with a moving average of d_x: h_{t+1} = (1 - eta_t) h_t + eta_t d_x, x_{t+1} = x_t - alpha_t h_{t+1}."""

    alpha: Step = option(Power(0.2, p=1 / 2), POSITIVE, "step of x")
    beta: Step = option(Power(0.5, p=1 / 2), POSITIVE, "step of y")
    lam: Step = option(Power(0.5, p=1 / 2), POSITIVE, "step of v")
    eta: Rate = option(0.1, UNIT, "weight of the newest d_x, 1 is SOBA")

    def init_memory(self, state):
        return Averaged(**vars(state), h=torch.zeros_like(state.x))

    def update(self, problem, state, generator):
        d = exact(problem, state.x, state.y, state.v, self.draw(problem, generator))
        eta = self.momentum_weight(state.t)
        h = (1 - eta) * state.h + eta * d.x
        return self.move(problem, state, y=d.y, v=d.v, x=h).replace(h=h)


@pytest.mark.slow
def test_a_method_of_ones_own_runs_beside_its_parent(tmp_path):
    problem = Quadratic(noise=1.0)

    def x(solver, **options):
        return run(problem, solver, steps=300, progress=False, **options).state.x

    assert torch.equal(x(MASOBA(eta=1.0)), x(SOBA()))
    assert (x(MASOBA()) - problem.minimiser).norm() < 0.3 * (problem.x0 - problem.minimiser).norm()
    run(problem, MASOBA(), steps=100, progress=False, checkpoint=tmp_path / "half")
    assert torch.equal(x(MASOBA(), checkpoint=tmp_path / "half"), x(MASOBA()))
    with pytest.raises(ValueError, match=r"MASOBA: eta must be a number in \[0, 1\], got 3"):
        MASOBA(eta=3)
    assert "eta = 0.1: weight of the newest d_x, 1 is SOBA; a number in [0, 1]" in MASOBA.__doc__


def test_the_noise_in_x_is_that_of_the_average():
    # At the minimiser, with y and v there too, d_x is noise alone: h averages it, and has less of it.
    problem = Quadratic(noise=1.0)
    at = {"x": problem.minimiser, "y": problem.y_star(problem.minimiser)}
    lengths = {}
    for eta in (1.0, 0.1):
        solver = MASOBA(alpha=1e-9, beta=1e-9, lam=1e-9, eta=eta)
        state = solver.init(problem, **at)
        mean = []
        for _ in range(200):
            state = solver.step(problem, state)
            mean.append(state.h)
        h = torch.stack(mean[50:])
        lengths[eta] = (h - h.mean(0)).norm().item()
    assert lengths[0.1] < 0.4 * lengths[1.0]  # sqrt(eta / (2 - eta)) = 0.23
