"""The defects of released code: each switch off is the correct thing, each switch on is exactly the defect."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

from bilevel_book.experiments import load
from bilevel_book.methods import SOLVERS
from bilevel_book.mnist import HyperCleaning
from bilevel_book.mnist.data import load_mnist
from bilevel_book.released import ReleasedCleaning
from bilevel_book.released.problem import wrong_after
from bilevel_book.released.solvers import STRIDE, ReleasedMRBO, ReleasedStocBiO
from bilevel_core import run
from bilevel_core.directions import grad_y, jacobian_vector
from bilevel_core.problems import Quadratic
from bilevel_core.schedules import Power
from bilevel_core.solvers.base import generator_at
from core.families import LogCosh

N = 20_000


@pytest.fixture(scope="module")
def correct():
    return ReleasedCleaning(batch_size=50)


@pytest.fixture
def renoised(generator):
    problem = ReleasedCleaning(batch_size=50, renoise=True)
    problem.start(generator)
    return problem


def wrong(problem):
    return (problem.noisy_labels != problem.lower_set.labels).double().mean().item()


@pytest.mark.slow  # whole data on MNIST
@pytest.mark.parametrize("solver", [SOLVERS["FMBO"](), SOLVERS["AID-FP"](full=True, inner=1, K=2)])
def test_with_all_switches_off_the_problem_is_hyper_cleaning(correct, solver):
    mine, theirs = (
        run(problem, solver, steps=2, every=2, progress=False) for problem in (correct, HyperCleaning(batch_size=50))
    )
    for part in ("x", "y", "v", "rng"):
        assert torch.equal(getattr(mine.state, part), getattr(theirs.state, part))
    numbers = theirs.history.drop(columns=["cpu_seconds", "wall_seconds"])
    assert mine.history[list(numbers)].equals(numbers)
    assert (mine.history.wrong == 0.1).all()


@pytest.mark.parametrize(("switched", "name"), [(ReleasedStocBiO, "stocBiO"), (ReleasedMRBO, "MRBO")])
def test_with_all_switches_off_the_methods_are_those_of_the_papers(switched, name):
    mine, theirs = (
        run(Quadratic(noise=0.5), solver, steps=9, progress=False) for solver in (switched(), SOLVERS[name]())
    )
    assert torch.equal(mine.state.x, theirs.state.x)
    assert torch.equal(mine.state.y, theirs.state.y)


def test_a_use_makes_exactly_a_tenth_of_the_batch_wrong_and_touches_nothing_else(renoised, generator):
    batch = renoised.sample(generator).lower.unique()
    renoised.start(generator)
    renoised.use(batch)
    changed = (renoised.noisy_labels != renoised.lower_set.labels).nonzero().flatten()
    assert len(changed) == int(0.1 * len(batch))
    assert set(changed.tolist()) <= set(batch.tolist())
    assert renoised.noisy_labels.min() >= 0
    assert renoised.noisy_labels.max() <= 9


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.1, 0.15, 0.5])
def test_after_k_uses_the_fraction_of_wrong_labels_is_the_closed_form(noise, generator):
    problem = ReleasedCleaning(renoise=True, noise=noise)
    problem.start(generator)
    for k in range(1, 41):
        problem.full()
        p = wrong_after(k, noise)
        assert abs(wrong(problem) - p) < 4.5 * math.sqrt(p * (1 - p) / N)  # the true spread is smaller still
    assert wrong_after(1, noise) == pytest.approx(noise)
    assert wrong_after(10_000, noise) == pytest.approx(0.9)


def test_batches_are_those_of_a_correct_run(renoised, correct):
    for _ in range(3):
        mine, theirs = (p.sample(torch.Generator().manual_seed(7)) for p in (renoised, correct))
        assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))


def test_a_run_begins_with_true_labels_and_can_be_repeated(renoised):
    first, second = (run(renoised, SOLVERS["SOBA"](), steps=4, every=4, progress=False) for _ in range(2))
    assert first.history.wrong.tolist()[0] == 0
    assert 0 < first.history.wrong.tolist()[1] <= 4 * 5 / N
    assert torch.equal(first.state.y, second.state.y)


@pytest.mark.slow
def test_an_interrupted_run_goes_on_with_the_labels_it_had(renoised, tmp_path):
    whole = run(renoised, SOLVERS["SOBA"](), steps=6, every=2, progress=False)
    for steps in (4, 6):
        part = run(renoised, SOLVERS["SOBA"](), steps=steps, every=2, progress=False, checkpoint=tmp_path / "run.ckpt")
    times = ["cpu_seconds", "wall_seconds"]
    assert whole.history.drop(columns=times).equals(part.history.drop(columns=times))
    assert torch.equal(whole.state.y, part.state.y)


def test_the_methods_have_the_settings_of_the_main_comparison():
    """The file of these runs says so, and repeats them."""
    ours, theirs = (load(name).tables["main"] for name in ("released", "hyper-cleaning"))
    for label, method in ours.items():
        assert (method.options, method.problem) == (theirs[label].options, theirs[label].problem)


@pytest.mark.slow
def test_a_batch_of_one_gets_no_noise(generator):
    problem = ReleasedCleaning(renoise=True, batch_size=1)
    problem.start(generator)
    for _ in range(500):
        problem.sample(generator)
    assert wrong(problem) == 0


@pytest.mark.slow
def test_minus_zero_is_the_first_batch():
    """Blocks -0 .. -4 of the training file, cut into 60: exactly what "mixed" holds, in another order."""
    images = load_mnist().train_images.view(60, 1000, -1)
    blocks = images[-torch.arange(5)]
    problem = ReleasedCleaning(upper_from="mixed")
    assert torch.equal(blocks[0], images[0])
    pixels = torch.cat((blocks[1:].flip(0).flatten(0, 1), blocks[0]))
    brightness = problem.pool[:, :-1].double().sum(1)
    expected = ((pixels.double() / 255 - 0.1307) / 0.3081).sum(1)
    torch.testing.assert_close(brightness, expected, rtol=1e-4, atol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize(("upper_from", "training"), [("clean", 0), ("mixed", 1000), ("training", N)])
def test_upper_batches_hold_training_images_with_their_noisy_labels(upper_from, training, generator):
    problem = ReleasedCleaning(upper_from=upper_from, batch_size=5)
    x, y = problem.start(generator)
    assert len(problem.pool) - len(problem.true_part) == training
    if training:
        batch = torch.arange(len(problem.pool))[-training:][:300]
        logits = problem.lower_set.pixels[:300] @ y.view(10, -1).T
        torch.testing.assert_close(problem.upper(x, y, batch), cross_entropy(logits, problem.noisy_labels[:300]))
    many = torch.cat([problem.sample(generator).upper for _ in range(2000)])
    share = (many >= len(problem.true_part)).double().mean().item()
    expected = training / len(problem.pool)
    assert abs(share - expected) <= 4.5 * math.sqrt(expected * (1 - expected) / len(many))


@pytest.mark.slow
def test_an_averaged_loss_gives_every_image_the_same_gradient(correct, generator):
    averaged = ReleasedCleaning(averaged=True, batch_size=50)
    x, y = averaged.start(generator)
    batch, v = torch.arange(50), torch.randn(y.shape, generator=generator)
    torch.testing.assert_close(averaged.lower(x, y, batch), correct.lower(x, y, batch))  # equal weights: equal loss
    mine, theirs = (jacobian_vector(p, x, y, v, batch)[:50] for p in (averaged, correct))
    torch.testing.assert_close(mine, theirs.mean().expand(50))
    assert theirs.std() > 0.1 * theirs.abs().mean()


def test_strangers_get_the_step_of_others(correct):
    options = {"alpha": 10.0, "beta": 0.1, "inner": 1, "Q": 1}
    right, shifted = ReleasedStocBiO(**options), ReleasedStocBiO(**options, misplaced=True)
    state = right.init(correct)
    for t in (0, 4):
        here = replace(state, t=t)
        step, other = right.step(correct, here).x - here.x, shifted.step(correct, here).x - here.x
        assert step.count_nonzero() > 30
        torch.testing.assert_close(other, step.roll(STRIDE * (t + 1)))
        assert not (step.nonzero() == other.nonzero()).all()
    assert math.gcd(STRIDE, N) == 1


def test_weights_that_are_never_stored_stay_where_they_were():
    right, forgetful = ReleasedStocBiO(), ReleasedStocBiO(dropped=True)
    problem = Quadratic(noise=0.5)
    state, first = forgetful.init(problem), right.init(problem)
    assert torch.equal(forgetful.step(problem, state).y, right.step(problem, first).y)
    last = run(problem, forgetful, steps=20, progress=False).state
    assert torch.equal(last.x, first.x)
    assert not torch.equal(last.y, first.y)


@pytest.mark.parametrize(("Q", "eta"), [(3, 0.5), (2, 0.3)])
def test_the_series_of_the_release_is_its_closed_form(Q, eta):
    """In a direction of curvature h, with r = 1 - eta h: eta r^Q + r (1 - r^Q) / (1 - r)."""
    problem = Quadratic(mu=0.5, L=3.9)
    solver = ReleasedStocBiO(series=True, Q=Q, eta_series=eta)
    state = solver.step(problem, solver.init(problem))
    h, axes = torch.linalg.eigh(problem.A)
    r = 1 - eta * h
    f_y = grad_y(problem.upper, state.x, state.y, problem.full().upper)
    expected = (eta * r**Q + r * (1 - r**Q) / (1 - r)) * (axes.T @ f_y)
    torch.testing.assert_close(axes.T @ state.v, expected)
    assert ((axes.T @ state.v) * (axes.T @ f_y) < 0).sum() == (h > 1 / eta).sum()  # there it points backwards


def test_a_decay_that_is_reset_is_no_decay():
    problem, decay = Quadratic(noise=0.5), Power(0.9, 1.0, 2 / 3)
    options = {"alpha": 0.1, "beta": 0.1, "Q": 2}
    reset, constant, decaying = (
        run(problem, ReleasedMRBO(**options, **more), steps=10, progress=False).state.x
        for more in ({"eta": decay, "resets": True}, {"eta": 0.9}, {"eta": decay})
    )
    assert torch.equal(reset, constant)
    assert not torch.equal(reset, decaying)


def estimate(problem, x, y, samples, batches, eta):
    """G = grad_x f - J v with the Neumann sum for v, from the formulas of the derivatives."""
    v = r = problem.f_y(x, y, samples.upper)
    for batch in batches:
        r = r - eta * problem.H(x, y, batch) @ r
        v = v + r
    return problem.f_x(x, y, samples.upper) - problem.J(x, y, samples.lower) @ (eta * v)


def test_midway_the_estimates_are_those_of_the_formula():
    """h_y: now at y_t, then at the last midpoint; h_x: now at the midpoint, then at y_t; all at the new x."""
    problem, eta, eta_series = LogCosh(noise=0.5), 0.3, 0.2
    solver = ReleasedMRBO(alpha=0.1, beta=0.2, eta=eta, Q=2, eta_series=eta_series, twice=True, midway=True)
    state = solver.step(problem, solver.init(problem))
    for _ in range(3):
        draws = generator_at(state)
        samples, batches = problem.sample(draws), [problem.sample(draws).lower for _ in range(2)]
        x, y, last = state.x, state.y, state.before.y

        h_y = problem.g_y(x, y, samples.lower)
        h_y = h_y + (1 - eta) * (state.h.y - problem.g_y(x, last, samples.lower))
        midpoint = y - 0.2 * h_y
        now, then = (estimate(problem, x, at, samples, batches, eta_series) for at in (midpoint, y))
        h_x = now + (1 - eta) * (state.h.x - then)
        state = solver.step(problem, state)
        torch.testing.assert_close(state.x, x - 0.2 * h_x, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(state.y, midpoint - 0.2 * h_y, rtol=1e-10, atol=1e-10)
    with pytest.raises(ValueError, match="give twice = True too"):
        ReleasedMRBO(midway=True)


def test_a_step_taken_twice_is_twice_the_step():
    problem = Quadratic(noise=0.5)
    twice = run(problem, ReleasedMRBO(alpha=0.1, beta=0.1, eta=1.0, Q=2, twice=True), steps=9, progress=False).state
    double = run(problem, ReleasedMRBO(alpha=0.2, beta=0.2, eta=1.0, Q=2), steps=9, progress=False).state
    torch.testing.assert_close(twice.x, double.x)
    torch.testing.assert_close(twice.y, double.y)


@pytest.mark.slow
def test_a_seed_that_seeds_nothing(correct):
    unseeded = ReleasedCleaning(unseeded=True, batch_size=50)
    torch.manual_seed(0)  # the global generator is left in a known state, and two runs still differ

    def end(problem):
        return run(problem, SOLVERS["SOBA"](), seed=5, steps=2, every=2, progress=False).state.y

    assert not torch.equal(end(unseeded), end(unseeded))
    assert torch.equal(end(correct), end(correct))


@pytest.mark.parametrize("name", SOLVERS)
def test_no_method_keeps_the_graph_of_past_steps(name):
    state = run(Quadratic(noise=0.1), SOLVERS[name](), steps=3, progress=False).state
    assert all(part.grad_fn is None and not part.requires_grad for part in (state.x, state.y, state.v))


def test_every_test_that_the_chapter_names_exists():
    tests = Path(__file__).parents[1]
    pages = [path.read_text() for path in (tests.parent / "chapters").glob("11*.ipynb")]
    named = set(re.findall(r"`(test_\w+)`", "".join(pages)))
    defined = {name for path in tests.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())}
    assert len(named) > 15
    assert named <= defined
