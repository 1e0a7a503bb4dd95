"""The bookkeeping of Theorems 1 and 2: the seven coefficients of the potential, printed and corrected (T15)."""

import dataclasses
import itertools
from collections import Counter
from math import exp, isclose, log, log1p, tanh

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bilevel_book.theory import statements
from bilevel_book.theory.check import sq
from bilevel_book.theory.constants import (
    PARTS,
    ProblemConstants,
    ProofConstants,
    balances,
    bound,
    coefficients,
    conditions,
    contributions,
    corrected,
    large_enough,
    printed,
    printed_y_price,
    random_constants,
)
from bilevel_book.theory.examples import coins
from bilevel_book.walk import walk
from bilevel_core import FMBO, FdeHBO
from bilevel_core.counting import counting
from theory.instances import powers, steps

ROUNDING = 1e-13  # of a balance, which is free of units
H, Y, V, STEP, E_F, E_G, E_R = coefficients(ProblemConstants(), corrected(ProblemConstants()))
METHODS = ("FMBO", "FdeHBO")


@st.composite
def constants_of_problems(draw):
    def power(low, high):
        return 10 ** draw(st.floats(low, high))

    mu = power(-3, 2)
    L = mu * power(0, 3)
    rest = {name: power(-3, 3) for name in ("L_gyy", "L_gxy", "L_fx", "L_fy", "C_fy")}
    return ProblemConstants(mu=mu, L=L, C_gxy=(L * power(-3, 0)) ** 2, **rest)


@pytest.fixture(scope="module")
def family():
    generator = torch.Generator().manual_seed(0)
    return [random_constants(generator) for _ in range(2000)]


@pytest.mark.slow  # many constants
@pytest.mark.checks("lm:mergeV", "lm:mergeV_free", "results:constants", "results:theorem-2")
@given(constants_of_problems(), st.sampled_from(METHODS), st.integers(0, 10**9), st.sampled_from([1.0, 7.0, 1e6]))
@settings(max_examples=400)
def test_no_coefficient_is_positive_with_the_corrected_constants_and_any_larger_w(p, method, t, larger):
    c = corrected(p, method)
    c = dataclasses.replace(c, w=larger * c.w)
    assert max(conditions(p, c).values()) < 1 + 1e-9
    assert max(balances(p, c, t).values()) < ROUNDING


def shares(p, free):
    """What each maximum gives a part of V at most, and what holds it at least, as w grows."""
    B, C, per = (1 + free) * p.Lam**2, p.C_gxy, 1 / p.L_mu**2
    step = B / (p.L_mu * (p.mu + p.L))
    return {
        H: {"Phi": -1 / 2, "K_1": 1 / 32, "K_2": 1 / 32, "cbar_f": 1 / 16, "cbar_g": 1 / 16},
        Y: {"Phi": 2 * B, "K_1": -2 * B},
        V: {"Phi": 2 * C, "K_2": -4 * C, "cbar_f": C, "cbar_R": C},
        STEP: {"K_1": -8 * step, "K_2": step, "cbar_f": step, "cbar_g": step},
        E_F: {"Phi": 1, "cbar_f": -2},
        E_G: {"K_1": 8 * B * per, "cbar_g": -22 * B * per},
        E_R: {"K_2": 16 * C * per, "cbar_f": C * per / 4, "cbar_R": -48 * C * per},
    }


@pytest.mark.parametrize("free", [False, True])
def test_each_part_takes_its_share_on_some_problem_and_never_more(free, family):
    constants = [dataclasses.replace(corrected(p, METHODS[free]), w=1e60) for p in family]
    tables = [(contributions(p, c), shares(p, free)) for p, c in zip(family, constants, strict=True)]
    for quantity, parts in tables[0][1].items():
        for part, share in parts.items():
            used = [table[quantity][part] / most[quantity][part] for table, most in tables]
            assert (max if share > 0 else min)(used) == pytest.approx(1, rel=0.01), (quantity, part)


