"""Every inequality of the proof of Theorem 13.1: by exact expectations on problems, by sympy, and how sharp each is."""

import dataclasses
from math import exp, fsum, log, log1p
from types import SimpleNamespace

import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bilevel_book.theory.check import Check, Point, take_step
from bilevel_book.theory.constants import ProblemConstants, ProofConstants, Sizes
from bilevel_book.theory.examples import Coin, Ridge, extremes, spring
from bilevel_book.theory.proof import (
    ACCOUNTS,
    LEMMAS,
    Noise,
    accounts,
    bound,
    change,
    choose,
    conditions,
    contributions,
    drift_constant,
    moves,
    start_value,
    theorem,
    with_offset,
)
from bilevel_book.theory.trials import facts, least_factors, trial
from theory.instances import instances, number, powers, rounding, steps

deltas = powers(-3, 1)


# (a) to (c): what delta leaves as it is


@pytest.mark.slow
@pytest.mark.checks("th:hessianfree", "lm:boundofv")
@given(instances(), deltas, st.floats(1, 10))
def test_facts_hold(instance, delta, times):
    problem, at, other, _ = instance
    room = 100 * rounding(problem, at, delta) * (1 + 1 / problem.constants.mu) * (1 + problem.constants.L_y)
    for name, check in facts(problem, at, other, delta, times * delta).items():
        assert check.holds(1e-7, room), name


def test_facts_are_attained():
    def at(x, y, v):
        return Point(number(x), number(y), number(v))

    kink, steep = Coin(0.01, reach=1e-3), Coin(0, (Ridge(1e-8, 1e5, 0),))
    upper = Coin(1e-5, (Ridge(1e-6, 1e4, 10),))
    tries = [
        (kink, at(0, 0, 1), at(1, 0, 0.9), 1e-5),
        (steep, at(0, 0, 1), at(0, 1e-8, 1), 1e-3),
        (upper, at(0, 0, 1), at(0, 1e-6, 1), 1e-3),
        (spring(100.0), at(0, 0, 0), at(1e-6, 0, 0), 1e-3),
        (Coin(0, reach=1, mixed=1), at(0, 0, 1), at(0, 0, 0), 0.1),
        (Coin(1, wobble=1), at(0, 0, -1), at(0, 0, 0), 0.1),
    ]
    best = dict.fromkeys(facts(*tries[0], 1.0), 0.0)
    for problem, here, there, delta in tries:
        for name, check in facts(problem, here, there, delta, 2 * delta).items():
            best[name] = max(best[name], check.truth / check.bound if check.bound else 0.0)
    assert {name: share for name, share in best.items() if not 0.95 < share < 1 + 1e-6} == {}


@given(instances(), powers(-2, 1))
@settings(max_examples=10)
def test_direction_seen_through_differences_is_a_gradient_in_v(instance, delta):
    problem, at, _, _ = instance
    v = at.v.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(problem.R_delta(at.x, at.y, v, delta), v)
    assert problem.R_delta(at.x, at.y, 0 * v, delta) == 0
    room = rounding(problem, at, delta)
    torch.testing.assert_close(gradient, problem.directions(*at, delta).v.mean(0), rtol=1e-8, atol=1e-10 + 10 * room)


# (d) to (f): one step


@st.composite
def trials(draw):
    """A step of any admissible sizes with errors of any size, and a delta that may change."""
    problem, step = draw(steps())
    k, fraction = problem.constants, st.floats(1e-3, 1)
    sizes = Sizes(
        alpha=draw(fraction) / (4 * k.L_Phi),
        beta=draw(fraction) / (2 * k.L),
        lam=draw(fraction) / (2 * k.L),
        eta_x=draw(fraction),
        eta_y=draw(fraction),
        eta_v=draw(fraction),
        rise=draw(st.floats(0, 1)),
    )
    delta = draw(st.sampled_from([0.0, 0.01, 0.3, 5.0]))
    after = delta * draw(st.sampled_from([1.0, 0.9, 0.3]))
    step = take_step(problem, step.at, step.h, sizes.alpha, sizes.beta, sizes.lam)
    return problem, trial(problem, step, sizes, delta, after)


def exceeds(truth, parts):
    """Whether the truth is above the sum of the parts by more than rounding."""
    return truth > sum(parts) + 1e-8 * sum(map(abs, parts)) + 1e-10


