"""The bookkeeping of Theorems 1 and 2: the seven coefficients of the potential, printed and corrected (T15)."""

import dataclasses
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


@pytest.mark.parametrize(
    ("name", "factor", "suffers"),
    [("K_1", 0.5, Y), ("K_2", 0.5, V), ("c_f", 0.4, E_F), ("c_R", 0.4, E_R), ("c_g", 0.001, E_G)],
)
def test_corrected_constants_have_little_to_spare(name, factor, suffers):
    p = ProblemConstants()
    c = corrected(p)
    spoiled = dataclasses.replace(c, **{name: factor * getattr(c, name)})
    assert balances(p, spoiled)[suffers] > 0.01
    assert max(abs(balances(p, c)[quantity]) for quantity in (Y, V)) < ROUNDING  # for these nothing is spared


@given(constants_of_problems(), st.sampled_from(METHODS))
@settings(max_examples=200)
def test_coefficient_of_v_is_positive_and_at_most_2C_for_the_printed_constants(p, method):
    found = coefficients(p, large_enough(p, printed(p, method)))[V] / p.C_gxy
    assert -1e-13 < found < 2 + 1e-9
    parts = contributions(p, large_enough(p, printed(p, method)))[V]
    assert isclose(parts["Phi"], -parts["K_2"], rel_tol=1e-12)  # K_2 pays for Phi, and nothing is left ...
    assert parts["cbar_f"] > 0  # ... for these two
    assert parts["cbar_R"] > 0


@pytest.mark.checks("lm:mergeV", "lm:mergeV_free")
@given(constants_of_problems(), st.sampled_from(METHODS))
@settings(max_examples=200)
def test_coefficient_of_v_is_exactly_2C_for_every_large_printed_c_lam(p, method):
    # As printed, c_lam has a lower bound only. Once the maxima in cbar_f and cbar_R are their c_lam terms, it is 2 C.
    c = large_enough(p, printed(p, method, lam=1e9))
    parts = contributions(p, c)[V]
    C = p.C_gxy
    for part, value in (("Phi", 2 * C), ("K_2", -2 * C), ("cbar_f", C), ("cbar_R", C)):
        assert isclose(parts[part], value, rel_tol=1e-9)
    assert isclose(coefficients(p, c)[V], 2 * C, rel_tol=1e-9)


def test_how_often_printed_constants_fail_on_a_family(family):
    fails, unmet, hidden = Counter(), Counter(), 0
    for p in family:
        unmet.update(name for name, value in conditions(p, printed(p)).items() if value > 1 + 1e-9)
        c = large_enough(p, printed(p))  # give the missing conditions for free
        fails.update(name for name, value in balances(p, c).items() if value > ROUNDING)
        hidden += balances(p, c, y_price=printed_y_price(p))[Y] > ROUNDING
        assert max(balances(p, corrected(p)).values()) < ROUNDING
    share = {name: count / len(family) for name, count in (fails + unmet).items()}
    assert fails[V] == len(family)
    assert hidden / len(family) == pytest.approx(0.50, abs=0.04)  # with the printed function-value lemma
    assert share[Y] == pytest.approx(0.81, abs=0.04)  # with the true one
    assert share[STEP] == pytest.approx(0.32, abs=0.04)
    assert share[E_G] == pytest.approx(0.17, abs=0.04)
    assert share["eta <= 1"] == pytest.approx(0.90, abs=0.03)
    assert share["lam <= 1/(mu + L)"] == pytest.approx(0.55, abs=0.04)
    assert fails[H] == fails[E_F] == fails[E_R] == 0


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
    assert conditions(p, large_enough(p, printed(p)))["eta <= 1"] <= 1 + 1e-12


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


@given(constants_of_problems())
def test_lipschitz_constant_of_the_surrogate_covers_both_of_its_parts(p):
    assert (p.L_fx + p.L_gxy * p.r_v) * (1 - 1e-12) <= p.L_F
    assert pytest.approx(2 * p.L_gxy * p.r_v) == dataclasses.replace(p, L_fx=p.L_gxy * p.r_v).L_F


@pytest.mark.slow
@given(steps(), powers(-1, 1))
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