def test_momentum_forgets_at_least_one_over_3_L_f():
    p = ProblemConstants(mu=2.0, L=3.0, L_gyy=0.3, L_gxy=0.7, C_gxy=4e-4, L_fx=0.02, L_fy=0.005, C_fy=0.01)
    for make, free in itertools.product((corrected, printed), (False, True)):
        c, twice, small = make(p, METHODS[free]), 1 + free * (make is printed), 1 / (3 * p.L_f)
        B, in_g, in_R = (p.B_printed, 17, 16) if make is printed else ((1 + free) * p.Lam**2, 11, 24)
        assert c.c_f == pytest.approx(twice * (small + c.cbar_f))
        assert c.c_g == pytest.approx(small + 32 * 9 * c.c_beta**2 + in_g * B / p.L_mu**2 * c.cbar_g)
        moves = twice * 48 * 9 * c.c_lam**2
        assert c.c_R == pytest.approx(twice * (small + moves + in_R * p.C_gxy / p.L_mu**2 * c.cbar_R))
        assert (c.cbar_f, c.cbar_g) == pytest.approx((96 * p.L_F2, 256 * 9))  # the first terms of the maxima ...
    assert printed(p).w == 2
    steep = dataclasses.replace(p, L_gyy=0.01, L_gxy=0.01, C_gxy=0.16, L_fx=1.0, L_fy=0.01)
    q = 512 * steep.L_y**2 * 5 / p.L_mu
    assert printed(steep).cbar_f == pytest.approx(48 * steep.L_f**2 * q)  # ... and others that are seldom the largest
    flat = dataclasses.replace(p, L=2.0, L_gxy=0.0, L_fy=1e-6, C_fy=1e-6)
    assert printed(flat, "FdeHBO").cbar_R == pytest.approx(2 * 768 * flat.M)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("2 <= w", {}),
        ("alpha <= 1/(3 L_f)", {}),
        ("beta <= 1/(mu + L)", {"c_beta": 100.0}),
        ("lam <= 1/(mu + L)", {"c_lam": 100.0}),
        *(("eta <= 1", {name: 1e4}) for name in ("c_f", "c_g", "c_R")),
    ],
)
def test_smallest_w_meets_one_condition_with_equality(name, change):
    p = ProblemConstants(L_fx=0.1, L_fy=0.1, C_fy=1e-6) if name == "2 <= w" else ProblemConstants()
    c = dataclasses.replace(corrected(p), **dict.fromkeys(("c_beta", "c_lam", "c_f", "c_g", "c_R", "w"), 0.0))
    found = conditions(p, large_enough(p, dataclasses.replace(c, **change)))
    assert found[name] == max(found.values()) == pytest.approx(1)


@pytest.mark.parametrize("t", [0, 1, 5])
def test_coefficients_of_the_errors_are_those_of_their_recursions(t):
    p = ProblemConstants()
    c = dataclasses.replace(corrected(p), c_beta=0.1, c_lam=0.2, c_f=0.3, c_g=0.4, c_R=0.5, w=10.0)
    now, before, table = c.alpha(t), c.alpha(max(t - 1, 0)), contributions(p, c, t)
    for name, eta, rise in (("f", 0.3, 0.0), ("g", 0.4, 32 * p.L**2 * 0.1**2), ("R", 0.5, 48 * p.L**2 * 0.2**2)):
        kept = (1 - eta * now**2) ** 2 * (1 + rise * now**2)
        found = table[f"|e^{name}|^2"][f"cbar_{name}"] * getattr(c, f"cbar_{name}")
        assert found == pytest.approx((kept / now - 1 / before) / now)
    for default in (contributions, coefficients, balances):
        assert default(p, c) == default(p, c, 1000)


def test_constants_that_mean_nothing_are_refused():
    p = ProblemConstants()
    for wrong in ({"mu": 0.0}, {"mu": 3.0}, {"L_fx": -1.0}):
        with pytest.raises(ValueError, match=r"need 0 < mu <= L|cannot be negative"):
            dataclasses.replace(p, **wrong)
    for options in ({"beta": 0.9}, {"lam": 0.9}, {"method": "SOBA"}):
        with pytest.raises(ValueError, match=r"at least 1|FMBO or FdeHBO"):
            printed(p, **options)
    for zero, make in itertools.product(("C_gxy", "L_fy"), (corrected, printed)):
        with pytest.raises(ValueError, match="C_gxy > 0 and L_fy > 0"):
            make(dataclasses.replace(p, **{zero: 0.0}))


@pytest.mark.checks("lm:mergeV", "lm:mergeV_free")
@given(constants_of_problems(), st.sampled_from(METHODS))
@settings(max_examples=200)
def test_coefficient_of_v_is_exactly_2C_for_every_large_printed_c_lam(p, method):
    # As printed, c_lam has a lower bound only. Once the maxima in cbar_f and cbar_R are their c_lam terms, it is 2 C.
    c = large_enough(p, printed(p, method, lam=1e9))
    assert isclose(coefficients(p, c)[V], 2 * p.C_gxy, rel_tol=1e-9)


def test_how_often_printed_constants_fail_on_a_family(family):
    fails, unmet, hidden = Counter(), Counter(), 0
    for p in family:
        unmet.update(name for name, value in conditions(p, printed(p)).items() if value > 1 + 1e-9)
        c = large_enough(p, printed(p))  # give the missing conditions for free
        fails.update(name for name, value in balances(p, c).items() if value > ROUNDING)
        hidden += balances(p, c, y_price=printed_y_price(p))[Y] > ROUNDING  # with the printed function-value lemma
        assert max(balances(p, corrected(p)).values()) < ROUNDING
    assert (fails, hidden) == ({V: 2000, Y: 1642, STEP: 657, E_G: 345}, 1026)
    assert [unmet[name] for name in conditions(p, c)] == [0, 76, 74, 1097, 1784]