@pytest.mark.slow
@pytest.mark.checks("lm:corefunction", "lm:corefunction_free", "lm:errorf_free", "lm:errorR_free")
@given(trials())
def test_lemmas_bound_what_one_step_changes(tried):
    problem, tried = tried
    for part in LEMMAS:
        assert not exceeds(tried.changes[part], tried.parts(problem, part).values()), part
    for name, row in moves(problem.constants, tried.sizes).items():
        assert not exceeds(tried.quantities[name], [c * tried.quantities[q] for q, c in row.items()]), name


def test_coefficients_of_the_lemmas_are_attained():
    """So each lemma fails on one of these steps if one of its coefficients is a tenth smaller."""
    least = least_factors(extremes())
    rows = {part: LEMMAS[part](ProblemConstants(), Sizes(*[0.1] * 7)) for part in LEMMAS}
    assert set(least) == {(part, name) for part, row in rows.items() for name in row}
    assert {where: share for where, share in least.items() if not 0.95 < share < 1 + 1e-6} == {}


def test_moves_are_attained():
    problem, at = Coin(1e-6), Point(number(0), number(1), number(2))  # grad_y g = 1 = L |y - y*|, and so for v
    h = problem.directions(*at)
    step = take_step(problem, at, type(h)(y=number(2), v=number(2), x=number(1)), 0.1, 0.1, 0.1)
    sizes = Sizes(0.1, 0.1, 0.1, 0.5, 0.5, 0.5, 0.0)
    tried = trial(problem, step._replace(to=step.to._replace(v=at.v - 0.2)), sizes)
    for name, row in moves(problem.constants, sizes).items():
        assert tried.quantities[name] == pytest.approx(sum(c * tried.quantities[q] for q, c in row.items()))


def potential_check(problem, c, tried):
    """E[V_{t+1} - V_t] against thm-change, with exact expectations."""
    s, q = tried.sizes, tried.quantities
    weights = (1, c.a_y, c.a_v, c.p_x / s.alpha, c.p_y / s.alpha, c.p_v / s.alpha)
    truth = sum(weight * tried.changes[part] for part, weight in zip(LEMMAS, weights, strict=True))
    truth += s.rise * (c.p_x * q["ex2"] + c.p_y * q["ey2"] + c.p_v * q["ev2"])
    rows = change(problem.constants, c, s).values()
    return Check(truth, sum(factor * q[name] for row in rows for name, factor in row.items()))


@pytest.mark.slow
@pytest.mark.checks("lm:mergeV", "lm:mergeV_free", "results:constants")
@given(trials(), st.lists(powers(-2, 2), min_size=5, max_size=5))
def test_potential_changes_by_at_most_the_sum_of_the_lemmas(tried, weights):
    """E[V_{t+1} - V_t], exact, for arbitrary weights of the potential."""
    problem, tried = tried
    c = ProofConstants(*weights, c_beta=1, c_lam=1, c_x=1, c_y=1, c_v=1)
    assert potential_check(problem, c, tried).holds(1e-7, 1e-7 * sum(weights) / tried.sizes.alpha)


@pytest.mark.slow
@pytest.mark.checks("th:main", "th:hessianfree")
@given(steps(), st.sampled_from([0.0, 0.1, 5.0]), st.integers(0, 10**6))
def test_potential_falls_with_the_constants_of_the_theorem(step, delta, t):
    """By alpha/2 |grad Phi|^2, up to the noise and the bias: thm-descends."""
    problem, step = step
    c = theorem(problem.constants)
    s = c.sizes(t)
    step = take_step(problem, step.at, step.h, s.alpha, s.beta, s.lam)
    tried = trial(problem, step, s, delta)
    q = tried.quantities
    noise = sum(2 * p * c_z**2 * q[f"n{z}2"] for z, p, c_z in _momentum(c))
    check = potential_check(problem, c, tried)
    claimed = -s.alpha / 2 * q["grad2"] + noise * s.alpha**3 + 2 * s.alpha * q["bias2"]
    assert check.bound <= claimed + 1e-9 * (abs(check.bound) + abs(claimed))
    size = 1 + abs(problem.objective(step.at.x).item()) + c.a_y * q["y2"] + c.a_v * q["v2"]
    size += sum(p * q[f"e{z}2"] for z, p, _ in _momentum(c)) / s.alpha
    assert check.truth <= claimed + 1e-9 * abs(claimed) + 1e-12 * size


