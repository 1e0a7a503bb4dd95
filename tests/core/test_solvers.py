import itertools
import math
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
import torch

from bilevel_book.methods import SOLVERS
from bilevel_book.theorem_schedules import theorem
from bilevel_core import FMBO, SOBA, BilevelProblem, FdeHBO, Samples, run
from bilevel_core.counting import counting
from bilevel_core.problems import Quadratic, Valley
from bilevel_core.schedules import Power
from bilevel_core.solvers.base import State, method
from core.families import LogCosh, Recording, log_cosh

MOMENTUM = [FMBO, FdeHBO]
STEPS = {"alpha": 0.05, "beta": 0.2, "lam": 0.1, "eta": 0.3, "r_v": 0.3}


def walk(problem, solver, steps, seed=0, **start):
    states = [solver.init(problem, seed, **start)]
    for _ in range(steps):
        states.append(solver.step(problem, states[-1]))
    return states


def reference(problem, samples, alpha, beta, lam, eta, r_v, delta=None):
    """Algorithms 1 and 2, corrected, a second time: from the formulas of the derivatives, with lists and loops."""
    x, y = problem.x0, problem.y0
    v = torch.zeros_like(y)
    path, past, before = [(x, y, v)], None, None

    def directions(x, y, v, draw):
        if delta is None:
            Hv, Jv = problem.H(x, y, draw.lower) @ v, problem.J(x, y, draw.lower) @ v
        else:
            up, down = y + delta * v, y - delta * v
            Hv = (problem.g_y(x, up, draw.lower) - problem.g_y(x, down, draw.lower)) / (2 * delta)
            Jv = (problem.g_x(x, up, draw.lower) - problem.g_x(x, down, draw.lower)) / (2 * delta)
        return [
            problem.g_y(x, y, draw.lower),
            Hv - problem.f_y(x, y, draw.upper),
            problem.f_x(x, y, draw.upper) - Jv,
        ]

    for draw in samples:
        new = directions(x, y, v, draw)
        if past is None:
            h = new
        else:
            old = directions(*before, draw)
            h = [eta * n + (1 - eta) * (p + n - o) for n, p, o in zip(new, past, old, strict=True)]
        before, past = (x, y, v), h
        w = v - lam * h[1]
        norm = math.sqrt(sum(w.tolist()[i] ** 2 for i in range(len(w))))
        x, y, v = x - alpha * h[2], y - beta * h[0], w if norm <= r_v else w * (r_v / norm)
        path.append((x, y, v))
    return path