def test_printed_bound_on_lam_is_a_curvature_and_allows_a_step_that_diverges():
    p = ProblemConstants(mu=10.0, L=10.0, C_gxy=100.0)
    c = printed(p)
    lam = c.c_lam * (c.w + 1) ** (-1 / 3)  # the bound with equality
    assert isclose(lam, 2 * p.mu * p.L / (p.mu + p.L), rel_tol=1e-9)
    assert isclose((1 - lam * p.mu) ** 2, 9801, rel_tol=1e-6)  # what one step does to |v - v*|^2 when mu = L
    c = corrected(p)
    assert c.c_lam * c.alpha(0) * (p.mu + p.L) <= 1


def test_printed_w_lets_eta_exceed_1():
    p = ProblemConstants()
    assert conditions(p, printed(p))["eta <= 1"] > 4e4
    assert conditions(p, printed(p))["lam <= 1/(mu + L)"] == pytest.approx(4, rel=1e-6)


# The counterexample to lm:mergeV: g = y^2/2 - 20 x y, f = log cosh y, no noise, so all errors e are 0 for ever.
SLOPE = 20.0
EXAMPLE = ProblemConstants(
    mu=1.0, L=(1 + SLOPE**2) ** 0.5, L_gyy=0.0, L_gxy=0.0, C_gxy=SLOPE**2, L_fx=0.0, L_fy=1.0, C_fy=1.0
)


def change_of_potential(c, y_star=-0.2, y=0.2):
    """(V_1 - V_0) / alpha_0 and -|grad Phi|^2 / 2 at x = y*/20, y, v = v*(x, y)."""

    def log_cosh(u):
        return torch.nn.functional.softplus(torch.tensor(2 * u, dtype=torch.float64)).item() - u - log(2)

    alpha, x, v = c.alpha(0), y_star / SLOPE, tanh(y)
    new_x = x - alpha * SLOPE * v
    new_y = y - c.c_beta * alpha * (y - SLOPE * x)
    new_v = v - c.c_lam * alpha * (v - tanh(y))
    change = log_cosh(SLOPE * new_x) - log_cosh(SLOPE * x)
    change += c.K_1 * ((new_y - SLOPE * new_x) ** 2 - (y - SLOPE * x) ** 2)
    change += c.K_2 * ((new_v - tanh(new_y)) ** 2 - (v - tanh(y)) ** 2)
    return change / alpha, -((SLOPE * tanh(y_star)) ** 2) / 2


@pytest.mark.checks("lm:mergeV", "lm:mergeV_free", "results:constants")
@pytest.mark.parametrize(("beta", "rise"), [(1, 14.0), (10, 13.0)])
@pytest.mark.parametrize("larger", [1, 100, 1e4])
def test_potential_rises_where_the_printed_lemma_says_that_it_falls(beta, rise, larger):
    c = large_enough(EXAMPLE, printed(EXAMPLE, beta=beta))
    found, claimed = change_of_potential(dataclasses.replace(c, w=larger * c.w))
    assert found == pytest.approx(rise, abs=0.05)
    assert claimed == pytest.approx(-7.79, abs=0.005)


@given(st.floats(-1, 1), st.floats(-1, 1))
@settings(max_examples=100)
def test_potential_with_corrected_constants_falls_as_claimed_in_the_same_example(y_star, y):
    found, claimed = change_of_potential(corrected(EXAMPLE), y_star, y)
    assert found <= claimed + 1e-4  # rounding: alpha is about 1e-9


@pytest.mark.checks("th:main", "experiments:validation")
def test_for_unit_constants_the_theorem_says_nothing_before_1e20_steps():
    p = ProblemConstants()
    c = corrected(p)
    assert c.y_price == 32
    assert c.w == pytest.approx(1.6e15, rel=0.03)
    assert bound(p, c, 1e20) > 1
    assert bound(p, c, 1e23) < 1
    slope = log(bound(p, c, 1e30) / bound(p, c, 1e29)) / log(10)
    assert slope == pytest.approx(-2 / 3, abs=0.04)  # the rate is there, very late, up to the logarithm


def test_bound_adds_twice_the_gap_and_12_squares_of_the_bias():
    p = ProblemConstants(L_gyy=0.3, C_fy=2.0)
    c, T, delta = corrected(p, "FdeHBO"), 1e20, 0.1
    assert bound(p, c, T, gap=3e9) - bound(p, c, T, gap=1e9) == pytest.approx(4e9 * (c.w + T) ** (1 / 3) / T, rel=1e-6)
    assert bound(p, c, T, delta=delta) - bound(p, c, T) == pytest.approx(12 * p.bias(delta) ** 2)
    assert c.y_price == 2 * corrected(p, "FMBO").y_price == 4 * p.Lam**2
    c = dataclasses.replace(c, c_f=4, cbar_f=4, c_g=3, cbar_g=4.5, c_R=5, cbar_R=10, w=2)
    assert bound(p, c, 6) == pytest.approx(8 ** (1 / 3) / 6 * (2 + (16 + 8 + 20) * log(7)))


