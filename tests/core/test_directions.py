import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bilevel_core import FMBO, SOBA
from bilevel_core.counting import counting
from bilevel_core.directions import (
    ThreeSamples,
    derivatives,
    exact,
    finite_difference,
    grad_x,
    grad_y,
    hessian_vector,
    jacobian_vector,
    leaf,
    one_graph_at_a_time,
    project,
)
from bilevel_core.problems import Quadratic, Valley
from core.families import LogCosh, Recording

CLOSE = {torch.float32: {"rtol": 2e-5, "atol": 2e-5}, torch.float64: {"rtol": 1e-12, "atol": 1e-12}}


def point(problem, generator):
    x, y = problem.start(generator)
    v = torch.randn(y.shape, generator=generator, dtype=y.dtype)
    return x, y, v, problem.sample(generator)


def test_first_order_gradients_are_the_formulas(dtype, generator):
    problem = LogCosh(noise=1.0, dtype=dtype)
    x, y, _, (upper, lower) = point(problem, generator)
    torch.testing.assert_close(grad_x(problem.upper, x, y, upper), problem.f_x(x, y, upper), **CLOSE[dtype])
    torch.testing.assert_close(grad_y(problem.upper, x, y, upper), problem.f_y(x, y, upper), **CLOSE[dtype])
    torch.testing.assert_close(grad_x(problem.lower, x, y, lower), problem.g_x(x, y, lower), **CLOSE[dtype])
    torch.testing.assert_close(grad_y(problem.lower, x, y, lower), problem.g_y(x, y, lower), **CLOSE[dtype])


def test_exact_products_are_the_formulas_and_what_autograd_says(dtype, generator):
    problem = LogCosh(noise=1.0, dtype=dtype)
    x, y, v, (_, lower) = point(problem, generator)
    Hv, Jv = hessian_vector(problem, x, y, v, lower), jacobian_vector(problem, x, y, v, lower)
    torch.testing.assert_close(Hv, problem.H(x, y, lower) @ v, **CLOSE[dtype])
    torch.testing.assert_close(Jv, problem.J(x, y, lower) @ v, **CLOSE[dtype])
    _, reference = torch.autograd.functional.hvp(lambda y: problem.lower(x, y, lower), y, v)
    torch.testing.assert_close(Hv, reference, **CLOSE[dtype])
    blocks = torch.autograd.functional.hessian(lambda x, y: problem.lower(x, y, lower), (x, y))
    torch.testing.assert_close(Jv, blocks[0][1] @ v, **CLOSE[dtype])


def test_exact_directions_are_the_formulas(dtype, generator):
    problem = LogCosh(noise=1.0, dtype=dtype)
    x, y, v, samples = point(problem, generator)
    d = exact(problem, x, y, v, samples)
    torch.testing.assert_close(d.y, problem.g_y(x, y, samples.lower), **CLOSE[dtype])
    torch.testing.assert_close(
        d.v, problem.H(x, y, samples.lower) @ v - problem.f_y(x, y, samples.upper), **CLOSE[dtype]
    )
    torch.testing.assert_close(
        d.x, problem.f_x(x, y, samples.upper) - problem.J(x, y, samples.lower) @ v, **CLOSE[dtype]
    )


@pytest.mark.checks("abstract:no-second-derivatives")
@pytest.mark.parametrize("differences", [finite_difference, one_graph_at_a_time])
def test_finite_differences_are_differences_of_the_gradients(differences, dtype, generator):
    problem, delta = LogCosh(noise=1.0, dtype=dtype), 0.25
    x, y, v, samples = point(problem, generator)
    lower = samples.lower
    Hv = (problem.g_y(x, y + delta * v, lower) - problem.g_y(x, y - delta * v, lower)) / (2 * delta)
    Jv = (problem.g_x(x, y + delta * v, lower) - problem.g_x(x, y - delta * v, lower)) / (2 * delta)
    d = differences(problem, x, y, v, samples, delta)
    torch.testing.assert_close(d.y, problem.g_y(x, y, lower), **CLOSE[dtype])
    torch.testing.assert_close(d.v, Hv - problem.f_y(x, y, samples.upper), **CLOSE[dtype])
    torch.testing.assert_close(d.x, problem.f_x(x, y, samples.upper) - Jv, **CLOSE[dtype])
    torch.testing.assert_close(hessian_vector(problem, x, y, v, lower, delta), Hv, **CLOSE[dtype])
    torch.testing.assert_close(jacobian_vector(problem, x, y, v, lower, delta), Jv, **CLOSE[dtype])
    assert (Hv - problem.H(x, y, lower) @ v).norm() > 1e-3  # delta is large enough to tell it from the exact product


