"""The methods that the paper does not have, each against its own truth: limits, identities, means, paths."""

from dataclasses import replace

import pytest
import torch
from torch.utils._pytree import tree_leaves

from bilevel_book.methods import PAPER, SOLVERS
from bilevel_book.methods.f2sa_p import nodes, weights
from bilevel_core import FMBO, SOBA
from bilevel_core.directions import project
from bilevel_core.problems import Quadratic
from book.methods.limits import STEP, limit, penalty, series
from core.families import LogCosh, walk

SLOW = {"alpha": 0.1, "beta": 0.05}
LATER = [name for name in SOLVERS if name not in (*PAPER, "alternating", "AID-CG")]


# Where they end, on a quadratic without noise


def inverse(problem):
    return torch.linalg.inv(problem.A)


def difference(problem, ell, p):
    """sum_j c_j j (A + j I / ell)^-1, what the y_j make of A^-1."""
    I = torch.eye(len(problem.A), dtype=problem.A.dtype)
    return sum(c * j * torch.linalg.inv(problem.A + j * I / ell) for j, c in zip(nodes(p), weights(p, 1), strict=True))


def envelope(problem, ell, width):
    """What MEHA makes of A^-1: at rest z - y = -K (y - y*), and y - c + ell A K (y - y*) = 0."""
    I = torch.eye(len(problem.A), dtype=problem.A.dtype)
    K = width * problem.A @ torch.linalg.inv(I + width * problem.A)
    return ell * K @ torch.linalg.inv(I + ell * problem.A @ K)


@pytest.mark.slow  # until they stand still
@pytest.mark.parametrize(
    ("name", "options", "steps", "seen"),
    [
        ("MA-SOBA", STEP | {"lam": 0.3, "eta": 0.5}, 120, inverse),
        ("S-TFBO", {}, 400, inverse),
        ("SRBA", STEP | {"lam": 0.3, "period": 7}, 120, inverse),
        ("SPABA", STEP | {"lam": 0.3, "chance": 0.1}, 120, inverse),
        ("F2SA-p", {"alpha": 0.3, "beta": 0.03, "multiplier": 8.0, "inner": 2}, 120, lambda p: difference(p, 8.0, 2)),
        (
            "F2SA-p",
            {"alpha": 0.3, "beta": 0.06, "multiplier": 4.0, "p": 3, "inner": 2},
            120,
            lambda p: difference(p, 4.0, 3),
        ),
        (
            "SGHA",
            {"alpha": 0.1, "beta": 0.15, "lam": 0.1, "damp": 0.2},
            400,
            lambda p: torch.linalg.inv(p.A + 0.2 * inverse(p)),
        ),
        ("MEHA", SLOW | {"gamma": 0.3, "multiplier": 8.0, "width": 1.5}, 500, lambda p: envelope(p, 8.0, 1.5)),
    ],
)
def test_without_noise_each_ends_at_its_own_limit(name, options, steps, seen):
    problem = Quadratic(seed=2, dim_y=6)
    S = seen(problem)
    state = walk(problem, SOLVERS[name](**options), steps)
    torch.testing.assert_close(state.x, limit(problem, S), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(state.v, S @ (problem.y_star(state.x) - problem.c), rtol=1e-5, atol=1e-5)
    biased = not torch.allclose(S, inverse(problem))
    assert ((limit(problem, S) - problem.minimiser).norm() > 1e-3) == biased


def test_a_wide_envelope_is_the_penalty_of_f2sa():
    problem = Quadratic(seed=2)
    torch.testing.assert_close(envelope(problem, 8.0, 1e9), penalty(problem, 8.0))


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5])
def test_the_difference_in_the_price_has_order_p(p):
    """Its weights are exact for polynomials as far as they can be; halving 1 / ell divides the bias by 2^p."""
    j, at_0, c = torch.tensor(nodes(p)).double(), weights(p, 0), weights(p, 1)
    for degree in range(len(j)):
        assert (at_0 @ j**degree).item() == pytest.approx(float(degree == 0), abs=1e-12)
        assert (c @ j**degree).item() == pytest.approx(float(degree == 1), abs=1e-12)
    problem = Quadratic(seed=2)
    bias, half = ((difference(problem, ell, p) - inverse(problem)).norm() for ell in (60.0, 120.0))
    assert (bias / half).item() == pytest.approx(2**p, rel=0.1)