def _momentum(c):
    return (("x", c.p_x, c.c_x), ("y", c.p_y, c.c_y), ("v", c.p_v, c.c_v))


# (f): the six accounts


@pytest.mark.slow
@pytest.mark.checks("lm:mergeV", "lm:mergeV_free")
@pytest.mark.parametrize("account", ACCOUNTS)
def test_accounts_are_not_positive_by_algebra(account):
    """Each condition is written with a number >= 0, such as L = mu (1 + a). Then -account is a quotient of polynomials

    whose coefficients are all positive. (1 - eta)^2 is at most 1, so eta = 0 is its worst case; the account's own
    income, -p c, is then taken off again.
    """
    mu, M_x, M_v, L_Phi, alpha = positive = sympy.symbols("mu M_x M_v L_Phi alpha", positive=True)
    a, b, d, e = slack = sympy.symbols("a b d e", nonnegative=True)
    L, iota = mu * (1 + a), 1 / (3 * (1 + b))  # mu <= L, iota <= 1/3
    L_y = mu / (8 * L * iota * (1 + d))  # iota <= mu / (8 L L_y)
    k = SimpleNamespace(mu=mu, L=L, L_y=L_y, M_x=M_x, M_v=M_v, L_v=M_v / mu, L_Phi=L_Phi, C_gxy=(mu * L_y) ** 2)
    k.Lam = M_x + L_y * M_v
    c = choose(k, iota)
    worst = {  # 4 alpha L_Phi <= 1, 2 beta mu <= 1, 2 lam mu <= 1, each where it is needed
        "h2": 1 / (4 * L_Phi * (1 + e)),
        "ey2": 1 / (2 * c.c_beta * mu * (1 + e)),
        "ev2": 1 / (2 * c.c_lam * mu * (1 + e)),
    }.get(account, alpha)
    own = {"ex2": c.p_x * c.c_x, "ey2": c.p_y * c.c_y, "ev2": c.p_v * c.c_v}.get(account, 0)
    none = sympy.Integer(0)
    sizes = Sizes(worst, c.c_beta * worst, c.c_lam * worst, none, none, none, rise=worst)
    over, under = sympy.fraction(sympy.together(sympy.factor(accounts(k, c, sizes)[account] - own)))
    for polynomial in (-over, under):
        assert min(sympy.Poly(sympy.expand(polynomial), *positive, *slack).coeffs()) >= 0


@st.composite
def constants_of_problems(draw):
    mu = 10 ** draw(st.floats(-3, 2))
    rest = {name: 10 ** draw(st.floats(-3, 3)) for name in ("L_gyy", "L_gxy", "C_gxy", "L_fx", "L_fy", "C_fy")}
    return ProblemConstants(mu=mu, L=mu * 10 ** draw(st.floats(0, 3)), **rest)


@pytest.mark.checks("lm:mergeV", "lm:mergeV_free", "results:constants", "results:theorem-2")
@given(constants_of_problems(), st.integers(0, 10**9), st.sampled_from([1.0, 7.0, 1e6]))
def test_accounts_are_not_positive_at_any_time_for_any_larger_w(k, t, larger):
    c = theorem(k)
    assert max(conditions(k, c).values()) == pytest.approx(1)  # the smallest w
    assert c.w == pytest.approx(max(2, max(c.c_x, c.c_y, c.c_v) ** 1.5))  # no other condition is ever the active one
    c = dataclasses.replace(c, w=larger * c.w)
    rows = contributions(k, c, c.sizes(t)).values()
    for name, value in accounts(k, c, c.sizes(t)).items():
        assert value <= 1e-12 * sum(abs(row.get(name, 0)) for row in rows)


