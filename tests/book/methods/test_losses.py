"""f and g at one x as functions of y: right derivatives, and nothing computed twice."""

from collections import Counter

import pytest
import torch

from bilevel_book.methods import SOLVERS
from bilevel_book.methods.losses import losses
from bilevel_core import BilevelProblem, hypergradient
from bilevel_core.counting import counting
from bilevel_core.problems import Quadratic
from core.families import LogCosh


@pytest.fixture
def point(dtype):
    problem = LogCosh(noise=1.0, dtype=dtype)
    generator = torch.Generator().manual_seed(4)
    v = torch.randn(4, generator=generator, dtype=torch.float64).to(dtype)
    return problem, problem.x0, problem.y0, v, problem.sample(generator)


def test_every_derivative_is_that_of_the_formula(point):
    problem, x, y, v, samples = point
    f, g = losses(problem, x, samples)
    other = y + 1
    with counting() as calls:
        found = {
            "f_x": f.grad_x(y), "f_y": f.grad_y(y), "both": torch.cat(f.gradients(y)), "g_y": g.grad_y(y),
            "Hv": g.hessian_vector(y, v), "Jv": g.jacobian_vector(y, v), "products": torch.cat(g.products(y, v)),
            "kept": g.grad_y(y), "elsewhere": g.grad_y(other), "difference": g.grad_x(y, minus=other),
        }  # fmt: skip
    Hv, Jv = problem.H(x, y, samples.lower) @ v, problem.J(x, y, samples.lower) @ v
    f_x, f_y = problem.f_x(x, y, samples.upper), problem.f_y(x, y, samples.upper)
    expected = {
        "f_x": f_x, "f_y": f_y, "both": torch.cat((f_x, f_y)), "g_y": problem.g_y(x, y, samples.lower),
        "Hv": Hv, "Jv": Jv, "products": torch.cat((Hv, Jv)), "kept": problem.g_y(x, y, samples.lower),
        "elsewhere": problem.g_y(x, other, samples.lower),
        "difference": problem.g_x(x, y, samples.lower) - problem.g_x(x, other, samples.lower),
    }  # fmt: skip
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, msg=name)
        assert not found[name].requires_grad
    assert (calls.gradients, calls.Hv, calls.Jv) == (9, 2, 2)


class Watched(LogCosh):
    """Remembers each (loss, x, batch) whose part in x was computed."""

    upper, lower = BilevelProblem.upper, BilevelProblem.lower

    def __init__(self, **options):
        super().__init__(**options)
        self.seen, self.alive = Counter(), []

    def _watch(self, name, x, batch):
        self.alive.append(batch)  # or another batch might get its place in memory
        self.seen[name, x.detach().numpy().tobytes(), id(batch)] += 1

    def upper_at(self, x, batch):
        self._watch("f", x, batch)
        return lambda y: LogCosh.upper(self, x, y, batch)

    def lower_at(self, x, batch):
        self._watch("g", x, batch)
        return lambda y: LogCosh.lower(self, x, y, batch)


@pytest.mark.parametrize("name", SOLVERS)
def test_in_a_step_what_x_decides_is_computed_once_for_each_batch(name):
    problem = Watched(noise=0.3)
    solver = SOLVERS[name](**{"eta": 0.5} if "eta" in SOLVERS[name].__dataclass_fields__ else {})
    state = solver.step(problem, solver.init(problem))
    problem.seen.clear()
    solver.step(problem, state)
    assert problem.seen
    assert set(problem.seen.values()) == {1}


def test_a_hypergradient_computes_what_x_decides_once():
    problem = Watched()
    hypergradient(problem, problem.x0, problem.full(), y=problem.y0)
    assert sorted(problem.seen.values()) == [1, 1]  # f and g


def test_reverse_may_forget_its_graphs():
    problem = LogCosh(noise=0.5)
    kept, rebuilt = (SOLVERS["reverse"](inner=6, K=4, recompute=again) for again in (False, True))
    state = kept.init(problem)
    for _ in range(3):
        with counting() as calls:
            one = kept.step(problem, state)
        with counting() as again:
            two = rebuilt.step(problem, state)
        torch.testing.assert_close(one.x, two.x, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(one.v, two.v, rtol=1e-12, atol=1e-12)
        assert torch.equal(one.y, two.y)
        assert calls == again
        state = one


def test_either_form_of_a_loss_makes_the_other():
    class Half(Quadratic):
        def lower(self, x, y, batch):
            return super().lower(x, y, batch) / 2

    for problem, plain, factor in ((Half(), Quadratic(), 0.5), (Watched(), LogCosh(), 1.0)):
        x, y = problem.start(torch.Generator())
        batch = problem.full().lower
        expected = factor * plain.lower(x, y, batch)
        torch.testing.assert_close(problem.lower(x, y, batch), expected)
        torch.testing.assert_close(problem.lower_at(x, batch)(y), expected)


def test_two_forms_of_a_loss_that_differ_are_refused():
    class Again(Watched):
        def lower(self, x, y, batch):
            return super().lower(x, y, batch) / 2

    with pytest.raises(ValueError, match=r"lower returned a different value .* or lower_at is another function"):
        SOLVERS["FMBO"]().init(Again())


def test_reverse_asks_for_scalars_and_takes_a_loss_that_ignores_y_for_once():
    class Vector(Quadratic):
        def lower(self, x, y, batch):
            return y * y

    class Deaf(Quadratic):
        def lower(self, x, y, batch):
            return x @ x

    solver = SOLVERS["reverse"](alpha=0.1)
    with pytest.raises(ValueError, match="lower must return a scalar"):
        solver.init(Vector())
    problem = Deaf()
    state = solver.init(Quadratic())  # of a problem that ignores y always, init says so
    after = solver.step(problem, state)
    assert torch.equal(after.y, state.y)
    torch.testing.assert_close(after.x, state.x - 0.1 * problem.rho * state.x)  # grad_x f alone