def test_the_differences_are_those_of_the_authors():
    """From their code: p = 3 and p = 5 over the numbers next to 0."""
    assert (nodes(1), nodes(2), nodes(3)) == ([0, 1], [-1, 1], [-1, 0, 1, 2])
    assert weights(2, 1).tolist() == pytest.approx([-1 / 2, 1 / 2])
    assert weights(3, 1).tolist() == pytest.approx([-1 / 3, -1 / 2, 1, -1 / 6])
    assert weights(5, 1).tolist() == pytest.approx([1 / 20, -1 / 2, -1 / 3, 1, -1 / 4, 1 / 30])


@pytest.mark.slow
@pytest.mark.parametrize("inner", [1, 3])
def test_bome_comes_to_a_neumann_sum_of_inner_terms_as_its_steps_shrink(inner):
    problem = Quadratic(seed=2, dim_y=6)
    S = series(problem, inner - 1, 0.2)
    state = None
    for step in (0.1, 0.03, 0.01):
        solver = SOLVERS["BOME"](alpha=step, beta=step, gamma=0.2, inner=inner)
        state = solver.init(problem, 0, **{} if state is None else {"x": state.x, "y": state.y})
        for _ in range(200):
            state = solver.step(problem, state)
        assert (state.x - limit(problem, S)).norm() < 0.7 * step
    assert (limit(problem, S) - problem.minimiser).norm() > 0.2


def test_bome_lets_g_come_down_as_fast_as_its_barrier_says():
    """<d, q> >= barrier ||q||^2, an equality where ell > 0; where ell = 0, d is grad f."""
    problem, seen = LogCosh(), set()
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        x, y = (3 * torch.randn(n, generator=generator, dtype=torch.float64) for n in (3, 4))
        solver = SOLVERS["BOME"](alpha=1.0, beta=1.0, gamma=0.2, inner=2, barrier=0.02)
        after, (upper, lower) = solver.step(problem, solver.init(problem, x=x, y=y)), problem.full()
        d_f = torch.cat((problem.f_x(x, y, upper), problem.f_y(x, y, upper)))
        q = torch.cat((problem.g_x(x, y, lower) - problem.g_x(x, after.z, lower), problem.g_y(x, y, lower)))
        d = torch.cat((x - after.x, y - after.y))
        free = bool(d_f @ q > 0.02 * q @ q)
        seen.add(free)
        torch.testing.assert_close(d if free else d @ q, d_f if free else 0.02 * q @ q)
    assert seen == {True, False}


def test_bome_goes_down_f_where_g_is_at_rest():
    problem, solver = Quadratic(), SOLVERS["BOME"](alpha=0.1, beta=0.1)
    problem.b = torch.zeros(10).double()
    at_rest = solver.init(problem, x=torch.zeros(5).double(), y=problem.b)  # grad_y g is 0 there, without rounding
    after = solver.step(problem, at_rest)
    torch.testing.assert_close(after.y, 0.1 * problem.c)
    assert not after.v.any()


# What contains what


def same(one, two, parts="xyv"):
    return all(torch.equal(getattr(one, part), getattr(two, part)) for part in parts)


def test_ma_soba_without_an_average_is_soba():
    problem = LogCosh(noise=0.5)
    assert same(walk(problem, SOLVERS["MA-SOBA"](eta=1.0), 6), walk(problem, SOBA(), 6))
    assert not same(walk(problem, SOLVERS["MA-SOBA"](eta=0.5), 6), walk(problem, SOBA(), 6), "x")


