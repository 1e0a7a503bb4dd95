"""Measured rates: the stacked problem in closed form, slopes and intervals, and the stored long version (T20)."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from bilevel_book import rates
from bilevel_book.bent import Bent, InBall
from bilevel_book.ripples import Ripples
from bilevel_book.walk import walk
from bilevel_core import FdeHBO, Samples, hypergradient, run
from bilevel_core.directions import exact, finite_difference

METHODS = [*rates.CLAIMED, *(name for name in rates.SOBAS if name != "SOBA")]


class Alone(Bent):
    """One copy of a stack: it draws what the stack draws and keeps its own part."""

    def __init__(self, whole: Ripples, copy: int):
        self.whole, self.part = whole, slice(copy * whole.dim, (copy + 1) * whole.dim)
        noise, start = whole.noise[self.part][0].item(), whole.x0[self.part][0].item()
        super().__init__(1, whole.dim, getattr(whole, "bend", 0.0), noise=noise, start=start)

    def sample(self, generator):
        return Samples(*(type(b)(*(entries[self.part] for entries in b)) for b in self.whole.sample(generator)))


@pytest.mark.parametrize("scale", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("kind", [Ripples, Bent])
def test_closed_forms_match_the_implicit_function_theorem(generator, kind, scale):
    problem = kind(3, noise=0.5)
    x = scale * torch.randn(12, generator=generator, dtype=torch.float64)
    truth = hypergradient(problem, x)
    torch.testing.assert_close(problem.hypergradient(x), truth.gradient, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(problem.y_star(x), truth.y, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(problem.v_star(x), truth.v, rtol=1e-9, atol=1e-9)
    norms = problem.evaluate(x, truth.y)
    assert norms["squared_norm"] == pytest.approx(truth.gradient.square().sum().item() / 3)
    assert norms["lower_error"] == pytest.approx(0, abs=1e-8)


def test_objective_has_one_stationary_point_and_is_not_convex():
    problem = Ripples(1, dim=6001, mu=1.25, L=1.25)
    x = torch.linspace(-60, 60, 6001, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(problem.objective(x).sum(), x)
    torch.testing.assert_close(slope, problem.hypergradient(x).detach())
    assert (slope.sign().diff() != 0).sum() == 1
    assert (slope.diff() < 0).double().mean() > 0.3
    assert slope.abs().max() < problem.tilt + 1.6 / 1.25


@pytest.mark.slow  # each copy runs alone
@pytest.mark.parametrize("method", METHODS)
def test_a_stack_equals_its_copies_run_alone(method):
    whole = Ripples(3, noise=(0.2, 0.5, 2.0), start=(0.0, 20.0, 6.0))
    together = walk(whole, rates.solver(method), 20)[-1]
    for copy in range(3):
        alone = walk(Alone(whole, copy), rates.solver(method), 20)[-1]
        for name in "xyv":
            mine, theirs = whole.each(getattr(together, name))[copy], getattr(alone, name)
            torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)


def test_averages_are_means_over_the_steps_before_the_horizon():
    problem, solver = Ripples(2, noise=0.5, start=2.0), rates.solver("SOBA")
    states = [walk(problem, solver, t)[-1] for t in range(7)]
    squares = torch.stack([problem.each(problem.hypergradient(s.x)).norm(dim=1) ** 2 for s in states])
    expected = [squares[:3].mean(0).numpy(), squares[:7].mean(0).numpy()]
    np.testing.assert_allclose(rates.averages(problem, "SOBA", [3, 7]), expected, rtol=1e-12)


@pytest.mark.parametrize("power", [-2 / 3, -1 / 2, -2 / 5, -2 / 7])
def test_slopes_of_power_laws_are_recovered(power):
    T = np.array(rates.horizons(100, 1e5))
    runs = pd.DataFrame({"0": 3 * T**power, "1": 0.1 * T**power}, index=T)
    np.testing.assert_allclose(rates.slope(runs), power, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_frozen_schedules_are_constants(method):
    frozen, moving = rates.solver(method, 100), rates.solver(method)
    names = ["alpha", "beta"] + (["multiplier", "gamma"] if method in ("F2SA", "F3SA") else ["lam"])
    for name in names:
        assert frozen.value(name, 0) == frozen.value(name, 5000) == moving.value(name, 100)
    if hasattr(frozen, "eta"):
        assert frozen.value("eta", 1) == 0.5
        assert frozen.value("eta", 5000) == moving.value("eta", 101)


def test_an_interrupted_average_resumes(tmp_path):
    problem, method = Ripples(2, noise=0.5, start=2.0), rates.Averaged(method="FdeHBO")
    whole = run(problem, method, steps=9, every=3, progress=False).history
    for steps in (6, 9):
        part = run(problem, method, steps=steps, every=3, progress=False, checkpoint=tmp_path / "run.ckpt").history
    assert whole[problem.names].equals(part[problem.names])


@pytest.mark.slow  # a slope needs its decade
@pytest.mark.parametrize(
    ("method", "steepest", "flattest", "steps"), [("FdeHBO", -0.75, -0.60, 1500), ("SOBA", -0.55, -0.45, 2000)]
)
def test_slopes_of_short_runs_match_the_theory(method, steepest, flattest, steps):
    """One decade, the mean of 96 copies."""
    problem, marks = Ripples(96, noise=rates.NOISE, start=rates.NEAR), rates.horizons(steps / 10, steps)
    mean = rates.averages(problem, method, marks).mean(axis=1).to_frame()
    assert steepest < rates.slope(mean).item() < flattest


@pytest.fixture
def power_laws(monkeypatch):
    """Stored runs are power laws: `slopes` has the mean slope of a label; the seeds of controls scatter backwards."""

    def store(slopes):
        off, T = np.linspace(-0.02, 0.02, rates.SEEDS), np.array(rates.horizons(10, 1e5), float)

        def stored(kind, label, noise, start, since, experiment):
            late, side = T[since <= T], 1 if label.startswith("FdeHBO") else -1
            return pd.DataFrame(
                np.transpose([late ** (slopes(label, noise, start) + side * o) for o in off]), index=late
            )

        monkeypatch.setattr(rates, "stored", stored)

    return store


def test_a_report_is_two_sided_and_has_the_gaps_to_both_controls(power_laws):
    truth = {"SOBA, 1/3": -0.3, rates.CONTROL: -0.66}
    power_laws(  # two deltas, whose slopes differ by 0.02
        lambda label, noise, start: truth.get(label, {0.2: -0.8, 0.5: -0.66, 2.0: -0.6}[noise] - 0.02 * ("t^" in label))
    )
    found = rates.report("FdeHBO")
    half = 2.365 * np.linspace(-0.02, 0.02, 8).std(ddof=1) / 8**0.5
    np.testing.assert_allclose(found.off, found.slope + 2 / 3)
    np.testing.assert_allclose(found.slope, [-0.81, -0.67, -0.61])
    np.testing.assert_allclose(found.high - found.off, half, rtol=1e-3)
    np.testing.assert_allclose(found["gap to SOBA, 1/3"], 2 * half - np.array([0.51, 0.37, 0.31]), rtol=1e-3)
    assert rates.in_words(found, -2 / 3) == (
        "slope minus -0.67 from -0.14 to +0.06 in 3 settings: 1 steeper, 1 with -0.67 in the interval, 1 flatter; "
        "steeper than the control SOBA, 1/3 in 3, than SOBA, 2/3 in 1"
    )


@pytest.mark.parametrize(("gap", "starts"), [(0.09, [[0, 20]]), (0.11, [[0, 6], [20, 20]])])
@pytest.mark.parametrize("of", ["FdeHBO", *rates.CONTROLS["FdeHBO"]])
def test_settings_whose_slopes_differ_by_less_than_a_tenth_are_one(power_laws, of, gap, starts):
    power_laws(lambda label, noise, start: -0.5 - gap * (label.startswith(of) and start == 20))
    found = rates.report("FdeHBO").query("noise == 2")
    assert [[min(each), max(each)] for each in found.starts] == starts


@pytest.mark.parametrize("start", rates.STARTS[1:])
def test_stored_slopes_with_the_best_constant_steps_match_the_theory(start):
    slopes = rates.fair_slopes(start).set_index("method")
    assert slopes.slope["FdeHBO"] == pytest.approx(-2 / 3, abs=0.025)
    assert slopes.slope["SOBA"] == pytest.approx(-1 / 2, abs=0.025)
    assert slopes.high["FdeHBO"] < slopes.low.drop("FdeHBO").min()
    assert (slopes.slope < slopes.claimed + 0.025).all()


def test_error_of_differences_falls_with_the_square_of_delta(generator):
    problem = Bent(2, start=0.5)
    x, y = problem.start(generator)
    v, batch = torch.randn(8, generator=generator, dtype=torch.float64), problem.sample(generator)
    truth = exact(problem, x, y, v, batch).v
    errors = [(finite_difference(problem, x, y, v, batch, delta).v - truth).norm() for delta in (0.02, 0.01)]
    assert errors[0] > 1e-6
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.02)


def test_each_copy_has_its_own_ball():
    whole = Bent(2, noise=2.0, start=(0.0, 20.0))
    options = {"alpha": 0.1, "beta": 0.3, "lam": 0.5, "eta": 0.5, "delta": 0.1, "radius": 0.8}
    together = walk(whole, InBall(**options), 12)[-1]
    norms = whole.each(together.v).norm(dim=1)
    assert norms.max() <= 0.8 * (1 + 1e-12)
    assert norms[1].item() == pytest.approx(0.8)
    for copy in range(2):
        alone = Alone(whole, copy)  # the ball of one copy alone is FdeHBO's own
        own = walk(alone, FdeHBO(**{k: v for k, v in options.items() if k != "radius"}, r_v=0.8), 12)[-1]
        torch.testing.assert_close(whole.each(together.v)[copy], own.v, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("method", "steps"),
    [
        ("FdeHBO", {"alpha": "alpha", "beta": "beta", "lam": "lam"}),
        ("F3SA", {"alpha": "alpha", "gamma": "lam"}),
        ("F2SA", {"alpha": "alpha", "gamma": "lam"}),
    ],
)
def test_a_negative_control_has_the_steps_of_its_method(method, steps):
    ours, control = rates.solver(method), rates.solver(rates.CONTROLS[method][0])
    for name, its in steps.items():
        assert all(ours.value(name, t) == control.value(its, t) for t in (0, 10, 10_000))
