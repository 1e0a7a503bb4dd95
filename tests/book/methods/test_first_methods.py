"""Each baseline against its own truth: where it must end, what its estimate means, what its path is."""

from dataclasses import replace

import pytest
import torch

from bilevel_book.methods import SOLVERS
from bilevel_book.methods.estimates import neumann
from bilevel_core import hypergradient, run
from bilevel_core.implicit import conjugate_gradients
from bilevel_core.problems import Quadratic
from book.methods.limits import STEP, limit, penalty, series
from core.families import LogCosh, walk
from core.my_method import MyMethod

METHODS = dict(SOLVERS) | {"MyMethod": MyMethod}


# Where they end, on a quadratic without noise


@pytest.mark.slow  # until they stand still
@pytest.mark.parametrize(
    ("name", "options", "seen"),
    [
        ("FSLA", STEP | {"lam": 0.3, "eta": 0.5}, lambda p: torch.linalg.inv(p.A)),
        ("AmIGO", STEP | {"lam": 0.3, "Q": 3}, lambda p: torch.linalg.inv(p.A)),
        ("stocBiO", STEP | {"Q": 2, "eta_series": 0.2}, lambda p: series(p, 2, 0.2)),
        ("AID-FP", STEP | {"K": 3, "eta_series": 0.2}, lambda p: series(p, 2, 0.2)),
        ("AID-CG", STEP | {"K": 6, "tol": 1e-12}, lambda p: torch.linalg.inv(p.A)),  # as many as y has entries
        ("reverse", STEP | {"beta": 0.2, "inner": 5, "K": 3}, lambda p: series(p, 2, 0.2)),
        ("MRBO", STEP | {"Q": 2, "eta_series": 0.2, "eta": 0.5}, lambda p: series(p, 2, 0.2)),
        ("VRBO", STEP | {"Q": 2, "eta_series": 0.2, "large": 2}, lambda p: series(p, 2, 0.2)),
        ("BSA", STEP | {"K": 1, "eta_series": 0.2}, lambda p: series(p, 0, 0.2)),
        ("SUSTAIN", STEP | {"K": 1, "eta_series": 0.2, "eta": 0.5}, lambda p: series(p, 0, 0.2)),
        ("F2SA", {"alpha": 0.3, "beta": 0.03, "gamma": 0.3, "multiplier": 8.0}, lambda p: penalty(p, 8.0)),
        ("F3SA", {"alpha": 0.1, "beta": 0.03, "gamma": 0.3, "multiplier": 8.0, "eta": 0.5}, lambda p: penalty(p, 8.0)),
        ("MyMethod", STEP, lambda p: torch.linalg.inv(p.A)),
    ],
)
def test_without_noise_each_ends_at_its_own_limit(name, options, seen):
    problem = Quadratic(seed=2, dim_y=6)
    expected = limit(problem, seen(problem))
    state = walk(problem, METHODS[name](**options), 400 if name == "F3SA" else 120)  # its step of x must be small
    torch.testing.assert_close(state.x, expected, rtol=1e-6, atol=1e-6)
    biased = not torch.allclose(seen(problem), torch.linalg.inv(problem.A))
    assert ((expected - problem.minimiser).norm() > 1e-3) == biased


@pytest.mark.slow
@pytest.mark.parametrize("name", ["F2SA", "F3SA"])
def test_the_penalty_methods_report_v(name):
    problem = Quadratic(seed=2)
    state = walk(problem, SOLVERS[name](alpha=0.3, beta=0.01, gamma=0.3, multiplier=30.0), 200)
    expected = penalty(problem, 30.0) @ (problem.y_star(state.x) - problem.c)
    torch.testing.assert_close(state.v, expected, rtol=1e-5, atol=1e-5)


# What their estimates mean


def averaged_direction(problem, solver, draws):
    """Mean and standard error of the direction of x over many first steps from one point."""
    start = solver.init(problem)
    generator = torch.Generator().manual_seed(1)
    found = []
    for _ in range(draws):
        torch.rand(1, generator=generator)
        after = solver.step(problem, replace(start, rng=generator.get_state()))
        generator.set_state(after.rng)
        found.append((start.x - after.x) / solver.alpha)
    stack = torch.stack(found)
    return stack.mean(0), stack.std(0) / draws**0.5


FROZEN = {"alpha": 1.0, "beta": 1e-13}