def test_srba_and_spaba_are_one_method_at_the_ends():
    problem, steps = LogCosh(noise=0.5), {"alpha": 0.1, "beta": 0.2, "lam": 0.2}
    always, never = (walk(problem, SOLVERS["SPABA"](**steps, chance=chance), 6) for chance in (1.0, 0.0))
    assert same(always, walk(problem, SOLVERS["SRBA"](**steps, period=1), 6))
    assert same(always, walk(LogCosh(), SOBA(**steps), 6))  # all the data is no noise
    calm = walk(LogCosh(), SOLVERS["SPABA"](**steps, chance=0.0), 6)
    kept = walk(LogCosh(), FMBO(**steps, eta=0.0, r_v=float("inf")), 6)
    assert same(calm, kept)
    assert not same(never, calm)


def test_spaba_tosses_its_coin_at_every_step():
    problem, solver = LogCosh(noise=0.5), SOLVERS["SPABA"](chance=0.3)
    generator = torch.Generator().manual_seed(1)
    tosses = [solver.fresh(1, generator) for _ in range(1000)]
    assert sum(tosses) / 1000 == pytest.approx(0.3, abs=4 * (0.21 / 1000) ** 0.5)
    state, looks = solver.init(problem), []
    for _ in range(40):
        state = solver.step(problem, state)
        at, full = state.before, problem.full()
        looks.append(torch.allclose(state.h.y, problem.g_y(at.x, at.y, full.lower), rtol=1e-12, atol=1e-12))
    assert looks[0]
    assert 3 < sum(looks) < 25


def test_f2sa_of_order_one_is_f2sa():
    """Without noise, and with the step of z in the units of the other."""
    problem, ell = LogCosh(), 6.0
    one = walk(problem, SOLVERS["F2SA-p"](p=1, alpha=0.1, beta=0.02, multiplier=ell, inner=3), 8)
    two = walk(problem, SOLVERS["F2SA"](alpha=0.1, beta=0.02, gamma=0.02 * ell, multiplier=ell, inner=3), 8)
    torch.testing.assert_close(one.x, two.x, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(one.rows, torch.stack((two.z, two.y)), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(one.v, two.v, rtol=1e-9, atol=1e-9)
    assert torch.equal(one.y, one.rows[0])


# What a draw means


@pytest.mark.slow  # a mean needs its draws
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("MA-SOBA", {"eta": 0.5}),
        ("SRBA", {}),
        ("SPABA", {"chance": 0.0}),
        ("F2SA-p", {"inner": 1, "beta": 1e-13}),  # or its last draw would meet the noise of the first
        ("SGHA", {}),
        ("MEHA", {"gamma": 1e-13}),
    ],
)
def test_the_mean_of_a_step_is_the_step_without_noise(name, options):
    """Of x, from a state with a past; the draws suffice to see a fifth of the step."""
    noisy, calm = (Quadratic(noise=noise, dim_x=3, dim_y=4) for noise in (0.2, 0.0))
    solver = SOLVERS[name](**options)
    state = walk(noisy, solver, 2)
    generator, found = torch.Generator().manual_seed(1), []
    for _ in range(400):
        torch.rand(1, generator=generator)
        after = solver.step(noisy, replace(state, rng=generator.get_state()))
        generator.set_state(after.rng)
        found.append(after.x)
    stack, expected = torch.stack(found), solver.step(calm, state).x
    error = stack.std(0) / 400**0.5
    assert ((stack.mean(0) - expected).abs() < 4 * error).all()
    assert error.norm() < 0.05 * (expected - state.x).norm()


# Paths, a second time from the formulas of the derivatives


def three(problem, x, y, v, draw):
    d_v = problem.H(x, y, draw.lower) @ v - problem.f_y(x, y, draw.upper)
    return problem.g_y(x, y, draw.lower), d_v, problem.f_x(x, y, draw.upper) - problem.J(x, y, draw.lower) @ v


