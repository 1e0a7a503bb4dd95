import copy
import math

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils._pytree import tree_map

from bilevel_book.methods import SOLVERS
from bilevel_book.mnist import HyperCleaning, HyperRepresentation
from bilevel_book.mnist.data import load_mnist
from bilevel_book.mnist.hyper_cleaning import area_under_curve, mislabel
from bilevel_book.mnist.hyper_representation import lenet
from bilevel_core import run
from bilevel_core.directions import exact, finite_difference, grad_x, hessian_vector, jacobian_vector
from bilevel_core.problems import Quadratic, Valley


@pytest.fixture(scope="module")
def cleaning():
    return HyperCleaning(noise=0.1, seed=0)


@pytest.fixture(scope="module")
def representation():
    return HyperRepresentation(batch_size=32, evaluation_size=500)


# Quadratic and Valley


def mean_of(loss):
    return lambda x, y, batches: torch.vmap(lambda batch: loss(x, y, batch))(batches).mean()


@pytest.mark.slow  # 4000 draws, so that a standard error is small
@pytest.mark.parametrize("problem", [Quadratic(noise=0.8), Valley(noise=0.8)], ids=["Quadratic", "Valley"])
def test_noise_has_mean_zero_in_every_direction(problem):
    """The mean of 4000 draws of each direction is its noiseless value, within four standard errors.

    The mean of directions is the direction of the mean of the losses, which one call of each gives.
    """
    generator = torch.Generator().manual_seed(0)
    x, y = problem.start(generator)
    v = torch.ones_like(y)
    truth = exact(problem, x, y, v, problem.full())
    draws = [problem.sample(generator) for _ in range(4000)]
    averaged = copy.copy(problem)
    averaged.upper, averaged.lower = (mean_of(loss) for loss in (problem.upper, problem.lower))
    mean = exact(averaged, x, y, v, tree_map(lambda *each: torch.stack(each), *draws))
    some = [exact(problem, x, y, v, draw) for draw in draws[:400]]
    for name in "yvx":
        spread = torch.stack([getattr(d, name) for d in some]).std(0)
        error = (getattr(mean, name) - getattr(truth, name)).abs()
        assert (error <= 4 * spread / 4000**0.5 + 1e-12).all()
    assert torch.stack([d.y for d in some]).std(0).min() > 0.1


def test_the_noisy_quadratic_stays_strongly_convex(generator):
    problem = Quadratic(noise=5.0, mu=1.0)
    x, y = problem.start(generator)
    v = torch.randn(y.shape, generator=generator, dtype=y.dtype)
    curvatures = [v @ hessian_vector(problem, x, y, v, problem.sample(generator).lower) / (v @ v) for _ in range(200)]
    assert min(curvatures) >= 0.5
    assert max(curvatures) - min(curvatures) > 0.5


def test_the_quadratic_has_the_spectrum_it_promises():
    problem = Quadratic(mu=0.2, L=7.0, dim_y=9)
    eigenvalues = torch.linalg.eigvalsh(problem.A)
    torch.testing.assert_close(eigenvalues, torch.linspace(0.2, 7, 9, dtype=torch.float64))


def test_the_valley_objective_has_the_derivative_it_claims():
    x = torch.linspace(-3, 3, 50, dtype=torch.float64, requires_grad=True)
    problem = Valley()
    (derivative,) = torch.autograd.grad(problem.objective(x).sum(), x)
    torch.testing.assert_close(problem.hypergradient(x), derivative, rtol=1e-12, atol=1e-12)
    y = problem.y_star(x).detach()
    at = y.clone().requires_grad_()
    (residual,) = torch.autograd.grad(problem.lower(x.detach(), at, torch.zeros(())), at)
    assert residual.abs().max() < 1e-14


# Hyper-representation


@pytest.mark.checks("experiments:dimensions")
def test_lenet_has_the_dimensions_of_the_paper(representation, generator):
    x, y = representation.start(generator)
    assert (len(x), len(y)) == (60856, 850)
    features, _ = lenet()
    assert [p.numel() for p in features.parameters()] == [150, 6, 2400, 16, 48000, 120, 10080, 84]
    assert torch.equal(y, torch.zeros_like(y))


@pytest.mark.slow
def test_the_split_of_the_released_code_and_the_held_out_one(representation):
    sizes = {"upper": 60000, "lower": 10000, "selection": 10000}
    assert {k: len(s.targets) for k, s in representation.sets.items()} == sizes
    mnist = load_mnist()
    assert torch.equal(representation.sets["lower"].targets, mnist.test_labels)
    held_out = HyperRepresentation(held_out=True, evaluation_size=10)
    assert {k: len(s.targets) for k, s in held_out.sets.items()} == sizes | {"upper": 50000, "test": 10000}
    assert torch.equal(held_out.sets["selection"].targets, mnist.train_labels[40000:50000])
    assert torch.equal(held_out.sets["lower"].targets, mnist.train_labels[50000:])
    assert torch.equal(held_out.sets["test"].targets, mnist.test_labels)
    x, y = held_out.start(torch.Generator().manual_seed(0))
    assert list(held_out.evaluate(x, y)) == [
        f"{s}_{n}" for s in ("upper", "lower", "selection", "test") for n in ("loss", "accuracy")
    ]