@pytest.mark.parametrize("C", [1e-4, 7.0])  # iota = 1/3, and less
def test_constants_are_those_that_the_proof_inserts(C):
    k = ProblemConstants(mu=2.0, L=3.0, C_gxy=C, L_fx=0.7, L_fy=1.3, L_gxy=0.4, L_gyy=0.6, C_fy=1.9)
    c, iota = theorem(k), min(1 / 3, 2 / (8 * 3 * k.L_y))
    assert (c.a_y * c.c_beta * k.mu, c.c_beta * k.mu) == pytest.approx((8 * k.Lam**2, 8 * k.Lam * k.L_y))
    assert (c.a_v * c.c_lam * k.mu, c.c_lam * k.mu * iota) == pytest.approx((8 * C, 8 * k.L_y * k.M_v))
    assert (8 * k.L**2 * c.p_y, 8 * c.c_lam**2 * k.L**4 * c.p_v) == pytest.approx((iota**2, C))
    assert 512 * (k.Lam * k.L) ** 2 * c.p_x == pytest.approx((iota * k.mu) ** 2)
    assert (c.p_x * (c.c_x - 1), c.p_y * (c.c_y - 1)) == pytest.approx((2, 14 * k.Lam**2 / k.mu**2))
    assert c.p_v * (c.c_v - 1) == pytest.approx(14 * k.L_y**2)


@pytest.mark.parametrize("t", [0, 1, 5, 1000])
def test_inverse_step_rises_by_less_than_the_step(t):
    """(1/alpha_t - 1/alpha_{t-1}) / alpha_t <= 1 for w >= 2, the 1 in the three c."""
    for w in (2.0, 3.5, 1e3, 1e15):
        c = ProofConstants(*[1.0] * 10, w=w)
        s = c.sizes(t)
        assert 0 <= s.rise <= s.alpha
        if w < 1e4 and t:
            assert s.rise == pytest.approx((w + t) ** (1 / 3) - (w + t - 1) ** (1 / 3), rel=1e-9)
        assert (s.alpha, s.beta, s.eta_v) == pytest.approx(((w + t) ** (-1 / 3), s.alpha, s.alpha**2))


@pytest.mark.parametrize("condition", list(conditions(ProblemConstants(), theorem(ProblemConstants()))))
def test_each_condition_on_w_is_the_active_one_somewhere(condition):
    big = {
        "2 <= w": {}, "4 alpha L_Phi <= 1": {"L_fx": 1e3}, "2 beta L <= 1": {"c_beta": 1e3},
        "2 lam L <= 1": {"c_lam": 1e3}, "eta <= 1": {"c_x": 1e6},
    }  # fmt: skip
    small = {"L_gyy": 0.0, "L_gxy": 0.0, "L_fx": 1e-3, "L_fy": 1e-3, "C_fy": 1e-6}
    change = big[condition]
    k = ProblemConstants(**(small | {name: v for name, v in change.items() if name in small}))
    c = dataclasses.replace(ProofConstants(*[1e-3] * 10), **{n: v for n, v in change.items() if n not in small})
    c = with_offset(k, c)
    s, found = c.sizes(0), conditions(k, c)
    largest = 4 * s.alpha * k.L_Phi, 2 * s.beta * k.L, 2 * s.lam * k.L, max(s.eta_x, s.eta_y, s.eta_v)
    assert tuple(found.values()) == pytest.approx((2 / c.w, *largest))
    assert found[condition] == max(found.values()) == pytest.approx(1)


def test_constants_that_mean_nothing_are_refused():
    p = ProblemConstants()
    for wrong in ({"mu": 0.0}, {"mu": 3.0}, {"L_fx": -1.0}):
        with pytest.raises(ValueError, match=r"need 0 < mu <= L|cannot be negative"):
            dataclasses.replace(p, **wrong)
    for zero in ({"C_gxy": 0.0}, {"L_fy": 0.0, "L_gyy": 0.0}):
        with pytest.raises(ValueError, match="positive: they are upper bounds"):
            theorem(dataclasses.replace(p, **zero))


# (g): the sum


@pytest.mark.checks("th:main", "abstract:rate")
@given(st.floats(2, 1e4), st.integers(1, 3000))
def test_sums_of_the_steps(w, T):
    def total(power):
        return fsum((w + t) ** power for t in range(T))

    assert log1p(T / w) <= total(-1) <= log1p(T / (w - 1)) <= log(T + 1) + 1e-14
    assert total(-1 / 3) / T * (w + T) ** (1 / 3) <= 1.5  # turns 4 (theta delta)^2 into 6 (theta delta)^2
    drift = fsum((w + t) * ((t + 1) ** (-1 / 3) - (t + 2) ** (-1 / 3)) ** 2 for t in range(T))
    assert drift <= 0.101 * w <= 5 * w / 18  # thm-drifts