@pytest.mark.slow  # a mean needs its draws
@pytest.mark.parametrize(
    ("name", "options", "draws"),
    [
        ("stocBiO", {"inner": 1, "Q": 1}, 400),
        ("AID-FP", {"inner": 1, "K": 2}, 400),
        ("BSA", {"inner": 1, "K": 2}, 1200),  # the length is random too
        ("MRBO", {"Q": 1}, 400),
        ("VRBO", {"Q": 1, "large": 2, "inner": 1}, 200),  # of two each
        ("SUSTAIN", {"K": 2}, 1200),
    ],
)
def test_under_noise_the_mean_of_an_estimate_is_the_neumann_sum(name, options, draws):
    """Neither a sum that is one term shorter nor the whole inverse: the draws suffice to tell them apart."""
    problem = Quadratic(noise=0.4, dim_x=3, dim_y=4)
    mean, error = averaged_direction(problem, SOLVERS[name](**FROZEN, **options, eta_series=0.25), draws)
    inverses = series(problem, 1, 0.25), series(problem, 0, 0.25), torch.linalg.inv(problem.A)
    own, shorter, exact = (problem.rho * problem.x0 - problem.B.T @ inverse @ problem.c for inverse in inverses)
    assert ((mean - own).abs() < 4 * error).all()
    assert ((mean - shorter).abs() > 4 * error).any()
    assert ((mean - exact).abs() > 4 * error).any()


@pytest.mark.slow  # each draw has five inner loops
def test_random_directions_average_to_the_derivative_of_the_inner_loop():
    problem = Quadratic(dim_x=3, dim_y=4)
    beta, T = 0.2, 3
    solver = SOLVERS["PZOBO-S"](alpha=1.0, beta=beta, inner=T, Q=4)
    mean, error = averaged_direction(problem, solver, 400)
    y = torch.zeros(4, dtype=torch.float64)
    for _ in range(T):
        y = y - beta * (problem.A @ y - problem.B @ problem.x0 - problem.b)
    expected = problem.rho * problem.x0 + problem.B.T @ series(problem, T - 1, beta) @ (y - problem.c)
    assert ((mean - expected).abs() < 4 * error).all()
    assert error.max() < 0.02


def test_a_long_neumann_sum_is_what_conjugate_gradients_find():
    problem = Quadratic(seed=1)
    state = walk(problem, SOLVERS["stocBiO"](Q=300, eta_series=0.3, inner=1), 1)
    f_y = state.y - problem.c
    v = conjugate_gradients(lambda p: problem.A @ p, f_y, 1e-13)
    torch.testing.assert_close(state.v, v, rtol=1e-10, atol=1e-10)


def test_aid_cg_follows_the_hypergradient():
    """On the whole data and from y*, its step of x is -alpha grad Phi, if conjugate gradients are not cut short."""
    problem, options = LogCosh(noise=0.5), {"alpha": 1.0, "beta": 1e-13, "inner": 1, "full": True}
    truth = hypergradient(problem, problem.x0, tol=1e-13)
    samples = problem.full()
    f_y, H = problem.f_y(problem.x0, truth.y, samples.upper), problem.H(problem.x0, truth.y, samples.lower)

    def after_a_step(**more):
        solver = SOLVERS["AID-CG"](**options, **more)
        return solver.step(problem, solver.init(problem, y=truth.y))

    whole = after_a_step(K=4, tol=1e-12)  # as many as y has entries
    torch.testing.assert_close(problem.x0 - whole.x, truth.gradient, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(whole.v, truth.v, rtol=1e-10, atol=1e-10)
    one = after_a_step(K=1)
    torch.testing.assert_close(one.v, f_y * (f_y @ f_y) / (f_y @ H @ f_y))  # the best on the line of f_y
    torch.testing.assert_close(
        problem.x0 - one.x,
        problem.f_x(problem.x0, truth.y, samples.upper) - problem.J(problem.x0, truth.y, samples.lower) @ one.v,
    )
    early = after_a_step(K=100, tol=0.2)
    assert 0.01 < (H @ early.v - f_y).norm() / f_y.norm() <= 0.2


def test_aid_cg_stops_where_the_lower_level_bends_down():
    """A saddle gives the last v that was found, not an error: the batch of a step may well be one."""
    problem = Quadratic(dim_x=2, dim_y=3)
    problem.A = torch.diag(torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64))
    solver = SOLVERS["AID-CG"](inner=1, beta=1e-13)
    assert torch.equal(
        solver.step(problem, solver.init(problem, y=problem.c + torch.eye(3).double()[1])).v, problem.b * 0
    )