def test_finite_differences_are_exact_on_a_quadratic(generator):
    problem = Quadratic(noise=1.0)
    x, y, v, samples = point(problem, generator)
    for a, b in zip(exact(problem, x, y, v, samples), finite_difference(problem, x, y, v, samples, 0.5), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_the_valley_sees_the_hessian_through_sinh():
    problem, delta = Valley(), 0.3
    x, y, v = (torch.tensor([value], dtype=torch.float64) for value in (0.4, -0.7, 1.9))
    batch = problem.full().lower
    expected = torch.cosh(y) * torch.sinh(delta * v) / delta
    torch.testing.assert_close(hessian_vector(problem, x, y, v, batch, delta), expected, rtol=1e-13, atol=0)
    torch.testing.assert_close(hessian_vector(problem, x, y, v, batch), torch.cosh(y) * v, rtol=1e-13, atol=0)
    expected = -3 * torch.cos(1.5 * x) * v
    torch.testing.assert_close(jacobian_vector(problem, x, y, v, batch, delta), expected, rtol=1e-13, atol=0)


def slope_of_error(problem, product, matrix, deltas) -> float:
    generator = torch.Generator().manual_seed(3)
    x, y, v, (_, lower) = point(problem, generator)
    truth = matrix(x, y, lower).double() @ v.double()
    errors = [(product(problem, x, y, v, lower, d).double() - truth).norm().item() for d in deltas]
    return (
        torch.linalg.lstsq(
            torch.tensor([[math.log(d), 1.0] for d in deltas]), torch.tensor([[math.log(e)] for e in errors])
        )
        .solution[0]
        .item()
    )


@pytest.mark.checks("introduction:smoothing-constant")
@pytest.mark.parametrize("name", ["H", "J"])
def test_truncation_error_has_slope_two_in_delta(name):
    problem = LogCosh()
    product = {"H": hessian_vector, "J": jacobian_vector}[name]
    slope = slope_of_error(problem, product, getattr(problem, name), [10**-k for k in (1, 1.5, 2, 2.5, 3)])
    assert 1.97 < slope < 2.03


@pytest.mark.checks("introduction:smoothing-constant")
@pytest.mark.parametrize(
    ("dtype", "deltas"),
    [(torch.float64, [10**-k for k in range(7, 13)]), (torch.float32, [10**-k for k in (3, 3.5, 4, 4.5, 5, 5.5)])],
    ids=["float64", "float32"],
)
def test_rounding_error_has_slope_minus_one_in_delta(dtype, deltas):
    problem = LogCosh(dtype=dtype)

    def in_double(name, *point):
        return getattr(LogCosh(), name)(*(part.double() for part in point))

    slopes = [
        slope_of_error(problem, product, partial(in_double, name), deltas)
        for product, name in ((hessian_vector, "H"), (jacobian_vector, "J"))
    ]
    assert all(-1.3 < slope < -0.7 for slope in slopes)


def test_each_direction_uses_its_own_draw_when_there_are_three(generator):
    problem = LogCosh(noise=1.0)
    x, y, v, _ = point(problem, generator)
    zeta, psi, xi = (problem.sample(generator) for _ in range(3))
    for delta in (None, 1e-3):
        three = FMBO(delta=delta).directions(problem, x, y, v, ThreeSamples(zeta, psi, xi), t=0)
        for name, samples in (("y", zeta), ("v", psi), ("x", xi)):
            alone = getattr(FMBO(delta=delta).directions(problem, x, y, v, samples, t=0), name)
            torch.testing.assert_close(getattr(three, name), alone, rtol=1e-9, atol=1e-9)


def test_both_signs_use_the_same_batch(generator):
    problem = Recording(LogCosh(noise=1.0))
    x, y, v, samples = point(problem, generator)
    finite_difference(problem, x, y, v, samples, 0.1)
    lower = [(at, batch) for loss, _, at, batch in problem.asked if loss == "g"]
    assert all(batch is samples.lower for _, batch in lower)
    torch.testing.assert_close(torch.stack([at for at, _ in lower]), torch.stack((y, y + 0.1 * v, y - 0.1 * v)))


@pytest.mark.parametrize("differences", [finite_difference, one_graph_at_a_time])
def test_what_x_decides_is_computed_once_for_the_three_lower_points(differences, generator):
    problem, calls = LogCosh(), []

    def lower_at(x, batch):
        calls.append(x.exp().sum())
        return lambda y: calls[0] * (y @ y)

    problem.lower_at = lower_at
    differences(problem, *point(problem, generator), 0.1)
    assert len(calls) == 1


def test_one_graph_at_a_time_keeps_one_graph(generator):
    live, most = set(), [0]

    class Saved:  # a tensor that a graph holds for its backward pass
        def __init__(self, tensor):
            self.tensor = tensor
            live.add(id(self))
            most[0] = max(most[0], len(live))

        def __del__(self):
            live.discard(id(self))

    def most_saved(directions):
        most[0] = 0
        with torch.autograd.graph.saved_tensors_hooks(Saved, lambda saved: saved.tensor):
            directions(problem, *given, 0)
        return most[0]

    problem = Quadratic()
    given = point(problem, generator)
    one = most_saved(lambda problem, x, y, v, samples, t: problem.lower(leaf(x), leaf(y), samples.lower))
    together, alone = (most_saved(SOBA(delta=0.1, one_graph=choice).directions) for choice in (False, True))
    assert alone <= 1.5 * one < 3 * one <= together


def test_losses_that_ignore_a_variable(generator):
    class Cleaning(LogCosh):
        """f of y alone, g linear in y."""

        def upper(self, x, y, batch):
            return log(y)

        def lower(self, x, y, batch):
            return y.sum() * x.sum()

    def log(y):
        return torch.logaddexp(y, -y).sum()

    problem = Cleaning()
    x, y, v, samples = point(problem, generator)
    for directions, *delta in ((exact,), (finite_difference, 0.1), (one_graph_at_a_time, 0.1)):
        d = directions(problem, x, y, v, samples, *delta)
        torch.testing.assert_close(d.y, torch.full_like(y, x.sum().item()))
        torch.testing.assert_close(d.v, -torch.tanh(y))
        torch.testing.assert_close(d.x, torch.full_like(x, -v.sum().item()))


def test_pure_and_independent_of_the_grad_mode(generator):
    problem = LogCosh(noise=1.0)
    inputs = point(problem, generator)
    x, y, v, samples = inputs
    copies = [t.clone() for t in (x, y, v, *samples)]
    first = finite_difference(*(problem, *inputs), 0.1)
    with torch.no_grad():
        again = finite_difference(*(problem, *inputs), 0.1)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(d.requires_grad for d in (*first, *exact(problem, *inputs)))
    assert not any(t.requires_grad for t in (x, y, v))
    assert all(torch.equal(a, b) for a, b in zip(copies, (x, y, v, *samples), strict=True))


def test_oracle_calls_are_counted(generator):
    problem = LogCosh()
    x, y, v, samples = point(problem, generator)
    three = ThreeSamples(samples, samples, samples)
    with counting() as outer:
        for given in (samples, three):
            with counting() as calls:
                FMBO().directions(problem, x, y, v, given, t=0)
            assert vars(calls) == {"samples": 0, "gradients": 3, "Hv": 1, "Jv": 1}
            for one_graph in (False, True):
                with counting() as calls:
                    FMBO(delta=0.1, one_graph=one_graph).directions(problem, x, y, v, given, t=0)
                assert vars(calls) == {"samples": 0, "gradients": 7, "Hv": 0, "Jv": 0}
    assert vars(outer) == {"samples": 0, "gradients": 34, "Hv": 2, "Jv": 2}


vectors = st.lists(st.floats(-10, 10), min_size=4, max_size=4).map(lambda v: torch.tensor(v, dtype=torch.float64))


@pytest.mark.slow  # many examples
@given(u=vectors, v=vectors, a=st.floats(-3, 3), seed=st.integers(0, 20))
def test_products_are_linear_symmetric_and_adjoint(u, v, a, seed):
    problem = LogCosh(seed=seed, noise=1.0)
    generator = torch.Generator().manual_seed(seed)
    (x, y), (_, lower) = problem.start(generator), problem.sample(generator)
    H, J = (lambda w: hessian_vector(problem, x, y, w, lower)), (lambda w: jacobian_vector(problem, x, y, w, lower))
    close = {"rtol": 1e-10, "atol": 1e-9}
    torch.testing.assert_close(H(u + a * v), H(u) + a * H(v), **close)
    torch.testing.assert_close(J(u + a * v), J(u) + a * J(v), **close)
    torch.testing.assert_close(u @ H(v), v @ H(u), **close)
    assert v @ H(v) >= v @ v * (1 - 1e-12)  # mu = 1
    w = torch.ones(3, dtype=torch.float64)
    ahead, behind = (grad_y(problem.lower, x + s * 1e-5 * w, y, lower) for s in (1, -1))
    torch.testing.assert_close(w @ J(v), v @ (ahead - behind) / 2e-5, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@given(v=vectors, seed=st.integers(0, 20))
def test_finite_differences_are_odd_in_v(v, seed):
    problem = LogCosh(seed=seed)
    batch = problem.full().lower
    for product in (hessian_vector, jacobian_vector):
        plus = product(problem, problem.x0, problem.y0, v, batch, 0.1)
        minus = product(problem, problem.x0, problem.y0, -v, batch, 0.1)
        torch.testing.assert_close(plus, -minus, rtol=1e-12, atol=1e-12)


@given(
    w=st.lists(st.floats(-1e6, 1e6, width=32), min_size=3, max_size=3),
    u=st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3),
    radius=st.floats(1e-3, 1e3),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_projection_is_the_nearest_point_of_the_ball(w, u, radius, dtype):
    w, u = torch.tensor(w, dtype=dtype), torch.tensor(u, dtype=dtype)
    p = project(w, radius)
    assert p.norm() <= radius  # exactly, in floating point
    assert torch.equal(project(p, radius), p)
    if w.norm() <= radius:
        assert torch.equal(p, w)
    else:
        torch.testing.assert_close(p, w * (radius / w.norm()))
    inside = u * (radius / 2)  # norm at most sqrt(3)/2 radius
    assert (p - inside).norm() <= (w - inside).norm() * (1 + 1e-5) + 1e-30  # non-expansive towards the ball


def test_projection_leaves_the_sphere_and_is_close_to_it():
    v = torch.tensor([3.0, 4.0], dtype=torch.float64)
    assert torch.equal(project(v, 5.0), v)
    assert project(v, 1.0).norm() >= 1 - 6 * torch.finfo(v.dtype).eps


def test_projection_can_hurt_towards_a_point_outside_the_ball():
    w, outside = torch.tensor([2.0, 0.0]), torch.tensor([3.0, 0.0])
    assert (project(w, 1.0) - outside).norm() > (w - outside).norm()


@pytest.mark.parametrize("delta", [0, -0.1, float("nan"), float("inf")])
def test_delta_must_be_positive(delta, generator):
    problem = LogCosh()
    *given, samples = problem, *point(problem, generator)
    for function in (finite_difference, one_graph_at_a_time, hessian_vector):
        with pytest.raises(ValueError, match="delta must be a positive"):
            function(*given, samples.lower if function is hessian_vector else samples, delta)


def test_bad_shapes_and_losses_are_refused(generator):
    problem = LogCosh()
    x, y, v, samples = point(problem, generator)
    with pytest.raises(ValueError, match="x must be a 1-D tensor of float32 or float64, got shape"):
        exact(problem, x[:, None], y, v, samples)
    with pytest.raises(ValueError, match="v has another shape or dtype: expected shape \\(4,\\)"):
        exact(problem, x, y, v[:1], samples)
    with pytest.raises(RuntimeError, match="does not require grad"):  # what torch says of anything else stays
        derivatives(torch.ones(2, requires_grad=True).sum(), x)
    for name, loss, words in (
        ("lower", lambda x, y, batch: y * 2, "lower must return a scalar"),
        ("lower", lambda x, y, batch: y.detach().sum(), "lower does not depend on x or y"),
        ("upper", lambda x, y, batch: y.detach().sum(), "upper does not depend on x or y"),
    ):
        setattr(problem, name, loss)
        for directions, *delta in ((exact,), (finite_difference, 0.1), (one_graph_at_a_time, 0.1)):
            with pytest.raises(ValueError, match=words):
                directions(problem, x, y, v, samples, *delta)
        delattr(problem, name)