MOMENTUM_STEPS = {"alpha": Power(0.2), "beta": Power(0.5), "lam": Power(0.5), "eta": Power(1.0, 7.0, 2 / 3, cap=1.0)}
ROOT_STEPS = {"alpha": Power(0.2, p=1 / 2), "beta": Power(0.5, p=1 / 2)}
DEFAULTS = {
    "FMBO": MOMENTUM_STEPS | {"r_v": 100.0, "delta": None, "independent": False, "one_graph": False},
    "FdeHBO": MOMENTUM_STEPS | {"r_v": 100.0, "delta": 0.01, "independent": False, "one_graph": False},
    "SOBA": ROOT_STEPS | {"lam": Power(0.5, p=1 / 2), "delta": None, "independent": False, "one_graph": False},
    "alternating": ROOT_STEPS,
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_default_options_are_the_documented_ones(name):
    assert vars(SOLVERS[name]()) == DEFAULTS[name]


@pytest.mark.checks("contributions:single-loop")
@pytest.mark.parametrize("delta", [None, 0.1], ids=["FMBO", "FdeHBO"])
def test_the_paths_are_those_of_the_corrected_algorithms(delta):
    problem = LogCosh(noise=0.5)
    solver = FMBO(**STEPS) if delta is None else FdeHBO(**STEPS, delta=delta)
    states = walk(problem, solver, 40, seed=7)
    generator = torch.Generator().manual_seed(7)
    path = reference(problem, [problem.sample(generator) for _ in range(40)], **STEPS, delta=delta)
    for state, (x, y, v) in zip(states, path, strict=True):
        torch.testing.assert_close(state.x, x, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(state.y, y, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(state.v, v, rtol=1e-10, atol=1e-10)
    assert any(state.v.norm() > 0.2999 for state in states)  # the projection was at work


@pytest.mark.parametrize("Method", MOMENTUM)
def test_the_first_estimators_are_plain_gradients_whatever_eta_is(Method):
    problem = LogCosh(noise=1.0)
    first = [walk(problem, Method(**STEPS | {"eta": eta}), 1)[1] for eta in (0.0, 0.1, 1.0)]
    samples = problem.sample(torch.Generator().manual_seed(0))
    assert Method(eta=0.1).momentum_weight(0) == 1
    for state in first:
        torch.testing.assert_close(state.h.y, problem.g_y(problem.x0, problem.y0, samples.lower))
        torch.testing.assert_close(state.h.v, -problem.f_y(problem.x0, problem.y0, samples.upper))  # v_0 = 0
        torch.testing.assert_close(state.h.x, problem.f_x(problem.x0, problem.y0, samples.upper))


@pytest.mark.parametrize("Method", MOMENTUM)
@pytest.mark.parametrize("independent", [False, True])
def test_the_same_samples_at_both_points_and_at_both_signs(Method, independent):
    problem = Recording(LogCosh(noise=1.0))
    solver = Method(**STEPS, independent=independent)
    state = walk(problem, solver, 3)[-1]
    problem.asked.clear()
    solver.step(problem, state)
    for loss in "fg":
        batches = {}
        for name, x, _, batch in problem.asked:
            if name == loss:
                at = "now" if torch.equal(x, state.x) else "before"
                batches.setdefault(id(batch), []).append(at)
        draws = 1 if not independent else (2 if loss == "f" else 3)
        assert len(batches) == draws  # psi and xi reach f; zeta, psi and xi reach g
        for at in batches.values():
            assert at.count("now") == at.count("before") > 0
    assert all(torch.equal(x, state.x) or torch.equal(x, state.before.x) for _, x, _, _ in problem.asked)


@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_fmbo_with_eta_one_is_soba_with_projection(noise):
    problem = LogCosh(noise=noise)
    steps = {"alpha": 0.05, "beta": 0.2, "lam": 0.1}
    wide = walk(problem, FMBO(**steps, eta=1.0, r_v=float("inf")), 60)
    soba = walk(problem, SOBA(**steps), 60)
    for a, b in zip(wide, soba, strict=True):
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.y, b.y)
        assert torch.equal(a.v, b.v)
    tight = walk(problem, FMBO(**steps, eta=1.0, r_v=0.5), 60)
    soba_step = SOBA(**steps)
    for now, after in itertools.pairwise(tight):
        free = soba_step.step(problem, State(now.x, now.y, now.v, now.t, now.rng))
        assert torch.equal(after.x, free.x)
        assert torch.equal(after.y, free.y)
        torch.testing.assert_close(after.v, free.v * min(1.0, 0.5 / free.v.norm().item()))


@pytest.mark.slow
@pytest.mark.checks("abstract:single-loop", "contributions:bounded-v")
@pytest.mark.parametrize("Method", MOMENTUM)
def test_v_never_leaves_the_ball(Method):
    for r_v in (0.01, 0.3, 2.0):
        norms = [s.v.norm().item() for s in walk(LogCosh(noise=3.0), Method(**STEPS | {"r_v": r_v}), 80)]
        assert max(norms) <= r_v
        assert max(norms) > 0.99 * r_v


@pytest.mark.checks("abstract:single-loop")
def test_all_three_variables_move_from_the_time_t_point():
    """Jacobi, not Gauss-Seidel: x must not see the new y or v."""
    problem = Quadratic()
    solver = FMBO(alpha=0.1, beta=0.1, lam=0.1, eta=1.0)
    state = walk(problem, solver, 5)[-1]
    after = solver.step(problem, state)
    d_x = problem.rho * state.x + problem.B.T @ state.v
    torch.testing.assert_close(after.x, state.x - 0.1 * d_x, rtol=1e-12, atol=1e-12)
    d_v = problem.A @ state.v - (state.y - problem.c)
    torch.testing.assert_close(after.v, state.v - 0.1 * d_v, rtol=1e-12, atol=1e-12)


class Sine(BilevelProblem):
    """Four copies of a five-dimensional problem with bounded noise of every kind, fed with a stored stream of noise.

    g = (1 + z/2) phi(u) - n u with u = y - B x and phi'' = 1 + sin(u + 0.7) / 2;
    f = (1 + z'/2) lc(y - t) + (1 + z''/2) x^2 / (1 + x^2) / 2 + n'y + n''x.
    """

    def __init__(self):
        rng = np.random.default_rng(0)
        Q, _ = np.linalg.qr(rng.normal(size=(5, 5)))
        self.B = torch.tensor(Q * np.linspace(0.7, 1.3, 5))
        self.t = torch.tensor(rng.normal(size=5) * 1.5)
        rng = np.random.default_rng(5)
        draws = []
        for _ in range(3):
            noise = rng.uniform(-1, 1, size=(300, 6, 4, 5))
            noise[:, [1, 3, 5]] *= np.sqrt(3)
            draws.append(torch.tensor(noise))
        self.stream = [draws[k][t] for t in range(300) for k in range(3)]

    def start(self, generator):
        self.left = iter(self.stream)
        return torch.zeros(20, dtype=torch.float64), torch.zeros(20, dtype=torch.float64)

    def sample(self, generator):
        noise = next(self.left, None)
        return Samples(noise, noise)

    def upper(self, x, y, N):
        x, y = x.view(4, 5), y.view(4, 5)
        pull = (1 + N[2] / 2) * log_cosh(y - self.t) + (1 + N[4] / 2) * x**2 / (1 + x**2) / 2
        return (pull + N[3] * y + N[5] * x).sum()

    def lower(self, x, y, N):
        u = y.view(4, 5) - x.view(4, 5) @ self.B.T
        phi = u**2 / 2 - (torch.sin(u + 0.7) - u * math.cos(0.7)) / 2
        return ((1 + N[0] / 2) * phi - N[1] * u).sum()


@pytest.mark.slow  # four runs of 300 steps with three draws each, as long as the number was computed for
def test_fdehbo_tends_to_fmbo_as_delta_tends_to_zero():
    """The distance after 300 noisy steps is 1.41e-3 delta^2, until rounding takes over and it grows again."""
    problem = Sine()
    rates = theorem(w=8, c_alpha=0.5) | {"eta": Power(1.0, 8, 2 / 3), "r_v": 2 * math.sqrt(5) / 0.25}

    def last(solver):
        state = solver.init(problem)
        problem.left = iter(problem.stream)  # the check of the problem in init has used a draw
        for _ in range(300):
            state = solver.step(problem, state)
        return state.x

    exact = last(FMBO(**rates, independent=True))
    gap = {d: (last(FdeHBO(**rates, delta=d, independent=True)) - exact).abs().max().item() for d in (1e-1, 1e-3, 1e-8)}
    assert gap[1e-1] == pytest.approx(1.41e-5, rel=0.01)
    assert gap[1e-3] == pytest.approx(1.41e-9, rel=0.01)
    assert 1e-9 < gap[1e-8] < 1e-6


@pytest.mark.checks(
    "abstract:single-loop",
    "abstract:no-second-derivatives",
    "table-1:pzobo-s",
    "table-1:f2sa",
    "table-1:f3sa",
    "table-1:fdehbo",
    "contributions:one-product",
    "contributions:one-hessian-product",
    "results:corollary-1",
    "results:one-hessian-product",
)
@pytest.mark.parametrize(
    ("name", "first", "later"),
    [
        ("FdeHBO", (2, 7, 0, 0), (2, 14, 0, 0)),
        ("FMBO", (2, 3, 1, 1), (2, 6, 2, 2)),
        ("SOBA", (2, 3, 1, 1), (2, 3, 1, 1)),
        ("alternating", (2, 2, 0, 0), (2, 2, 0, 0)),
    ],
)
def test_oracle_calls_of_a_step(name, first, later):
    problem, solver = Quadratic(), SOLVERS[name]()
    state = solver.init(problem)
    for t in range(3):
        with counting() as calls:
            state = solver.step(problem, state)
        assert tuple(vars(calls).values()) == (later if t else first)


@pytest.mark.checks("abstract:rate")
@pytest.mark.parametrize(("name", "draws"), [("FMBO", 6), ("FdeHBO", 6), ("SOBA", 6)])
def test_independent_draws_cost_samples_and_nothing_else(name, draws):
    problem = Quadratic()
    with counting() as shared:
        walk(problem, SOLVERS[name](), 3)
    with counting() as independent:
        walk(problem, SOLVERS[name](independent=True), 3)
    assert independent.samples == 3 * draws
    assert vars(shared) == vars(independent) | {"samples": 6}


@pytest.mark.parametrize("name", SOLVERS)
def test_step_is_pure_and_repeatable(name):
    problem, solver = LogCosh(noise=1.0), SOLVERS[name]()
    state = walk(problem, solver, 3)[-1]
    before = {k: v.clone() for k, v in vars(state).items() if isinstance(v, torch.Tensor)}
    torch.manual_seed(1)
    one = solver.step(problem, state)
    torch.manual_seed(2)  # the global generator plays no part
    two = solver.step(problem, state)
    assert torch.equal(one.x, two.x)
    assert torch.equal(one.y, two.y)
    assert torch.equal(one.v, two.v)
    assert torch.equal(one.rng, two.rng)
    assert not torch.equal(one.rng, state.rng)
    assert one.t == state.t + 1
    assert all(torch.equal(before[k], getattr(state, k)) for k in before)
    with pytest.raises(FrozenInstanceError):
        state.t = 0
    with pytest.raises(FrozenInstanceError):
        solver.alpha = 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["FdeHBO", "FMBO", "SOBA"])
def test_noiseless_quadratic_is_solved_to_the_closed_form(name):
    problem = Quadratic()
    solver = SOLVERS[name](alpha=0.2, beta=0.3, lam=0.3)
    state = walk(problem, solver, 300)[-1]
    torch.testing.assert_close(state.x, problem.minimiser, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(state.y, problem.y_star(problem.minimiser), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(state.v, problem.v_star(problem.minimiser), rtol=1e-8, atol=1e-8)


def test_the_control_goes_where_grad_x_f_alone_sends_it():
    problem = Valley()
    state = walk(problem, SOLVERS["alternating"](alpha=0.2, beta=0.2), 300)[-1]
    assert state.x.item() == pytest.approx(problem.b, abs=1e-6)
    assert problem.hypergradient(state.x).abs() > 1


@pytest.mark.checks("introduction:vanishing")
def test_the_control_stands_still_when_f_depends_on_y_alone():
    problem = Valley(c=0.0)
    states = walk(problem, SOLVERS["alternating"](alpha=0.2, beta=0.2), 50)
    assert all(torch.equal(s.x, states[0].x) for s in states)
    assert problem.hypergradient(states[0].x).abs() > 1


def test_a_schedule_that_goes_bad_later_is_refused_then():
    solver = FMBO(eta=lambda t: 0.5 * t)
    with pytest.raises(ValueError, match=r"eta at t = 3 must be a number in \[0, 1\], got 1.5"):
        walk(Quadratic(), solver, 5)


@pytest.mark.parametrize("name", ["FMBO", "SGHA"])
def test_the_first_v_is_projected_too(name):
    problem = Quadratic()
    far = torch.full_like(problem.b, 10.0)
    assert SOLVERS[name](r_v=1.0).init(problem, v=far).v.norm().item() == pytest.approx(1.0)
    assert torch.equal(SOLVERS[name](r_v=100.0).init(problem, v=far).v, far)


def test_a_field_of_a_user_need_not_say_what_it_allows():
    @method
    class Own(SOBA):
        delta: Any = 0.01
        report: Any = print

    assert Own().value("delta", 3) == Own(delta=lambda t: 0.01).value("delta", 3) == 0.01
    assert run(Quadratic(), Own(), steps=3, progress=False).history.Hv.iloc[-1] == 0
    assert "report" not in Own.__doc__
