"""What a run says about itself: a sentence when something is wrong, none when all is well."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from bilevel_book.methods import SOLVERS
from bilevel_core import FMBO, SOBA, FdeHBO, diagnose, diagnosis, objective, run
from bilevel_core.problems import Quadratic, Valley
from bilevel_core.schedules import Power

NOT_MADE_FOR_NOISE = "S-TFBO"  # its steps shrink with every draw, so that it rests on its way
EVERY = {name: Solver() for name, Solver in SOLVERS.items() if name not in ("alternating", NOT_MADE_FOR_NOISE)}


def told(problem, solver, steps=100, **options):
    return run(problem, solver, 0, steps=steps, progress=False, **options).warnings


def noisy(**options):
    return Quadratic(noise=0.5, **options)


@pytest.mark.slow
def test_v_on_its_sphere_is_told():
    (sentence,) = told(noisy(), FMBO(r_v=0.01))
    assert "||v|| = r_v = 0.01 at 100% of the rows" in sentence
    assert "a larger r_v" in sentence
    for precise in (torch.float32, torch.float64):  # float32 rounds the norm of a projected v
        assert len(told(noisy(dtype=precise), FMBO(r_v=0.013))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("every", [10, 300])
def test_growing_norm_is_told(every):
    """Also if there are no rows between the first and the last."""
    sentence = told(noisy(), FMBO(beta=0.7, eta=1.0), 300, every=every, blow_up=math.inf)[0]
    assert "||y|| grew to" in sentence
    assert "beta is too large" in sentence
    (sentence,) = told(noisy(), SOLVERS["stocBiO"](eta_series=2.0, alpha=1e-15), 20, every=20, blow_up=math.inf)
    assert "||v|| grew to" in sentence
    assert "eta_series is too large" in sentence


def test_still_x_is_told():
    (sentence,) = watched(FMBO(), moved=0.0)
    assert "x never moved in 300 steps" in sentence
    (sentence,) = told(noisy(dtype=torch.float32), FMBO(alpha=1e-30))
    assert "alpha is lost in rounding" in sentence


def watched(solver, moved=1.0, norms=((1.0, 1.0, 1.0),) * 10, name="", numbers=(), problem=None, **options):
    """The warnings of a run that ended like this: rows of (||x - x_0||, ||y||, ||v||)."""
    problem = problem or Quadratic()
    start = solver.init(problem)
    known = {
        "problem": problem, "solver": solver, "start": start, "norms": norms,
        "loss_column": None if "accuracy" in name else name,
        "state": start.replace(x=start.x + moved, y=start.y + 1, t=300), "history": pd.DataFrame({name: [*numbers]}),
        "nonfinite": "", "stop": "steps", "best": None, "refit": None,
    }  # fmt: skip
    return [*diagnose(SimpleNamespace(**known | options))]


def test_loss_above_its_start_is_told():
    for name in ("objective", "loss", "test_loss"):
        (sentence,) = watched(FMBO(), name=name, numbers=[2.0] * 8 + [1.0, 2.3])
        assert f"{name} ended above its start, 2.3 after 2" in sentence
    assert watched(FMBO(), name="test_accuracy", numbers=[0.1] * 9 + [0.9]) == []
    assert watched(FMBO(), name="objective", numbers=[2.0] * 8 + [1.95, 2.1]) == []
    assert len(watched(FMBO(), name="objective", numbers=[-2.0] * 9 + [-1.7])) == 1
    assert "objective ended above its start" in told(Valley(), SOLVERS["alternating"]())[0]  # the wrong slope


@pytest.mark.parametrize(
    ("numbers", "lost"),
    [
        ([2.0, 1.0, 1.3], True),
        ([2.0, 1.0, 1.2], False),  # a fifth of what was won
        ([1.1, 1.0, 1.09], False),  # no more than noise makes
        ([1.0, -1.0, 0.0], True),
        ([2.0, 1.5, 1.0], False),
    ],
)
def test_loss_far_above_its_lowest_row_is_told(numbers, lost):
    found = watched(FMBO(), name="val_loss", numbers=[*numbers[:1] * 8, *numbers[1:]])
    words = f"val_loss ended at {numbers[2]:.4g} and had been {numbers[1]:.4g}"
    assert [words in each for each in found] == [True] * lost
    assert all('best="val_loss"' in each for each in found)
    assert watched(FMBO(), norms=((1.0, 1.0, 1.0),) * 3, name="val_loss", numbers=numbers) == []  # too few rows


@pytest.mark.parametrize(
    ("way", "losses", "warned"),
    [
        ("goes on at one pace", lambda s: 2 - s, True),
        ("goes on at one pace", lambda s: 2 - min(s, 0.5), False),  # on a plateau
        ("goes on at one pace", lambda s: 1 + s, False),  # another sentence says that it went up
        ("has settled", lambda s: 2 - s, False),  # y is on its way
    ],
)
def test_x_on_its_way_is_told_if_the_loss_falls(way, losses, warned):
    shares = [k / 20 for k in range(21)]
    distances = [s if way == "goes on at one pace" else min(1.0, 3 * s) for s in shares]
    sentences = watched(FMBO(), norms=[(x, 1.0, 1.0) for x in distances], name="loss", numbers=map(losses, shares))
    told = [sentence for sentence in sentences if "x is on its way" in sentence]
    assert len(told) == warned
    if warned:
        assert "loss fell from 1.5 to 1, and x came 50% further from x_0; take more steps, or a larger alpha" in told[0]


@pytest.mark.slow
def test_cures_of_x_on_its_way_help():
    def said(steps, alpha):
        return told(Quadratic(), SOBA(alpha=alpha, beta=0.3, lam=0.3), steps)

    (sentence,) = said(100, alpha=0.01)
    assert sentence.startswith("x is on its way: in the second half of the run objective fell from")
    assert said(1000, alpha=0.01) == said(100, alpha=0.1) == ()


def test_saturated_x_is_told_and_a_large_one_is_not():
    (sentence,) = watched(FMBO(), moved=20.0, problem=Squashed())
    assert "x is saturated: entries moved by up to 20" in sentence
    assert watched(FMBO(), moved=20.0) == []


@pytest.mark.slow
def test_delta_in_the_rounding_is_told():
    (sentence,) = [s for s in told(noisy(dtype=torch.float32), FdeHBO(delta=1e-9)) if "delta" in s]
    assert "delta = 1e-09 is too small for torch.float32" in sentence
    assert "a larger delta, or float64" in sentence
    assert told(noisy(), FdeHBO(delta=1e-9)) == ()  # float64 has digits enough
    (sentence,) = told(noisy(), FdeHBO(delta=1e-300))
    assert sentence.endswith("a larger delta")
    assert watched(FdeHBO(delta=1e-9), norms=[(1.0, 1.0, 0.0)] * 10) == []  # H 0 is exact


def test_divergence_is_told_with_its_variable():
    options = {"steps": 10_000, "progress": False, "blow_up": math.inf}
    result = run(noisy(), FMBO(alpha=1e3, beta=1e3, lam=1e3, eta=1.0), **options)
    (sentence,) = result.warnings
    assert f"y ceased to be finite at step {result.diverged_at}" in sentence
    assert "try a tenth of beta" in sentence
    result = run(noisy(), SOBA(alpha=1e-9, beta=1e-9, lam=1e3), **options)
    assert f"v ceased to be finite at step {result.diverged_at}" in result.warnings[0]
    assert "try a tenth of lam" in result.warnings[0]
    assert all(z.isfinite().all() for z in (result.state.x, result.state.y, result.state.v))


class Squashed(Quadratic):
    """x acts through tanh alone, and the upper loss does not hold it back."""

    def lower(self, x, y, batch):
        return super().lower(torch.tanh(x), y, batch)

    def upper(self, x, y, batch):
        return super().upper(self.rest * x, y, batch)

    def evaluate(self, x, y):
        return {}

    rest = 0.0


class Held(Squashed):
    rest = 1.0


class Seen(Quadratic):
    """Records the upper loss at the y of the run, which is 0 at the first y*."""

    def __init__(self):
        super().__init__()
        self.c = self.y_star(self.x0)

    def evaluate(self, x, y):
        return {"loss": self.upper(x, y, self.full().upper).item()}


SPHERE, LOST = "v was on the sphere", "had been"
CURES = {  # what raises a sentence, its words, and what it says to do
    "diverged": ([noisy(), SOBA(beta=3.0)], "tenth of beta, or", [noisy(), SOBA(beta=0.3)], [noisy(), "SOBA"]),
    "x diverged": ([noisy(), SOBA(alpha=8.0)], "||x - x_0|| is", [noisy(), SOBA(alpha=0.8)]),
    "small ball": ([noisy(), FMBO(r_v=0.01)], SPHERE, [noisy(), FMBO(r_v=10.0)]),
    "ball at work": ([noisy(), FMBO(lam=0.9, eta=1.0, r_v=20)], SPHERE, [noisy(), FMBO(lam=0.3, eta=1.0, r_v=20)]),
    "growth": ([noisy(), SOBA(beta=0.9)], "||y|| grew to", [noisy(), SOBA(beta=0.3)]),
    "end above": ([noisy(), SOBA(alpha=5.0)], "ended above its start", [noisy(), SOBA(alpha=0.5)]),
    "lost": ([noisy(), SOBA(alpha=2.0, beta=0.05, lam=0.3)], LOST, [noisy(), SOBA(alpha=0.2, beta=0.05, lam=0.3)],
             [noisy(), SOBA(alpha=Power(2.0 * 8**0.5, p=0.5), beta=0.05, lam=0.3)]),
    "refit above": ([Seen(), SOBA(alpha=0.1, beta=0.01, lam=0.3)], "take objective(problem), which",
                    [Seen(), SOBA(alpha=0.1, beta=0.3, lam=0.3)]),
    "saturated": ([Squashed(), SOBA(alpha=3e2)], "x is saturated",
                  [Squashed(), SOBA(alpha=0.3)], [Held(), SOBA(alpha=0.3)]),
    "rounding": ([noisy(dtype=torch.float32), FdeHBO(delta=1e-9)], "too small for torch.float32",
                 [noisy(dtype=torch.float32), FdeHBO(delta=1e-2)], [noisy(), FdeHBO(delta=1e-9)]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", CURES)
def test_cure_of_a_sentence_helps(case):
    """The sentence is gone, and Phi is lower, or as low."""
    (problem, solver), words, *cures = CURES[case]
    options = {"steps": 100, "blow_up": 1e6 if "diverged" in case else math.inf, "refit": "refit" in case}
    ill, *well = (run(problem, solver, progress=False, **options) for problem, solver in ((problem, solver), *cures))
    assert any(words in sentence for sentence in ill.warnings), ill.warnings
    for result in well:
        assert not any(words in sentence for sentence in result.warnings), result.warnings
        phi, before = (Quadratic.objective(each.problem, each.state.x) for each in (result, ill))
        assert phi < 1.01 * before or not result.columns


@pytest.mark.slow
def test_objective_helps_where_x_has_learned_to_go_with_another_y():
    (problem, solver), *_ = CURES["refit above"]
    x, phi = problem.x0.clone().requires_grad_(), objective(problem)
    method = torch.optim.LBFGS([x])

    def closure():
        method.zero_grad()
        value = phi(x)
        value.backward()
        return value

    method.step(closure)
    ended = run(problem, solver, steps=100, progress=False).state.x
    assert problem.objective(x.detach()) < 0.98 * problem.objective(ended)


def test_lower_without_x_is_told():
    class Cut(Quadratic):
        def lower(self, x, y, batch):
            return super().lower(x.detach(), y, batch)

    (sentence,) = told(Cut(), SOBA(alpha=0.1))
    assert sentence.startswith("lower does not depend on x as far as torch sees")


@pytest.mark.parametrize("name", ["upper", "lower"])
def test_loss_that_is_not_finite_by_itself_is_told(name):
    """At a step of its own making, and not for an overflow that a large step has made."""

    class Poisoned(Quadratic):
        def sample(self, generator):
            samples = super().sample(generator)
            here = getattr(samples, name)
            return samples._replace(**{name: here._replace(y=here.y / (samples.upper.x[0] < 0.8))})

    result = run(Poisoned(noise=0.5), SOBA(alpha=0.1), steps=50, progress=False)
    assert result.stop == "diverged"
    (sentence,) = result.warnings
    assert f"{name} or its gradient is not finite at step {result.diverged_at}" in sentence


@pytest.mark.parametrize(("steps", "beta", "lags"), [(20, 0.005, True), (1000, 0.005, False), (20, 0.3, False)])
def test_lagging_y_is_told_and_more_steps_or_a_larger_beta_help(steps, beta, lags):
    warnings = told(Seen(), SOBA(alpha=1e-3, beta=beta, lam=0.1), steps, refit=True)
    assert any("y lags behind y*(x); take the y of the refit" in sentence for sentence in warnings) == lags


def test_refit_after_divergence_says_that_x_is_lost():
    class Silent(Quadratic):
        def evaluate(self, x, y):
            return {}

    for factor in (1e6, math.inf):
        warnings = told(Silent(), SOBA(alpha=8.0), 3000, refit=True, blow_up=factor)
        assert any("x is lost" in sentence for sentence in warnings)
    assert not any(
        "x is lost" in each for each in told(Quadratic(), SOBA(alpha=8.0), 300, refit=True)
    )  # the best is kept


@pytest.mark.parametrize("steps", [1, 12, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", EVERY)
def test_closed_forms_raise_no_false_alarm(name, steps):
    """A run that is too short says that x is on its way, one that is not has nothing to say."""
    for problem in (noisy(dtype=torch.float32), Valley(noise=0.3)):
        result = run(problem, EVERY[name], steps=steps, progress=False)
        everywhere = getattr(problem, "minimiser", torch.linspace(-2, 3, 5001))  # Valley is a curve
        best = problem.objective(everywhere).min()
        first, last = (problem.objective(x) for x in (problem.start(torch.Generator())[0], result.state.x))
        left = ((last - best) / (first - best)).item()
        assert all("x is on its way" in sentence for sentence in result.warnings)
        assert (left > 0.02) if result.warnings else (left < 0.1 or steps < diagnosis.FEWEST_STEPS)


@pytest.mark.parametrize(("factor", "warned"), [(1.05, False), (1.5, True)])
def test_worse_refit_is_told(factor, warned):
    refit = SimpleNamespace(warnings=(), numbers={"upper_loss": 2.0 * factor, "accuracy": 0.0})
    sentences = watched(FMBO(), name="upper_loss", numbers=[2.0] * 10, refit=refit)
    assert len(sentences) == warned
    assert all("upper_loss is 2 at the y of the run and 3 with y fitted afresh" in sentence for sentence in sentences)