@pytest.mark.parametrize("K", [1, 4, 7])
def test_aid_fp_and_reverse_agree_on_a_quadratic(K):
    """With the same K and eta = beta, on the whole data: H and J do not depend on y, so neither does the difference."""
    problem, options = Quadratic(noise=0.5), {"alpha": 0.2, "beta": 0.2, "inner": 7, "full": True}
    aid = walk(problem, SOLVERS["AID-FP"](K=K, eta_series=0.2, **options), 30)
    reverse = walk(problem, SOLVERS["reverse"](K=K, **options), 30)
    torch.testing.assert_close(aid.x, reverse.x, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(aid.v, reverse.v, rtol=1e-12, atol=1e-12)


def test_reverse_is_the_derivative_of_the_unrolled_loop():
    problem = LogCosh()
    full, x, y = problem.full(), problem.x0.clone().requires_grad_(), problem.y0
    for _ in range(6):
        g = problem.lower(x, y.requires_grad_(), full.lower) if not y.requires_grad else problem.lower(x, y, full.lower)
        (g_y,) = torch.autograd.grad(g, y, create_graph=True)
        y = y - 0.2 * g_y
    (expected,) = torch.autograd.grad(problem.upper(x, y, full.upper), x)
    state = walk(problem, SOLVERS["reverse"](alpha=1.0, beta=0.2, inner=6, K=6, full=True), 1)
    torch.testing.assert_close(problem.x0 - state.x, expected, rtol=1e-10, atol=1e-10)


# Paths, a second time from the formulas of the derivatives


@pytest.mark.parametrize("eta", [1.0, 0.4])
def test_mrbo_is_its_formulas(eta):
    problem, Q, e = LogCosh(noise=0.5), 2, 0.2
    solver = SOLVERS["MRBO"](alpha=0.1, beta=0.2, eta=eta, Q=Q, eta_series=e)
    generator = torch.Generator().manual_seed(0)
    x, y = problem.x0, problem.y0
    past = before = None

    def estimates(x, y, first, factors):
        r = total = problem.f_y(x, y, first.upper)
        for batch in factors:
            r = r - e * problem.H(x, y, batch) @ r
            total = total + r
        G = problem.f_x(x, y, first.upper) - problem.J(x, y, first.lower) @ (e * total)
        return G, problem.g_y(x, y, first.lower)

    for _ in range(8):
        first = problem.sample(generator)
        factors = [problem.sample(generator).lower for _ in range(Q)]
        h = estimates(x, y, first, factors)
        if past is not None:
            old = estimates(*before, first, factors)
            h = [eta * n + (1 - eta) * (p + n - o) for n, p, o in zip(h, past, old, strict=True)]
        before, past = (x, y), h
        x, y = x - 0.1 * h[0], y - 0.2 * h[1]
    state = walk(problem, solver, 8)
    torch.testing.assert_close(state.x, x, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(state.y, y, rtol=1e-10, atol=1e-10)


def test_sustain_makes_the_same_random_product_at_both_points():
    """Without noise the only randomness is the length k; with it shared, a point that did not move changes nothing."""
    problem = Quadratic()
    solver = SOLVERS["SUSTAIN"](alpha=1e-300, beta=1e-300, eta=0.0, K=8)
    state = solver.step(problem, solver.init(problem))
    first = state.h.x
    for _ in range(10):
        state = solver.step(problem, state)
        torch.testing.assert_close(state.h.x, first, rtol=1e-12, atol=1e-12)


def test_fsla_is_its_formulas():
    problem = LogCosh(noise=0.5)
    generator = torch.Generator().manual_seed(0)
    x, y, v = problem.x0, problem.y0, torch.zeros_like(problem.y0)
    h = x_before = None
    for _ in range(12):
        draw = problem.sample(generator)

        def D(x, y, v, draw=draw):
            return problem.f_x(x, y, draw.upper) - problem.J(x, y, draw.lower) @ v

        y_new = y - 0.2 * problem.g_y(x, y, draw.lower)
        v_new = v - 0.1 * (problem.H(x, y_new, draw.lower) @ v - problem.f_y(x, y_new, draw.upper))
        h = D(x, y_new, v_new) if h is None else D(x, y_new, v_new) + 0.7 * (h - D(x_before, y, v))
        x_before, x, y, v = x, x - 0.05 * h, y_new, v_new
    state = walk(problem, SOLVERS["FSLA"](alpha=0.05, beta=0.2, lam=0.1, eta=0.3), 12)
    torch.testing.assert_close(state.x, x, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(state.v, v, rtol=1e-10, atol=1e-10)


def test_f3sa_is_its_formulas():
    problem, eta = LogCosh(noise=0.5), 0.4
    generator = torch.Generator().manual_seed(0)
    x, y, z = problem.x0, problem.y0, problem.y0
    hs: dict[str, torch.Tensor] = {}
    last = None

    def storm(name, gradient, now, before, batch):
        fresh = gradient(*now, batch)
        hs[name] = fresh if last is None else fresh + (1 - eta) * (hs[name] - gradient(*before, batch))
        return hs[name]

    for t in range(10):
        multiplier = 2.0 + 0.5 * t
        xb, yb, zb = last or (x, y, z)
        first, second = problem.sample(generator), problem.sample(generator)
        z_new = z - 0.2 * storm("z", problem.g_y, (x, z), (xb, zb), first.lower)
        f_y = storm("fy", problem.f_y, (x, y), (xb, yb), first.upper)
        y_new = y - 0.05 * (f_y + multiplier * storm("gy", problem.g_y, (x, y), (xb, yb), first.lower))
        f_x = storm("fx", problem.f_x, (x, y_new), (xb, y), second.upper)
        at_y = storm("gxy", problem.g_x, (x, y_new), (xb, y), second.lower)
        at_z = storm("gxz", problem.g_x, (x, z_new), (xb, z), second.lower)
        last, x, y, z = (x, y, z), x - 0.03 * (f_x + multiplier * (at_y - at_z)), y_new, z_new
    solver = SOLVERS["F3SA"](alpha=0.03, beta=0.05, gamma=0.2, multiplier=lambda t: 2.0 + 0.5 * t, eta=eta)
    state = walk(problem, solver, 10)
    torch.testing.assert_close(state.x, x, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(state.z, z, rtol=1e-9, atol=1e-9)


def test_vrbo_carries_an_exact_estimate_exactly():
    """Without noise every difference is exact, so h is the estimate at the last point, whatever the period."""
    problem = LogCosh()
    for period in (1, 5):
        solver = SOLVERS["VRBO"](alpha=0.05, beta=0.2, period=period, large=1, Q=4)
        state = walk(problem, solver, 7)
        at, samples = state.before, problem.full()
        v = neumann(problem, *at, problem.f_y(*at, samples.upper), (samples.lower,) * 4, solver.eta_series)
        G = problem.f_x(*at, samples.upper) - problem.J(*at, samples.lower) @ v
        torch.testing.assert_close(state.h.x, G, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(state.h.y, problem.g_y(*at, samples.lower), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("coasting", [False, True])
def test_the_two_semantics_of_zero_grad(coasting):
    """One torch Adam holds both copies of y and is stepped for each in turn, as in the released code."""
    problem, solver = LogCosh(noise=0.5), SOLVERS["PZOBO-S"](beta=0.1, released=True, coasting=coasting)
    draws = torch.Generator().manual_seed(3)
    batches, points = [problem.sample(draws).lower for _ in range(6)], (problem.x0, problem.x0 + 0.3)
    copies = [problem.y0.clone().requires_grad_() for _ in points]
    optimiser = torch.optim.Adam(copies, lr=0.1)
    for batch in batches:
        for x, y in zip(points, copies, strict=True):
            optimiser.zero_grad(set_to_none=not coasting)
            y.grad = problem.g_y(x, y.detach(), batch)
            optimiser.step()  # moves the other copy too, unless its gradient is None
    for x, y, perturbed in zip(points, copies, (False, True), strict=True):
        ours = solver.solve(problem, solver.init(problem, x=x), batches, perturbed).y
        torch.testing.assert_close(ours, y.detach(), rtol=1e-12, atol=1e-12)


def test_the_released_pzobo_has_one_adam_for_x_and_a_fresh_one_for_every_inner_loop():
    state = walk(LogCosh(), SOLVERS["PZOBO-S"](released=True, inner=3), 2)
    assert (state.memory["x"].k, state.memory["y"].k) == (2, 3)


@pytest.mark.slow
def test_the_released_pzobo_has_unit_directions_in_each_block(generator):
    problem = Quadratic(dim_x=5)
    problem.x_blocks = (2, 3)
    solver = SOLVERS["PZOBO-S"](released=True)
    u = solver.direction(problem, problem.x0, generator)
    assert u[:2].norm().item() == pytest.approx(1)
    assert u[2:].norm().item() == pytest.approx(1)
    history = run(
        problem, SOLVERS["PZOBO-S"](released=True, alpha=0.05, beta=0.1), steps=60, every=60, progress=False
    ).history
    assert history.objective.iloc[-1] < history.objective.iloc[0]
