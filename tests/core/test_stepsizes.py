from dataclasses import replace

import pytest
import torch
from torch import nn

from bilevel_book.methods import SOLVERS
from bilevel_book.theorem_schedules import value_at
from bilevel_core import from_modules, hypergradient, run, suggest
from bilevel_core.counting import counting
from bilevel_core.problems import Quadratic, Valley
from bilevel_core.stepsizes import measure
from core.families import LogCosh


def test_measured_curvature_is_that_of_the_quadratic():
    """Along d = grad Phi, f curves by rho while y and v stand still, and by ||A^-1 B d||^2 / ||d||^2 through them."""
    problem = Quadratic(mu=1.0, L=3.0, rho=0.5)
    found = measure(problem)
    M = torch.linalg.solve(problem.A, problem.B)
    d = problem.hypergradient(problem.x0)
    way = M @ d
    assert abs(found.L - 3.0) < 3e-3
    assert found.direct == pytest.approx(problem.rho, rel=1e-3)
    # Twenty steps bring y and v within a tenth of where they go.
    v = problem.v_star(problem.x0)
    assert found.mu == pytest.approx((way @ problem.A @ way / (way @ way)).item(), rel=0.1)
    assert found.norm_v == pytest.approx(v.norm().item(), rel=0.1)
    assert found.ratio == pytest.approx((v @ v / (v @ problem.A @ v)).item(), rel=0.1)
    assert found.slope == pytest.approx(d.norm().item(), rel=0.1)
    assert found.implicit == pytest.approx((way @ way / (d @ d)).item(), rel=0.1)
    assert found.noise < 1e-12


def test_suggest_takes_gradients_only_and_counts_them():
    with counting() as calls:
        suggestion = suggest(LogCosh(), "FdeHBO")
    assert (calls.Hv, calls.Jv) == (0, 0)
    assert calls.gradients == suggestion.measured["gradients"] == 802
    assert f"from {calls.gradients} gradients" in suggestion.line
    assert f"{calls.gradients} gradients" in suggest.__doc__


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_every_method_gets_options_with_reasons(name):
    problem = LogCosh(noise=0.3)
    suggestion = suggest(problem, SOLVERS[name], seed=1)
    assert type(suggestion.solver) is SOLVERS[name]
    assert suggestion.solver == SOLVERS[name](**suggestion.options)
    steps = set() if name == "S-TFBO" else {"alpha", "beta"}  # that one finds its own
    assert steps <= suggestion.options.keys() == suggestion.reasons.keys()
    first, *rows = str(suggestion).splitlines()
    assert f"L {suggestion.measured['L']:.3g}" in first
    assert [row.split()[0] for row in rows] == list(suggestion.options)
    assert all(row.endswith(suggestion.reasons[row.split()[0]]) for row in rows)
    assert all(f"{key} = " in suggestion.line for key in suggestion.options)
    moved = suggestion.solver.step(problem, suggestion.solver.init(problem, 1))
    assert moved.x.isfinite().all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["FdeHBO", "stocBiO"])
@pytest.mark.parametrize("scale", [1e-2, 1e2])
def test_steps_follow_the_scale_of_the_lower_level(name, scale):
    """With g times c, y* stays and v* is divided by c: steps of y and v are divided by c too, that of x is not."""

    class Scaled(Quadratic):
        def lower(self, x, y, batch):
            return scale * super().lower(x, y, batch)

    here, there = (suggest(P(), SOLVERS[name]).options for P in (Quadratic, Scaled))
    for key in {"beta", "lam", "eta_series"} & here.keys():
        assert value_at(there[key], 0) == pytest.approx(value_at(here[key], 0) / scale, rel=0.05), key
    assert value_at(there["alpha"], 0) == pytest.approx(value_at(here["alpha"], 0), rel=0.1)
    problem = Scaled()
    end = run(problem, suggest(problem, SOLVERS[name]).solver, steps=200, progress=False).state
    best, first = problem.objective(problem.minimiser), problem.objective(problem.x0)
    assert problem.objective(end.x) - best < 1e-2 * (first - best)


@pytest.mark.parametrize(("part", "is_stable"), [(0.95, True), (1.05, False)])
def test_loop_is_stable_below_two_over_tau_implicit(part, is_stable):
    """A step is affine in (x, y, v), so the eigenvalues of four of them decide; with tau = 100 it is nearly a flow."""
    problem = Quadratic(dim_x=1, dim_y=1, mu=1.0, L=1.0, rho=0.0)
    tau, implicit = 100, (problem.B / problem.A).item() ** 2
    solver = SOLVERS["SOBA"](alpha=part * 2 / (tau * implicit), beta=1 / tau, lam=1 / tau)

    def after(point):
        start = solver.init(problem, **{name: z[None] for name, z in zip("xyv", point, strict=True)})
        state = solver.step(problem, start)
        return torch.cat((state.x, state.y, state.v))

    points = torch.eye(3, dtype=torch.float64)
    columns = [after(point) - after(0 * point) for point in points]
    assert (torch.linalg.eigvals(torch.stack(columns)).abs().max() < 1) == is_stable