def test_images_are_resized_and_normalised(representation):
    from PIL import Image

    original, ours = load_mnist().train_images[:20], representation.sets["upper"].inputs[:20, 0]
    theirs = [
        torch.tensor(list(Image.fromarray(i.numpy()).resize((32, 32), Image.Resampling.BILINEAR).tobytes()))
        for i in original
    ]
    assert (torch.stack(theirs).view(20, 32, 32) - ours.long()).abs().max() <= 1
    seen = []
    hook = representation.outer.module.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    x, y = representation.start(torch.Generator().manual_seed(0))
    representation.upper(x, y, torch.arange(20))
    hook.remove()
    torch.testing.assert_close(seen[0][:, 0], (ours / 255 - 0.1307) / 0.3081)


def test_the_start_depends_on_the_generator_only(representation):
    starts = []
    for outside, seed in ((1, 0), (2, 0), (1, 1)):
        torch.manual_seed(outside)
        before = torch.get_rng_state()
        starts.append(representation.start(torch.Generator().manual_seed(seed))[0])
        assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(starts[0], starts[1])
    assert not torch.equal(starts[0], starts[2])


@pytest.mark.slow
def test_the_head_starts_at_zero_or_as_pytorch_would(representation):
    x, y = HyperRepresentation(zero_head=False).start(torch.Generator().manual_seed(5))
    same_x, zeros = representation.start(torch.Generator().manual_seed(5))
    assert torch.equal(x, same_x)
    assert not zeros.any()
    assert 0.9 / 84**0.5 < y.abs().max() <= 1 / 84**0.5  # uniform on +-1 / sqrt(inputs)


def test_lenet_directions_agree_exact_and_by_finite_differences(representation, generator):
    x, y = representation.start(generator)
    y = y + 0.1 * torch.randn(y.shape, generator=generator)
    v = torch.randn(y.shape, generator=generator) / 30
    samples = representation.sample(generator)
    for a, b in zip(
        exact(representation, x, y, v, samples), finite_difference(representation, x, y, v, samples, 0.1), strict=True
    ):
        assert (a - b).norm() <= 2e-3 * a.norm()


@pytest.mark.slow
def test_the_ridge_makes_the_lower_level_strongly_convex(representation, generator):
    """Adding one vector to all ten rows of a softmax head changes nothing: flat, unless there is a ridge."""
    x, y = representation.start(generator)
    y = torch.randn(y.shape, generator=generator)
    shift = torch.cat((torch.randn(84, generator=generator).repeat(10), torch.ones(10)))
    batch = torch.arange(64)
    assert hessian_vector(representation, x, y, shift, batch).norm() < 1e-5 * shift.norm()
    ridged = HyperRepresentation(ridge=0.05, evaluation_size=10)
    torch.testing.assert_close(hessian_vector(ridged, x, y, shift, batch), 0.1 * shift, rtol=1e-3, atol=1e-3)


# Hyper-cleaning


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.15, 1.0])
def test_exactly_the_promised_number_of_labels_is_wrong(noise, generator):
    labels = load_mnist().train_labels[:20000]
    noisy = mislabel(labels, noise, generator)
    assert (noisy != labels).sum() == round(noise * 20000)
    assert noisy.min() >= 0
    assert noisy.max() <= 9
    shifts = torch.bincount((noisy - labels) % 10, minlength=10)[1:]
    if noise:  # uniform over the nine wrong classes: chi-squared with 8 degrees of freedom, 99.9 % quantile
        expected = noise * 20000 / 9
        assert ((shifts - expected) ** 2 / expected).sum() < 26.1


@pytest.mark.slow  # three problems on MNIST
def test_noise_is_drawn_once_and_by_seed(cleaning):
    before = cleaning.noisy_labels.clone()
    run(cleaning, SOLVERS["FMBO"](), steps=5, progress=False)
    assert torch.equal(before, cleaning.noisy_labels)
    assert torch.equal(before, HyperCleaning(noise=0.1, seed=0).noisy_labels)
    assert not torch.equal(before, HyperCleaning(noise=0.1, seed=1).noisy_labels)
    assert cleaning.is_noisy.sum() == 2000


def test_the_three_sets(cleaning):
    mnist = load_mnist()
    assert torch.equal(cleaning.lower_set.labels, mnist.train_labels[:20000])
    assert torch.equal(cleaning.upper_set.labels, mnist.train_labels[40000:45000])
    assert torch.equal(cleaning.test_set.labels, mnist.test_labels)
    assert torch.equal(cleaning.selection_set.labels, mnist.train_labels[45000:50000])
    assert cleaning.lower_set.pixels.shape == (20000, 785)
    assert torch.equal(cleaning.lower_set.pixels[:, -1], torch.ones(20000))
    assert cleaning.lower_set.pixels[:, :-1].min().item() == pytest.approx(-0.1307 / 0.3081, rel=1e-5)