@pytest.mark.checks("th:main", "th:hessianfree", "results:theorem-2")
@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_bound_is_the_formula_of_the_theorem(delta):
    k, T = ProblemConstants(), 50
    c = ProofConstants(1, 2, 0.3, 0.4, 0.5, 1, 1, 0.6, 0.7, 0.8, w=3.0)
    start = start_value(k, c, 1.0, 2.0, 3.0, Noise(4, 7, 5))
    by_hand = 1 + 2 * c.a_y + 3 * c.a_v + c.w ** (1 / 3) * (4 * c.p_x + 7 * c.p_y + 5 * c.p_v)
    assert start == pytest.approx(by_hand)
    noise = 2 * (4 * c.p_x * c.c_x**2 + 7 * c.p_y * c.c_y**2 + 5 * c.p_v * c.c_v**2)
    travel, floor = 2 * (c.w + T) ** (1 / 3) / T, 6 * (k.theta * delta) ** 2
    found = bound(k, c, T, start, Noise(4, 7, 5), delta)
    assert found == pytest.approx(travel * (start + noise * log1p(T / (c.w - 1))) + floor)


@pytest.mark.slow
@pytest.mark.checks("co:hftribo")
@given(steps(), st.floats(0, 3), st.floats(0, 1), st.integers(0, 1000))
def test_change_of_delta_costs_no_more_than_its_constant(step, delta, share, t):
    problem, step = step
    k, c = problem.constants, theorem(problem.constants)
    s, after = c.sizes(t), share * delta
    rv2, rx2 = ((slope * k.r_v**2 * (delta - after) / 2) ** 2 for slope in (k.L_gyy, k.L_gxy))
    rows = {part: LEMMAS[part](k, s) for part in ("v", "x error", "v error")}
    cost = c.a_v * rows["v"]["rv2"] * rv2
    cost += c.p_x / s.alpha * rows["x error"]["rx2"] * rx2 + c.p_v / s.alpha * rows["v error"]["rv2"] * rv2
    limit = drift_constant(k, c) * (c.w + t) * (k.r_v**2 * (delta - after) / 2) ** 2
    assert cost <= limit * (1 + 1e-9)
    by_hand = 4 * c.a_v / (c.c_lam * k.mu**3) + c.p_v / c.c_v, c.p_x / c.c_x
    assert drift_constant(k, c) == pytest.approx(by_hand[0] * k.L_gyy**2 + by_hand[1] * k.L_gxy**2)


def steps_for(eps, power_of_delta=-1 / 3, noise=1.0):
    """The T at which the bound for unit constants is eps, by bisection in log T; delta is a power of T."""
    k = ProblemConstants()
    c = theorem(k)
    low, high = log(c.w), log(1e60)
    for _ in range(100):
        T = exp((low + high) / 2)
        too_few = bound(k, c, T, 1.0, Noise(noise, noise, noise), T**power_of_delta) > eps
        low, high = (log(T), high) if too_few else (low, log(T))
    return T


@pytest.mark.checks("Co:complexitytribo", "co:hftribo")
@pytest.mark.parametrize(("power", "noise", "exponent"), [(-1 / 3, 0.0, 1.5), (-1 / 4, 0.0, 2.0), (-1 / 3, 1.0, 1.5)])
def test_steps_for_a_mean_of_eps_grow_like_eps_to_minus_three_halves(power, noise, exponent):
    """delta may fall like T^-1/3 and no slower; with noise up to a logarithm."""
    few, many = (steps_for(eps, power, noise) for eps in (1e-9, 1e-15))
    logarithm = (log1p(many / theorem(ProblemConstants()).w) / log1p(few / theorem(ProblemConstants()).w)) ** noise
    assert log(many / few / logarithm**1.5) / log(1e6) == pytest.approx(exponent, abs=0.01)


@pytest.mark.checks("experiments:validation")
def test_for_unit_constants_the_theorem_says_nothing_before_1e16_steps():
    k = ProblemConstants()
    c = theorem(k)
    noise = Noise(4, 1, 4)
    assert c.w == pytest.approx(1.27e12, rel=0.01)
    assert bound(k, c, 1e16, 1.0, noise) > 4 > bound(k, c, 1e17, 1.0, noise)
