import pytest
import torch

from bilevel_core import Samples, hypergradient
from bilevel_core.implicit import NotConverged, conjugate_gradients
from bilevel_core.problems import Quadratic, Valley
from core.families import LogCosh


def test_closed_form_on_the_quadratic(dtype):
    problem = Quadratic(seed=3, dtype=dtype)
    x = torch.linspace(-1, 2, 5, dtype=dtype)
    found = hypergradient(problem, x)
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 1e-10, "atol": 1e-10}
    torch.testing.assert_close(found.y, problem.y_star(x), **close)
    torch.testing.assert_close(found.v, problem.v_star(x), **close)
    torch.testing.assert_close(found.gradient, problem.hypergradient(x), **close)


@pytest.mark.parametrize("x", [-2.5, -0.8, 0.3, 1.7])
def test_closed_form_in_the_valley(x):
    problem, x = Valley(), torch.tensor([x], dtype=torch.float64)
    found = hypergradient(problem, x)
    torch.testing.assert_close(found.y, problem.y_star(x), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found.v, problem.v_star(x), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found.gradient, problem.hypergradient(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_derivative_of_the_objective(seed):
    """Three independent roads to one number: the implicit function theorem, and finite differences of Phi."""
    problem = LogCosh(seed=seed)
    full = problem.full()

    def objective(x):
        return problem.upper(x, hypergradient(problem, x).y, full.upper)

    found, h = hypergradient(problem, problem.x0).gradient, 1e-4
    steps = h * torch.eye(len(found), dtype=torch.float64)
    differences = [(objective(problem.x0 + e) - objective(problem.x0 - e)) / (2 * h) for e in steps]
    torch.testing.assert_close(found, torch.stack(differences), rtol=1e-6, atol=1e-7)


def test_the_quadratic_minimiser_is_stationary():
    for seed in range(5):
        problem = Quadratic(seed=seed, rho=0.1)
        assert problem.hypergradient(problem.minimiser).norm() < 1e-12
        assert problem.hypergradient(problem.x0).norm() > 0.1


def test_samples_choose_the_problem():
    problem = LogCosh(noise=1.0)
    samples = problem.sample(torch.Generator().manual_seed(1))
    found = hypergradient(problem, problem.x0, samples)
    assert problem.g_y(problem.x0, found.y, samples.lower).norm() < 1e-9
    assert problem.g_y(problem.x0, found.y, problem.full().lower).norm() > 0.1
    residual = problem.H(problem.x0, found.y, samples.lower) @ found.v - problem.f_y(problem.x0, found.y, samples.upper)
    assert residual.norm() < 1e-9


def test_a_lower_level_that_is_not_strongly_convex_is_refused():
    class Saddle(LogCosh):
        def lower(self, x, y, batch):
            return y[0] ** 2 - y[1] ** 2 + y[2:].sum()

    with pytest.raises(NotConverged, match="not strongly convex"):
        hypergradient(Saddle(), Saddle().x0)


def test_conjugate_gradients_end_in_as_many_steps_as_dimensions():
    problem = Quadratic(dim_y=12, mu=0.1, L=10)
    steps = []
    u = conjugate_gradients(lambda p: steps.append(1) or problem.A @ p, problem.b, 1e-12)
    torch.testing.assert_close(u, torch.linalg.solve(problem.A, problem.b), rtol=1e-9, atol=1e-9)
    assert len(steps) <= 14


def test_bad_input_is_refused():
    problem = Quadratic()
    with pytest.raises(ValueError, match="x changed: expected shape"):
        hypergradient(problem, torch.ones(4, dtype=torch.float64))
    with pytest.raises(ValueError, match="x must be a 1-D"):
        hypergradient(problem, torch.ones(5, 1, dtype=torch.float64))
    with pytest.raises(ValueError, match="tol must be positive"):
        hypergradient(problem, problem.x0, tol=0)


def test_a_problem_without_full_uses_one_draw():
    class Deterministic(LogCosh):
        def sample(self, generator):
            return Samples(*super().full())

        full = LogCosh.__mro__[1].full

    torch.testing.assert_close(
        hypergradient(Deterministic(), LogCosh().x0).gradient, hypergradient(LogCosh(), LogCosh().x0).gradient
    )