def test_the_losses_are_the_formulas(cleaning, generator):
    x, y = cleaning.start(generator)
    assert torch.equal(x, torch.zeros(20000))
    assert y.std().item() == pytest.approx(math.sqrt(0.2), rel=0.02)
    x, batch = torch.randn(20000, generator=generator), torch.tensor([3, 19999, 3])
    W = y.view(10, 785)
    expected = 0.0
    for i in batch.tolist():
        loss = cross_entropy(W @ cleaning.lower_set.pixels[i], cleaning.noisy_labels[i])
        expected += torch.sigmoid(x[i]) * loss / 3
    expected += 0.001 * (W**2).sum()
    torch.testing.assert_close(cleaning.lower(x, y, batch), expected)
    losses = [cross_entropy(W @ cleaning.upper_set.pixels[i], cleaning.upper_set.labels[i]) for i in (0, 7)]
    torch.testing.assert_close(cleaning.upper(x, y, torch.tensor([0, 7])), sum(losses) / 2)


def test_weights_belong_to_their_samples(cleaning, generator):
    """J v moves lambda_i only for i in the batch, by sigma'(lambda_i) < p_i - onehot_i, v x_i > / B."""
    x, y = torch.randn(20000, generator=generator), torch.randn(7850, generator=generator) / 30
    v, batch = torch.randn(7850, generator=generator), torch.tensor([11, 500, 17000])
    Jv = jacobian_vector(cleaning, x, y, v, batch)
    assert set(Jv.nonzero().flatten().tolist()) == set(batch.tolist())
    for i in batch.tolist():
        pixels, label = cleaning.lower_set.pixels[i], cleaning.noisy_labels[i]
        residual = torch.softmax(y.view(10, 785) @ pixels, 0) - torch.eye(10)[label]
        s = torch.sigmoid(x[i])
        torch.testing.assert_close(Jv[i], s * (1 - s) / 3 * (residual @ (v.view(10, 785) @ pixels)))


@pytest.mark.checks("introduction:vanishing")
def test_the_upper_loss_does_not_know_lambda(cleaning, generator):
    x, y = cleaning.start(generator)
    assert torch.equal(grad_x(cleaning.upper, x, y, torch.arange(100)), torch.zeros(20000))


def test_evaluate_reports_what_it_says(cleaning, generator):
    x, y = cleaning.start(generator)
    numbers = cleaning.evaluate(x, y)
    assert list(numbers) == [
        "train_loss", "upper_loss", "test_loss", "selection_loss", "test_accuracy", "sigma_noisy", "sigma_clean", "auc",
        "f1",
    ]  # fmt: skip
    assert 15 < numbers["train_loss"] < 30
    assert numbers["auc"] == numbers["sigma_noisy"] == numbers["sigma_clean"] == 0.5
    clean = cross_entropy(cleaning.lower_set.pixels @ y.view(10, 785).T, load_mnist().train_labels[:20000])
    assert numbers["train_loss"] == pytest.approx(clean.item(), rel=1e-6)
    oracle = torch.where(cleaning.is_noisy, -2.0, 2.0)
    numbers = cleaning.evaluate(oracle, y)
    assert numbers["auc"] == numbers["f1"] == 1.0
    assert cleaning.evaluate(-oracle, y)["f1"] == 0
    assert numbers["sigma_noisy"] == pytest.approx(1 / (1 + math.e**2), rel=1e-5)


def test_area_under_curve_counts_pairs(generator):
    positive, negative = (torch.randint(5, (n,), generator=generator).double() for n in (30, 40))
    pairs = [float(p > n) + 0.5 * float(p == n) for p in positive for n in negative]
    assert area_under_curve(positive, negative).item() == pytest.approx(sum(pairs) / len(pairs))


@pytest.mark.slow  # on 20000 images
def test_fmbo_cleans_when_the_outer_step_is_large(cleaning):
    solver = SOLVERS["FMBO"](alpha=100.0, beta=0.1, lam=0.05, eta=0.9, r_v=10.0)
    last = run(cleaning, solver, steps=300, every=300, progress=False).history.iloc[-1]
    assert last.test_accuracy > 0.75
    assert last.auc > 0.7
    assert last.sigma_noisy < last.sigma_clean


@pytest.mark.slow
def test_the_oracle_gives_mislabelled_images_no_weight(cleaning, generator):
    oracle = HyperCleaning(noise=0.1, seed=0, oracle=True)
    x, y = oracle.start(generator)
    assert torch.equal(x != 0, cleaning.is_noisy)
    everything, clean = oracle.full().lower, (~cleaning.is_noisy).nonzero().flatten()
    without = cleaning.lower(torch.zeros_like(x), y, clean) - 0.001 * (y @ y)
    torch.testing.assert_close(oracle.lower(x, y, everything) - 0.001 * (y @ y), 0.9 * without)


@pytest.mark.slow  # three problems on MNIST
def test_a_zero_start_has_the_same_noise_and_no_w():
    x, w = HyperCleaning(noise=0.1, seed=3, zero_start=True).start(torch.Generator().manual_seed(3))
    assert x.abs().max() == w.abs().max() == 0
    assert torch.equal(HyperCleaning(0.1, 3, zero_start=True).noisy_labels, HyperCleaning(0.1, 3).noisy_labels)