def close(state, x, y, v):
    found = (state.x, state.y, state.v)
    return all(torch.allclose(one, other, rtol=1e-9, atol=1e-9) for one, other in zip(found, (x, y, v), strict=True))


def test_ma_soba_is_its_formulas():
    problem, generator = LogCosh(noise=0.5), torch.Generator().manual_seed(0)
    x, y, v, h = problem.x0, problem.y0, torch.zeros(4).double(), None
    for _ in range(8):
        d_y, d_v, d_x = three(problem, x, y, v, problem.sample(generator))
        h = d_x if h is None else 0.7 * h + 0.3 * d_x
        x, y, v = x - 0.05 * h, y - 0.2 * d_y, v - 0.1 * d_v
    assert close(walk(problem, SOLVERS["MA-SOBA"](alpha=0.05, beta=0.2, lam=0.1, eta=0.3), 8), x, y, v)


def test_s_tfbo_is_its_formulas():
    problem, generator = LogCosh(noise=0.5), torch.Generator().manual_seed(0)
    x, y, v, (a, b, c) = problem.x0, problem.y0, torch.zeros(4).double(), [0.5**2] * 3
    for _ in range(8):
        d_y, d_v, d_x = three(problem, x, y, v, problem.sample(generator))
        a, b, c = a + (d_x**2).sum(), b + (d_y**2).sum(), c + (d_v**2).sum()
        y, v, x = y - d_y / b**0.5, v - d_v / max(b, c) ** 0.5, x - 0.7 * d_x / (a * max(b, c)) ** 0.5
    assert close(walk(problem, SOLVERS["S-TFBO"](alpha=0.7, first=0.5), 8), x, y, v)


def test_srba_is_its_formulas():
    problem, generator = LogCosh(noise=0.5), torch.Generator().manual_seed(0)
    now = before = (problem.x0, problem.y0, torch.zeros(4).double())
    h = None
    for t in range(8):
        if t % 3 == 0:
            h = three(problem, *now, problem.full())
        else:
            draw = problem.sample(generator)
            here, there = three(problem, *now, draw), three(problem, *before, draw)
            h = [past + a - b for past, a, b in zip(h, here, there, strict=True)]
        before, (x, y, v) = now, now
        now = x - 0.05 * h[2], y - 0.2 * h[0], v - 0.1 * h[1]
    assert close(walk(problem, SOLVERS["SRBA"](alpha=0.05, beta=0.2, lam=0.1, period=3), 8), *now)


def test_sgha_is_its_formulas():
    """With delta so small that the differences are products; its r_v is reached."""
    problem, generator = LogCosh(noise=0.5), torch.Generator().manual_seed(0)
    x, y, v = problem.x0, problem.y0, torch.zeros(4).double()
    x_slow, y_slow, norms = x, y, []
    for _ in range(8):
        d_y, d_v, d_x = three(problem, x, y, v, problem.sample(generator))
        x, y, v = (
            x - 0.05 * (d_x + 0.7 * (x - x_slow)),
            y - 0.2 * (0.7 * (y - y_slow) - d_v),
            project(v - 0.3 * (d_y + 0.1 * v), 2.0),
        )
        x_slow, y_slow = x_slow + 0.4 * (x - x_slow), y_slow + 0.4 * (y - y_slow)
        norms.append(v.norm().item())
    options = {"alpha": 0.05, "beta": 0.2, "lam": 0.3, "hold": 0.7, "damp": 0.1, "follow": 0.4, "r_v": 2.0}
    state = walk(problem, SOLVERS["SGHA"](**options, delta=1e-4), 8)
    for found, expected in ((state.x, x), (state.y, y), (state.v, v), (state.slow.x, x_slow), (state.slow.y, y_slow)):
        torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-7)
    assert norms[0] < 1.5 < norms[-1] == pytest.approx(2.0)