@pytest.mark.slow
@pytest.mark.parametrize(
    "problem", [Quadratic(mu=0.1, L=10.0), Valley(), LogCosh()], ids=lambda problem: type(problem).__name__
)
def test_suggested_run_is_within_three_times_the_best_of_a_grid(problem):
    """In what is left of ||grad Phi||, or else a hundredth is left of it, and so 0.0001 of what Phi had to fall."""

    def left(solver):
        x = run(problem, solver, steps=300, progress=False).state.x
        return hypergradient(problem, x).gradient.norm().item()

    suggested = suggest(problem, "FMBO").solver
    first = hypergradient(problem, problem.start(torch.Generator())[0]).gradient.norm().item()
    grid = [replace(suggested, alpha=suggested.alpha(0) * factor) for factor in (0.1, 0.3, 1.0, 3.0)]
    assert left(suggested) <= max(3 * min(map(left, grid)), 1e-2 * first)


def test_noise_brings_momentum():
    calm, noisy = (suggest(Quadratic(noise=noise), "FdeHBO").solver for noise in (0.0, 0.5))
    assert calm.eta == 1.0
    assert [noisy.eta(t) for t in (0, 210)] == pytest.approx([1 / 2, 1 / 8])
    for step in (calm.alpha, calm.beta, calm.lam, noisy.alpha, noisy.beta, noisy.lam):
        assert step(2100) / step(0) == pytest.approx(1 / 2)
    assert suggest(Quadratic(), SOLVERS["SUSTAIN"]).solver.eta(0) == pytest.approx(0.5)  # its own draws are noise too


def test_delta_suits_the_precision(dtype):
    problem = LogCosh(dtype=dtype)
    suggestion = suggest(problem, "FdeHBO")
    _, y, v = hypergradient(problem, problem.x0)
    moved = suggestion.options["delta"] * v.norm().item()
    assert moved == pytest.approx(torch.finfo(dtype).eps ** (1 / 3) * max(1.0, y.norm().item()), rel=0.1)


@pytest.mark.slow
def test_unmeasured_option_keeps_its_default():
    class Flat(Quadratic):
        def lower(self, x, y, batch):
            return 0 * super().lower(x, y, batch)

    class Still(Quadratic):
        def upper(self, x, y, batch):
            return 0 * super().upper(x, y, batch)

    class Cliff(Quadratic):  # curves a million times more than at its start, once y has left it
        def lower(self, x, y, batch):
            return super().lower(x, y, batch) + 1e6 * torch.relu(y @ y - 0.1) ** 2

    flat, cliff, still = (suggest(P(), "FMBO") for P in (Flat, Cliff, Still))
    assert not {"beta", "lam", "r_v"} & flat.options.keys()
    assert flat.solver.step(Flat(), flat.solver.init(Flat())).x.isfinite().all()
    assert cliff.solver.step(Cliff(), cliff.solver.init(Cliff())).x.isfinite().all()
    assert "alpha" not in still.options
    assert still.solver.beta(0) == pytest.approx(0.17)


@pytest.mark.parametrize(("mu", "is_told"), [(1.0, False), (1e-3, True)])
def test_flat_lower_level_is_told(mu, is_told):
    """x moves y along the stiffest direction alone, so only the random probe can see the flattest."""
    problem = Quadratic(mu=mu, L=1.0)
    stiffest = torch.linalg.eigh(problem.A).eigenvectors[:, -1:]
    problem.B = stiffest @ problem.B[:1]
    suggestion = suggest(problem, "FMBO")
    assert suggestion.measured["mu"] == pytest.approx(1.0, rel=0.01)
    assert suggestion.measured["flattest"] == pytest.approx(mu, rel=0.1, abs=2e-3)
    assert ["add a ridge, or judge x by a refit" in sentence for sentence in suggestion.warnings] == [True] * is_told
    assert all(sentence in suggestion.line for sentence in suggestion.warnings)


def test_columns_of_other_units_are_told_and_standardised_ones_are_not(generator):
    inputs = torch.randn(2, 50, 4, generator=generator)
    for scale, is_told in ((1.0, False), (300.0, True)):
        sets = [(each * torch.tensor([scale, 1.0, 1.0, 1.0]), each.sum(1, keepdim=True)) for each in inputs]
        problem = from_modules(Scale(), nn.Linear(4, 1), nn.functional.mse_loss, *sets, batch_size="all", ridge=1e-3)
        suggestion = suggest(problem, "SOBA")
        assert ["standardise the inputs" in sentence for sentence in suggestion.warnings] == [True] * is_told


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(4))

    def forward(self, inputs):
        return self.factor * inputs


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ridge", [1e-2, 1e-4])
def test_suggested_steps_do_not_blow_up_where_x_are_features(seed, ridge):
    """Fifty heads on shared features, full batches: as the features grow, so does the curvature of g."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    amplitude, phase = 0.1 + 4.9 * torch.rand(50, generator=generator), 3 * torch.rand(50, generator=generator)

    def sines(n):
        task, x = torch.randint(50, (n,), generator=generator), 10 * torch.rand(n, generator=generator) - 5
        return x[:, None], torch.stack([task, amplitude[task] * torch.sin(x + phase[task])], 1)

    def loss(prediction, target):
        return (prediction.gather(1, target[:, :1].long())[:, 0] - target[:, 1]).square().mean()

    outer = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh())
    problem = from_modules(outer, nn.Linear(40, 50), loss, sines(1000), sines(1000), "all", ridge)
    result = run(problem, "FdeHBO", seed, steps=300, progress=False)
    assert result.stop == "steps"
    assert result.history.upper_loss.iloc[-1] < 0.5 * result.history.upper_loss.iloc[0]