@given(steps(), powers(-1, 1))
@settings(max_examples=10)
def test_contributions_are_the_terms_of_the_lemmas(step, weight):
    """At eta = 0, for a step of the same sizes: Phi and the three errors exactly, y and v at most."""
    problem, (at, _, h, *sizes) = step
    k, t = problem.constants, 1000
    alpha, beta, lam = (min(max(size, 1e-3), 0.1, 0.9 / (k.mu + k.L)) for size in sizes)
    step = statements.take_step(problem, at, h, alpha, beta, lam)
    c = ProofConstants(
        K_1=weight, K_2=2 * weight, c_beta=beta / alpha, c_lam=lam / alpha, cbar_f=3 * weight, cbar_g=weight,
        cbar_R=5 * weight, c_f=0, c_g=0, c_R=0, w=alpha**-3 - t, y_price=2 * k.Lam**2,
    )  # fmt: skip
    e, y_gap, v_gap = statements.errors(problem, step), at.y - problem.y_star(at.x), at.v - problem.v_star(at.x, at.y)
    squares = [sq(z) for z in (h.x, y_gap, v_gap, problem.g_y(at.x, at.y).mean(0), e.x, e.y, e.v)]
    table = contributions(k, c, t)
    found = {part: alpha * sum(s * table[q][part] for s, q in zip(squares, table, strict=True)) for part in PARTS}

    descent = statements.function_descent(problem, step).bound - problem.objective(at.x).item()
    assert found["Phi"] == pytest.approx(descent + alpha / 2 * sq(problem.hypergradient(at.x)), rel=1e-6)
    for lemma, error, part in (
        (statements.upper_error, e.x, "cbar_f"),
        (statements.lower_error, e.y, "cbar_g"),
        (statements.helper_error, e.v, "cbar_R"),
    ):
        change = lemma(problem, step, 0.0).bound / alpha - sq(error) / c.alpha(t - 1)
        assert found[part] == pytest.approx(change / getattr(c, part), rel=1e-6, abs=1e-9)
    for lemma, gap, part, size in (
        (statements.lower_descent, y_gap, "K_1", beta),
        (statements.helper_descent, v_gap, "K_2", lam),
    ):
        rate = size * k.L_mu  # the weights make (1 + gamma) (1 + delta) (1 - 2 rate) = 1 - rate / 2
        descended = lemma(problem, step, gamma=rate / 2 / (1 - rate), delta=rate / (1 - 2 * rate)).bound
        assert getattr(c, part) * (descended - sq(gap)) <= found[part] + 1e-6 * abs(found[part]) + 1e-9


def steps_for(eps, method, power_of_delta=-1 / 3, **noise):
    """The T at which the bound for unit constants is eps, by bisection in log T; delta is a power of T."""
    p = ProblemConstants()
    c = corrected(p, method)
    low, high = log(c.w), log(1e60)
    for _ in range(100):
        T = exp((low + high) / 2)
        too_few = bound(p, c, T, delta=T**power_of_delta, **noise) > eps
        low, high = (log(T), high) if too_few else (low, log(T))
    return T


def samples(solver, steps):
    with counting() as calls:
        walk(coins(), solver, steps)
    return calls.samples


@pytest.mark.checks("Co:complexitytribo", "co:hftribo")
@pytest.mark.parametrize("method", [FMBO, FdeHBO])
def test_samples_for_a_mean_of_eps_grow_like_eps_to_minus_three_halves_up_to_a_logarithm(method):
    w = corrected(ProblemConstants(), method.__name__).w
    few, many = (steps_for(eps, method.__name__) for eps in (1e-6, 1e-12))
    logarithms = log1p(many / w) / log1p(few / w)
    assert many / few == pytest.approx((1e6 * logarithms) ** 1.5, rel=1e-6)
    assert samples(method(), 50) == 10 * samples(method(), 5) > 0  # a fixed number in each step


@pytest.mark.checks("co:hftribo")
@pytest.mark.parametrize(("power_of_delta", "exponent"), [(-1 / 3, 1.5), (-1 / 4, 2.0)])
def test_difference_step_may_fall_like_T_to_minus_one_third_and_no_slower(power_of_delta, exponent):
    few, many = (steps_for(eps, "FdeHBO", power_of_delta, sigma2=0.0) for eps in (1e-12, 1e-18))
    assert log(many / few) / log(1e6) == pytest.approx(exponent, abs=0.01)