def test_meha_is_its_formulas():
    problem, generator = LogCosh(noise=0.5), torch.Generator().manual_seed(0)
    x, y = problem.x0, problem.y0
    z = y
    for t in range(8):
        ell, (upper, lower) = 2.0 + 0.5 * t, problem.sample(generator)
        z = z - 0.2 * (problem.g_y(x, z, lower) + (z - y) / 1.5)
        pull = problem.g_x(x, y, lower) - problem.g_x(x, z, lower)
        x = x - 0.05 * (problem.f_x(x, y, upper) + ell * pull)
        y = y - 0.03 * (problem.f_y(x, y, upper) + ell * (problem.g_y(x, y, lower) - (y - z) / 1.5))
    options = {"alpha": 0.05, "beta": 0.03, "gamma": 0.2, "width": 1.5}
    state = walk(problem, SOLVERS["MEHA"](**options, multiplier=lambda t: 2.0 + 0.5 * t), 8)
    assert close(state, x, y, ell * (z - y))
    torch.testing.assert_close(state.z, z, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("p", "c"), [(2, {-1: -1 / 2, 1: 1 / 2}), (3, {-1: -1 / 3, 0: -1 / 2, 1: 1.0, 2: -1 / 6})])
def test_f2sa_p_is_its_formulas(p, c):
    problem, generator = LogCosh(noise=0.5), torch.Generator().manual_seed(0)
    x, rows = problem.x0, dict.fromkeys(c, problem.y0)
    for t in range(6):
        ell = 6.0 + t
        for _ in range(2):
            upper, lower = problem.sample(generator)
            for j, y in rows.items():
                rows[j] = y - 0.03 * (j * problem.f_y(x, y, upper) + ell * problem.g_y(x, y, lower))
        upper, lower = problem.sample(generator)
        slopes = {j: j * problem.f_x(x, y, upper) + ell * problem.g_x(x, y, lower) for j, y in rows.items()}
        x = x - 0.05 * sum(c[j] * slopes[j] for j in c)
    y = rows[0] if 0 in c else (rows[-1] + rows[1]) / 2
    v = -ell * sum(c[j] * rows[j] for j in c)
    solver = SOLVERS["F2SA-p"](alpha=0.05, beta=0.03, multiplier=lambda t: 6.0 + t, p=p, inner=2)
    assert close(walk(problem, solver, 6), x, y, v)


def test_bome_is_its_formulas():
    problem, generator = LogCosh(noise=0.5), torch.Generator().manual_seed(0)
    x, y, prices = problem.x0, problem.y0, []
    for _ in range(8):
        z = y
        for _ in range(3):
            z = z - 0.2 * problem.g_y(x, z, problem.sample(generator).lower)
        upper, lower = problem.sample(generator)
        q_x, q_y = problem.g_x(x, y, lower) - problem.g_x(x, z, lower), problem.g_y(x, y, lower)
        f_x, f_y = problem.f_x(x, y, upper), problem.f_y(x, y, upper)
        size = q_x @ q_x + q_y @ q_y
        ell = max(0.0, (0.3 - (f_x @ q_x + f_y @ q_y) / size).item())
        v, x, y = ell * (z - y), x - 0.05 * (f_x + ell * q_x), y - 0.1 * (f_y + ell * q_y)
        prices.append(ell)
    solver = SOLVERS["BOME"](alpha=0.05, beta=0.1, gamma=0.2, barrier=0.3, inner=3)
    assert close(walk(problem, solver, 8), x, y, v)
    assert max(prices) > 0


@pytest.mark.parametrize("name", LATER)
def test_single_precision_stays_single(name):
    state = walk(Quadratic(noise=0.5, dtype=torch.float32), SOLVERS[name](), 2)
    parts = [part for part in tree_leaves(list(vars(state).values())) if isinstance(part, torch.Tensor)]
    assert {part.dtype for part in parts} == {torch.float32, torch.uint8}  # the second is that of the generator
