"""The statements of the paper as functions: each returns what is true on an instance and what is claimed about it.

Every function returns a `Check(truth, bound)`; the statement says truth <= bound. Where the print is wrong, the name
without suffix is the corrected statement and the name with `_as_printed` is the paper's. table.py lists all lemmas,
propositions, theorems and corollaries of the paper with their status, and names the functions and tests for each.

An instance is a `LogCoshFamily` (constants by formula, expectations by enumeration) and a point, or one `Step` of the
algorithms. e^g, e^R, e^f are the errors of the momentum estimators h^g, h^R, h^f (Directions y, v, x in the code).
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from bilevel_book.theory.families import Constants, LogCoshFamily, spread
from bilevel_core.directions import Directions, hessian_vector, project
from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers.fmbo import Point


class Check(NamedTuple):
    """A statement on one instance: it says truth <= bound."""

    truth: float
    bound: float

    def holds(self, tol: float = 1e-9, slack: float = 1e-12) -> bool:
        """Whether truth <= bound up to rounding."""
        return self.truth <= self.bound + tol * (abs(self.truth) + abs(self.bound)) + slack


def sq(z: Tensor) -> float:
    """||z||^2."""
    return (z * z).sum().item()


def gap(z1: Tensor, z2: Tensor) -> float:
    """||z1 - z2||."""
    return (z1 - z2).norm().item()


# v* and the ball


def bound_of_v(problem: LogCoshFamily, x: Tensor, y: Tensor) -> Check:
    """lm:boundofv: ||v*(x, y)|| <= sqrt(C_fy) / mu"""
    return Check(problem.v_star(x, y).norm().item(), problem.constants.r_v)


def radius_as_printed(problem: LogCoshFamily, x: Tensor, y: Tensor) -> Check:
    """th:main, th:hessianfree: ||v*(x, y)|| <= C_fy / mu, what the radius of the theorems would need"""
    return Check(problem.v_star(x, y).norm().item(), problem.constants.C_fy / problem.constants.mu)


def projection(w: Tensor, u: Tensor, r_v: float) -> Check:
    """eq:vgaps, step (b): ||P(w) - u|| <= ||w - u|| for every u in the ball (not for others)"""
    return Check(gap(project(w, r_v), u), gap(w, u))


def v_star_moves(problem: LogCoshFamily, one: Point, two: Point) -> Check:
    """eq:vt1star: ||v*(z1) - v*(z2)|| <= (L_fy / mu + sqrt(C_fy) L_gyy / mu^2) ||z1 - z2||, z = (x, y)"""
    truth = gap(problem.v_star(one.x, one.y), problem.v_star(two.x, two.y))
    return Check(truth, problem.constants.L_v * math.sqrt(_distance(one, two)))


def v_star_moves_squared(problem: LogCoshFamily, one: Point, two: Point) -> Check:
    """eq:vt1star: ||v*(z1) - v*(z2)||^2 <= 2 A ||z1 - z2||^2, A = L_fy^2 / mu^2 + C_fy L_gyy^2 / mu^4"""
    return Check(v_star_moves(problem, one, two).truth ** 2, 2 * problem.constants.A * _distance(one, two))


def v_star_moves_as_printed(problem: LogCoshFamily, one: Point, two: Point) -> Check:
    """prop:hessian_free_v, lm:vv (end), lm:vv_free: the same with C_fy^2 for C_fy"""
    return Check(v_star_moves(problem, one, two).truth ** 2, 2 * _A_as_printed(problem.constants) * _distance(one, two))


# Lipschitz constants and variances


def surrogate_moves(problem: LogCoshFamily, one: Point, two: Point, delta: float | None = None) -> Check:
    """lm:boundofgradf: ||d_x(z1, v) - d_x(z2, v)|| <= L_F ||z1 - z2|| for ||v|| <= r_v and every sample, z = (x, y)

    v is that of `one`. With delta, J v is a central difference: the same constant.
    """
    d1 = problem.directions(one.x, one.y, one.v, delta).x
    d2 = problem.directions(two.x, two.y, one.v, delta).x
    return Check((d1 - d2).norm(dim=1).max().item(), problem.constants.L_F * math.sqrt(_distance(one, two)))


def surrogate_variance(problem: LogCoshFamily, at: Point) -> Check:
    """lm:B: E ||d_x(xi) - d_x||^2 <= sigma_f^2 = 2 (sigma_fx^2 + r_v^2 sigma_gxy^2)"""
    return Check(spread(problem.directions(*at).x), _sigma_f2(problem, at))


def surrogate_error(problem: LogCoshFamily, x: Tensor, y: Tensor) -> Check:
    """lm:3ieq, first inequality: ||d_x(x, y, v*(x, y)) - grad Phi(x)|| <= Lam ||y - y*(x)||"""
    truth = gap(problem.directions(x, y, problem.v_star(x, y)).x.mean(0), problem.hypergradient(x))
    return Check(truth, problem.constants.Lam * gap(y, problem.y_star(x)))


def surrogate_error_as_printed(problem: LogCoshFamily, x: Tensor, y: Tensor, v: Tensor) -> Check:
    """lm:3ieq: ||d_x(x, y, v) - grad Phi(x)|| <= L ||y - y*(x)|| for ANY v, L made of C_gxy without the root"""
    truth = gap(problem.directions(x, y, v).x.mean(0), problem.hypergradient(x))
    return Check(truth, _Lam_as_printed(problem.constants) * gap(y, problem.y_star(x)))


def y_star_moves(problem: LogCoshFamily, x1: Tensor, x2: Tensor) -> Check:
    """lm:3ieq, second inequality: ||y*(x1) - y*(x2)|| <= sqrt(C_gxy) / mu ||x1 - x2||"""
    return Check(gap(problem.y_star(x1), problem.y_star(x2)), problem.constants.L_y * gap(x1, x2))


def y_star_moves_as_printed(problem: LogCoshFamily, x1: Tensor, x2: Tensor) -> Check:
    """lm:3ieq, second inequality: the same with C_gxy / mu, a squared bound"""
    L_y = problem.constants.C_gxy / problem.constants.mu
    return Check(gap(problem.y_star(x1), problem.y_star(x2)), L_y * gap(x1, x2))


def hypergradient_moves(problem: LogCoshFamily, x1: Tensor, x2: Tensor) -> Check:
    """lm:3ieq, third inequality: ||grad Phi(x1) - grad Phi(x2)|| <= Lam (1 + L_y) ||x1 - x2||"""
    return Check(gap(problem.hypergradient(x1), problem.hypergradient(x2)), problem.constants.L_f * gap(x1, x2))


def hypergradient_moves_as_printed(problem: LogCoshFamily, x1: Tensor, x2: Tensor) -> Check:
    """lm:3ieq, third inequality: the same with L (1 + C_gxy / mu), no roots"""
    k = problem.constants
    L_f = _Lam_as_printed(k) * (1 + k.C_gxy / k.mu)
    return Check(gap(problem.hypergradient(x1), problem.hypergradient(x2)), L_f * gap(x1, x2))


# Finite differences


def hessian_difference(problem: LogCoshFamily, at: Point, delta: float) -> Check:
    """lm:boundofeJH: ||H_delta v - H v|| <= L_gyy delta ||v||^2 / 2, every sample"""
    return Check(_difference_errors(problem, at, delta)[0], problem.constants.L_gyy * delta * sq(at.v) / 2)


def jacobian_difference(problem: LogCoshFamily, at: Point, delta: float) -> Check:
    """lm:boundofeJH: ||J_delta v - J v|| <= L_gxy delta ||v||^2 / 2, every sample"""
    return Check(_difference_errors(problem, at, delta)[1], problem.constants.L_gxy * delta * sq(at.v) / 2)


def hessian_difference_as_printed(problem: LogCoshFamily, at: Point, delta: float) -> Check:
    """lm:boundofeJH: ||H_delta v - H v|| <= L_gyy r_v^2 delta: true, twice too large"""
    k = problem.constants
    return Check(_difference_errors(problem, at, delta)[0], k.L_gyy * k.r_v**2 * delta)


def jacobian_difference_as_printed(problem: LogCoshFamily, at: Point, delta: float) -> Check:
    """lm:boundofeJH: ||J_delta v - J v|| <= L_gxy r_v^2 delta: true, twice too large"""
    k = problem.constants
    return Check(_difference_errors(problem, at, delta)[1], k.L_gxy * k.r_v**2 * delta)


def hessian_difference_smooth(problem: LogCoshFamily, at: Point, delta: float) -> Check:
    """||H_delta v - H v|| <= M4 delta^2 ||v||^3 / 6 when H has bounded second derivatives (not in the paper)."""
    return Check(_difference_errors(problem, at, delta)[0], problem.constants.M4_H * delta**2 * sq(at.v) ** 1.5 / 6)


def jacobian_difference_smooth(problem: LogCoshFamily, at: Point, delta: float) -> Check:
    """||J_delta v - J v|| <= M4_J delta^2 ||v||^3 / 6 when J has bounded second derivatives (not in the paper)."""
    return Check(_difference_errors(problem, at, delta)[1], problem.constants.M4_J * delta**2 * sq(at.v) ** 1.5 / 6)


def difference_at_kink(problem: BilevelProblem, v: Tensor, delta: float) -> Check:
    """lm:boundofeJH: the first bound where it is attained: H = 1 + |y| at y = 0, L_gyy = 1"""
    x, y = problem.start(torch.Generator())
    error = hessian_vector(problem, x, y, v, None, delta) - hessian_vector(problem, x, y, v, None)
    return Check(error.norm().item(), delta * sq(v) / 2)


def rounding(problem: LogCoshFamily, at: Point, delta: float) -> float:
    """How large the rounding error of a central difference may be: eps times the gradients, over delta."""
    size = sum(z.norm().item() for z in at) + delta * at.v.norm().item() + 5
    return 8 * torch.finfo(at.v.dtype).eps * problem.constants.L * size / delta


def difference_variance(problem: LogCoshFamily, at: Point, delta: float, same: bool = True) -> float:
    """E ||H_delta v - E H_delta v||^2 with the same sample at both signs, or with two independent ones.

    Exact: the average over all samples, or over all pairs. With noise of variance sigma^2 in grad_y g that does not
    depend on y, independent samples give sigma^2 / (2 delta^2) more; the same sample cancels it.
    """
    plus = problem.g_y(at.x, at.y + delta * at.v)
    minus = problem.g_y(at.x, at.y - delta * at.v)
    pairs = plus - minus if same else (plus.unsqueeze(1) - minus).flatten(0, 1)
    return spread(pairs / (2 * delta))


# The linear system: H symmetric, mu <= H <= L, u = v - v*


def contraction(H: Tensor, u: Tensor, lam: float) -> Check:
    """eq:vtlambda: ||u - lam H u||^2 <= (1 - lam mu)^2 ||u||^2 for 0 <= lam <= 2 / (mu + L)"""
    mu, _ = _extremes(H)
    return Check(sq(u - lam * H @ u), (1 - lam * mu) ** 2 * sq(u))


def contraction_simple(H: Tensor, u: Tensor, lam: float) -> Check:
    """||u - lam H u||^2 <= (1 - 2 lam mu L / (mu + L)) ||u||^2 for 0 <= lam <= 2 / (mu + L), what the proofs use"""
    mu, L = _extremes(H)
    return Check(sq(u - lam * H @ u), (1 - 2 * lam * mu * L / (mu + L)) * sq(u))


def contraction_as_printed(H: Tensor, u: Tensor, lam: float) -> Check:
    """eq:vtlambda, lm:vv: ||u - lam H u||^2 <= (1 - 2 lam (L + L^3) mu / (mu + L) + lam^2 L^2) ||u||^2"""
    return Check(sq(u - lam * H @ u), _factor_as_printed(*_extremes(H), lam) * sq(u))


def contraction_step(H: Tensor, u: Tensor, lam: float) -> Check:
    """eq:vtlambda, step (a): ||u - lam H u||^2 <= (1 - 2 lam L_mu) ||u||^2 - (2 lam / (mu + L) - lam^2) ||H u||^2"""
    mu, L = _extremes(H)
    shrink = 1 - 2 * lam * mu * L / (mu + L)
    return Check(sq(u - lam * H @ u), shrink * sq(u) - (2 * lam / (mu + L) - lam**2) * sq(H @ u))


def contraction_step_as_printed(H: Tensor, u: Tensor, lam: float) -> Check:
    """eq:vtlambda, step (a): the same with 2 lam mu L / (mu + L) in the last bracket"""
    mu, L = _extremes(H)
    rate = 2 * lam * mu * L / (mu + L)
    return Check(sq(u - lam * H @ u), (1 - rate) * sq(u) - (rate - lam**2) * sq(H @ u))


def cocoercivity(H: Tensor, u: Tensor) -> Check:
    """eq:vtlambda: mu L / (mu + L) ||u||^2 + ||H u||^2 / (mu + L) <= <H u, u>"""
    mu, L = _extremes(H)
    return Check((mu * L * sq(u) + sq(H @ u)) / (mu + L), (u @ (H @ u)).item())


# One step of the algorithms


class Step(NamedTuple):
    """One step of FMBO or FdeHBO from `at` to `to`, with estimators h and step sizes alpha, beta, lam."""

    at: Point
    to: Point
    h: Directions
    alpha: float
    beta: float
    lam: float


def take_step(problem: LogCoshFamily, at: Point, h: Directions, alpha: float, beta: float, lam: float) -> Step:
    """x - alpha h^f, y - beta h^g, P(v - lam h^R), all from the point `at`."""
    v = project(at.v - lam * h.v, problem.constants.r_v)
    return Step(at, Point(at.x - alpha * h.x, at.y - beta * h.y, v), h, alpha, beta, lam)


def errors(problem: LogCoshFamily, step: Step, delta: float | None = None) -> Directions:
    """(e^g, e^R, e^f): the estimators minus the true directions, or minus those seen through differences."""
    return Directions(*(h - d.mean(0) for h, d in zip(step.h, problem.directions(*step.at, delta), strict=True)))


def function_descent(problem: LogCoshFamily, step: Step) -> Check:
    """lm:corefunction, lm:corefunction_free, for any h^f and any alpha >= 0:

    Phi(x_{t+1}) <= Phi(x_t) - alpha/2 ||grad Phi||^2 - alpha/2 (1 - alpha L_f) ||h^f||^2
                    + alpha ||e^f||^2 + 2 alpha Lam^2 ||y - y*||^2 + 2 alpha C_gxy ||v - v*(x, y)||^2
    """
    return _function_descent(problem, step, 2 * problem.constants.Lam**2)


def function_descent_as_printed(problem: LogCoshFamily, step: Step) -> Check:
    """lm:corefunction, lm:corefunction_free: the same with 4 (L_fx^2 + C_fy L_gxy^2 / mu^2) for 2 Lam^2"""
    k = problem.constants
    return _function_descent(problem, step, 4 * (k.L_fx**2 + k.C_fy * k.L_gxy**2 / k.mu**2))


def _function_descent(problem: LogCoshFamily, step: Step, of_y: float) -> Check:
    k, (x, y, v), alpha = problem.constants, step.at, step.alpha
    bound = (
        problem.objective(x).item()
        - alpha / 2 * sq(problem.hypergradient(x))
        - alpha / 2 * (1 - alpha * k.L_f) * sq(step.h.x)
        + alpha * sq(errors(problem, step).x)
        + alpha * of_y * sq(y - problem.y_star(x))
        + 2 * alpha * k.C_gxy * sq(v - problem.v_star(x, y))
    )
    return Check(problem.objective(step.to.x).item(), bound)


def lower_descent(problem: LogCoshFamily, step: Step, gamma: float, delta: float) -> Check:
    """lm:yy, lm:yy_free, for ALL gamma, delta > 0 and beta >= 0 (printed: for some):

    ||y_{t+1} - y*_{t+1}||^2 <= (1 + gamma) (1 + delta) [(1 - 2 beta L_mu) ||y - y*||^2
                                                         - (2 beta / (mu + L) - beta^2) ||grad_y g||^2]
                                + (1 + 1/gamma) L_y^2 alpha^2 ||h^f||^2
                                + (1 + gamma) (1 + 1/delta) beta^2 ||e^g||^2
    """
    k, at, to, beta = problem.constants, step.at, step.to, step.beta
    inside = (1 - 2 * beta * k.L_mu) * sq(at.y - problem.y_star(at.x))
    inside -= (2 * beta / (k.mu + k.L) - beta**2) * sq(problem.g_y(at.x, at.y).mean(0))
    bound = (
        (1 + gamma) * (1 + delta) * inside
        + (1 + 1 / gamma) * k.L_y**2 * sq(to.x - at.x)
        + (1 + gamma) * (1 + 1 / delta) * beta**2 * sq(errors(problem, step).y)
    )
    return Check(sq(to.y - problem.y_star(to.x)), bound)


def helper_descent(problem: LogCoshFamily, step: Step, gamma: float, delta: float) -> Check:
    """lm:vv, prop:hessian_free_v, lm:vv_free, for all gamma, delta > 0 and 0 <= lam <= 2 / (mu + L):

    ||v_{t+1} - v*_{t+1}||^2 <= (1 + gamma) (1 + delta) (1 - lam mu)^2 ||v - v*||^2
                                + (1 + gamma) (1 + 1/delta) lam^2 ||e^R||^2
                                + (1 + 1/gamma) 2 A [alpha^2 ||h^f||^2 + 2 beta^2 (||e^g||^2 + ||grad_y g||^2)]
    """
    k = problem.constants
    return _helper_descent(problem, step, gamma, delta, (1 - step.lam * k.mu) ** 2, k.A)


def helper_descent_as_printed(problem: LogCoshFamily, step: Step, gamma: float, delta: float) -> Check:
    """lm:vv: the same with the factor 1 - 2 lam (L + L^3) mu / (mu + L) + lam^2 L^2"""
    k = problem.constants
    return _helper_descent(problem, step, gamma, delta, _factor_as_printed(k.mu, k.L, step.lam), k.A)


def helper_descent_free_as_printed(problem: LogCoshFamily, step: Step, gamma: float, delta: float) -> Check:
    """prop:hessian_free_v, lm:vv_free: that factor, and C_fy^2 for C_fy in A"""
    k = problem.constants
    return _helper_descent(problem, step, gamma, delta, _factor_as_printed(k.mu, k.L, step.lam), _A_as_printed(k))


def _helper_descent(problem: LogCoshFamily, step: Step, gamma: float, delta: float, factor: float, A: float) -> Check:
    at, to = step.at, step.to
    bound = (
        (1 + gamma) * (1 + delta) * factor * sq(at.v - problem.v_star(at.x, at.y))
        + (1 + gamma) * (1 + 1 / delta) * step.lam**2 * sq(errors(problem, step).v)
        + (1 + 1 / gamma) * 2 * A * _moves(problem, step)
    )
    return Check(sq(to.v - problem.v_star(to.x, to.y)), bound)


# Recursive momentum: h+ = d(to) + (1 - eta) (h - d(at)) on one new sample; truths are averages over all samples


def momentum(problem: LogCoshFamily, step: Step, eta: float, delta: float | None = None) -> Directions:
    """The next estimators h^g, h^R, h^f for every sample that may be drawn (def:htg, def:htR, def:htf)."""
    now, before = problem.directions(*step.to, delta), problem.directions(*step.at, delta)
    return Directions(*(d + (1 - eta) * (h - old) for d, h, old in zip(now, step.h, before, strict=True)))


def lower_error(problem: LogCoshFamily, step: Step, eta: float) -> Check:
    """lm:errorg, lm:errorg_free, as the last line of the proof has it:

    E ||e^g_{t+1}||^2 <= (1-eta)^2 (1 + 32 L^2 beta^2) ||e^g||^2 + 2 eta^2 sigma_g^2
                         + 16 (1-eta)^2 L^2 alpha^2 ||h^f||^2 + 32 (1-eta)^2 L^2 beta^2 ||grad_y g||^2
    """
    return _lower_error(problem, step, eta, 1.0)


def lower_error_as_printed(problem: LogCoshFamily, step: Step, eta: float) -> Check:
    """lm:errorg, lm:errorg_free: the same with ||e^g||^4 for the first ||e^g||^2"""
    return _lower_error(problem, step, eta, sq(errors(problem, step).y))


def _lower_error(problem: LogCoshFamily, step: Step, eta: float, stray: float) -> Check:
    k, keep, e_g = problem.constants, (1 - eta) ** 2, sq(errors(problem, step).y)
    bound = (
        keep * (stray + 32 * k.L**2 * step.beta**2) * e_g
        + 2 * eta**2 * problem.variances(step.to.x, step.to.y).g
        + 16 * keep * k.L**2 * step.alpha**2 * sq(step.h.x)
        + 32 * keep * k.L**2 * step.beta**2 * sq(problem.g_y(step.at.x, step.at.y).mean(0))
    )
    return Check(_mean_error(problem, step, eta).y, bound)


def upper_error(problem: LogCoshFamily, step: Step, eta: float) -> Check:
    """lm:errorf:

    E ||e^f_{t+1}||^2 <= (1-eta)^2 ||e^f||^2 + 2 eta^2 sigma_f^2
                         + 6 (1-eta)^2 [L_F^2 (alpha^2 ||h^f||^2 + 2 beta^2 (||e^g||^2 + ||grad_y g||^2))
                                        + 2 C_gxy lam^2 (||e^R||^2 + L^2 ||v - v*||^2)]
    """
    keep, e_f = (1 - eta) ** 2, sq(errors(problem, step).x)
    bound = keep * e_f + 2 * eta**2 * _sigma_f2(problem, step.to) + 6 * keep * _upper_moves(problem, step)
    return Check(_mean_error(problem, step, eta).x, bound)


def upper_error_free(problem: LogCoshFamily, step: Step, eta: float, delta: float) -> Check:
    """prop:HFetf, lm:errorf_free, for h^f made of differences, b = L_gxy r_v^2 delta:

    E ||e^f_{t+1}||^2 <= [(1-eta)^2 + 4 b] ||e^f||^2 + 4 eta^2 sigma_f^2 + 4 b + 16 b^2
                         + the terms of lm:errorf with the factor 6
    """
    k, keep, e_f = problem.constants, (1 - eta) ** 2, sq(errors(problem, step).x)
    b = k.L_gxy * k.r_v**2 * delta
    bound = (keep + 4 * b) * e_f + 4 * eta**2 * _sigma_f2(problem, step.to) + 4 * b + 16 * b**2
    return Check(_mean_error(problem, step, eta, delta).x, bound + 6 * keep * _upper_moves(problem, step))


def helper_error(problem: LogCoshFamily, step: Step, eta: float) -> Check:
    """lm:errorR:

    E ||e^R_{t+1}||^2 <= (1-eta)^2 (1 + 48 L^2 lam^2) ||e^R||^2 + 4 eta^2 (sigma_gyy^2 r_v^2 + sigma_fy^2)
                         + 48 (1-eta)^2 (L_gyy^2 r_v^2 + L_fy^2) [alpha^2 ||h^f||^2
                                                                  + 2 beta^2 (||e^g||^2 + ||grad_y g||^2)]
                         + 48 (1-eta)^2 L^4 lam^2 ||v - v*||^2
    """
    return _helper_error(problem, step, eta, None, 48, 48 * problem.constants.L**2)


def helper_error_free(problem: LogCoshFamily, step: Step, eta: float, delta: float) -> Check:
    """prop:hfetR, lm:errorR_free, with L^2 for L^4 and the term of e^R counted once, c = L_gyy r_v^2 delta:

    E ||e^R_{t+1}||^2 <= [(1-eta)^2 (1 + 96 L^2 lam^2) + 4 c] ||e^R||^2 + 4 c + 8 c^2
                         + twice the other terms of lm:errorR
    """
    return _helper_error(problem, step, eta, delta, 96, 96 * problem.constants.L**2)


def helper_error_free_as_printed(problem: LogCoshFamily, step: Step, eta: float, delta: float) -> Check:
    """prop:hfetR: 96 (L^4 + L^2) lam^2 for 96 L^2 lam^2: wrong units, yet true because the term is counted twice"""
    L = problem.constants.L
    return _helper_error(problem, step, eta, delta, 96, 96 * (L**4 + L**2))


def _helper_error(
    problem: LogCoshFamily, step: Step, eta: float, delta: float | None, moves: float, of_e: float
) -> Check:
    k, keep, e_R = problem.constants, (1 - eta) ** 2, sq(errors(problem, step).v)
    c = 0.0 if delta is None else k.L_gyy * k.r_v**2 * delta
    sigma = problem.variances(step.to.x, step.to.y)
    bound = (
        (keep * (1 + of_e * step.lam**2) + 4 * c) * e_R
        + (4 * c + 8 * c**2)
        + moves / 12 * eta**2 * (sigma.g_yy * k.r_v**2 + sigma.f_y)
        + moves * keep * (k.L_gyy**2 * k.r_v**2 + k.L_fy**2) * _moves(problem, step)
        + moves * keep * k.L**4 * step.lam**2 * sq(step.at.v - problem.v_star(step.at.x, step.at.y))
    )
    return Check(_mean_error(problem, step, eta, delta).v, bound)


def momentum_sharp(problem: LogCoshFamily, step: Step, eta: float, delta: float | None = None) -> dict[str, Check]:
    """The three recursions with the constants that the argument gives, for d_y, d_v, d_x:

    E ||e_{t+1}||^2 <= (1-eta)^2 ||e||^2 + 2 eta^2 E ||d(xi) - d||^2 + (1-eta)^2 times

        y:  2 L^2 (||dx||^2 + ||dy||^2)
        v:  6 [L_R^2 (||dx||^2 + ||dy||^2) + L^2 ||dv||^2],           L_R^2 = 2 (L_gyy^2 r_v^2 + L_fy^2)
        x:  6 [L_F^2 (||dx||^2 + ||dy||^2) + C_gxy ||dv||^2]

    With delta, d is the direction seen through differences and e the error against ITS mean: the same inequality,
    and no term in delta. Finite differences bias nothing; they solve another problem (see `shift_of_v`).
    """
    k, keep = problem.constants, (1 - eta) ** 2
    z, dv = _distance(step.at, step.to), sq(step.to.v - step.at.v)
    now = problem.directions(*step.to, delta)
    e = errors(problem, step, delta)
    after = momentum(problem, step, eta, delta)
    moves = Directions(
        y=2 * k.L**2 * z,
        v=6 * (k.L_R**2 * z + k.L**2 * dv),
        x=6 * (k.L_F**2 * z + k.C_gxy * dv),
    )
    checks = {}
    for name in Directions._fields:
        d, h = getattr(now, name), getattr(after, name)
        truth = (h - d.mean(0)).square().sum(1).mean().item()
        bound = keep * sq(getattr(e, name)) + 2 * eta**2 * spread(d) + keep * getattr(moves, name)
        checks[name] = Check(truth, bound)
    return checks


def stationary_variance(eta: float, sigma: float = 1.0) -> float:
    """eta / (2 - eta) sigma^2: the variance of h when nothing moves and the noise is additive."""
    return eta / (2 - eta) * sigma**2


# The problem that finite differences solve


def surrogate_monotone(problem: LogCoshFamily, at: Point, v: Tensor, delta: float) -> Check:
    """mu ||v - v'||^2 <= <grad R_delta(v) - grad R_delta(v'), v - v'>: R_delta is mu-strongly convex"""
    change = _change_in_v(problem, at, v, delta)
    return Check(problem.constants.mu * sq(at.v - v), (change @ (at.v - v)).item())


def surrogate_smooth(problem: LogCoshFamily, at: Point, v: Tensor, delta: float) -> Check:
    """||grad R_delta(v) - grad R_delta(v')|| <= L ||v - v'||"""
    return Check(_change_in_v(problem, at, v, delta).norm().item(), problem.constants.L * gap(at.v, v))


def bound_of_v_delta(problem: LogCoshFamily, x: Tensor, y: Tensor, delta: float) -> Check:
    """||v*_delta|| <= sqrt(C_fy) / mu: the same ball will do"""
    return Check(problem.v_star_delta(x, y, delta).norm().item(), problem.constants.r_v)


def shift_of_v(problem: LogCoshFamily, x: Tensor, y: Tensor, delta: float) -> Check:
    """||v*_delta - v*|| <= L_gyy delta C_fy / (2 mu^3)"""
    k = problem.constants
    truth = gap(problem.v_star_delta(x, y, delta), problem.v_star(x, y))
    return Check(truth, k.L_gyy * delta * k.C_fy / (2 * k.mu**3))


def surrogate_bias(problem: LogCoshFamily, x: Tensor, y: Tensor, delta: float) -> Check:
    """||d_x(x, y, v*_delta; delta) - grad Phi|| <= Lam ||y - y*|| + b,

    b = (L_gxy / 2 + sqrt(C_gxy) L_gyy / (2 mu)) r_v^2 delta. The only place where delta enters: it leaves a floor of
    order delta^2 in ||grad Phi||^2.
    """
    v = problem.v_star_delta(x, y, delta)
    truth = gap(problem.directions(x, y, v, delta).x.mean(0), problem.hypergradient(x))
    return Check(truth, problem.constants.Lam * gap(y, problem.y_star(x)) + problem.constants.bias(delta))


# How small delta must be


def delta_limit(k: Constants, eta_f: float, eta_R: float) -> float:
    """The largest delta with 4 L_gxy r_v^2 delta <= eta_f / 2 and 4 L_gyy r_v^2 delta <= eta_R / 2.

    What the proof of lm:mergeV_free needs (eq:1subetaf_free, eq:firscoeefient_free).
    """
    return min(_ratio(eta_f, 8 * k.L_gxy * k.r_v**2), _ratio(eta_R, 8 * k.L_gyy * k.r_v**2))


def delta_limit_as_printed(k: Constants, eta_f: float, eta_R: float) -> float:
    """th:hessianfree, def:parameters_free: the same with L_gxy in both: no condition at all when J is constant"""
    return min(_ratio(eta_f, 8 * k.L_gxy * k.r_v**2), _ratio(eta_R, 8 * k.L_gxy * k.r_v**2))


def difference_margin(k: Constants, eta_R: float, delta: float) -> Check:
    """eq:firscoeefient_free: 4 L_gyy r_v^2 delta <= eta_R / 2: momentum must forget faster than differences mislead"""
    return Check(4 * k.L_gyy * k.r_v**2 * delta, eta_R / 2)


# Pieces


def _distance(one: Point, two: Point) -> float:
    """||(x1, y1) - (x2, y2)||^2."""
    return sq(one.x - two.x) + sq(one.y - two.y)


def _extremes(H: Tensor) -> tuple[float, float]:
    spectrum = torch.linalg.eigvalsh(H)
    return spectrum[0].item(), spectrum[-1].item()


def _factor_as_printed(mu: float, L: float, lam: float) -> float:
    return 1 - 2 * lam * (L + L**3) * mu / (mu + L) + lam**2 * L**2


def _A_as_printed(k: Constants) -> float:
    return k.L_fy**2 / k.mu**2 + k.C_fy**2 * k.L_gyy**2 / k.mu**4


def _Lam_as_printed(k: Constants) -> float:
    """L of lm:3ieq with the undefined C_y read as sqrt(C_fy)."""
    return k.L_fx + k.L_fy * k.C_gxy / k.mu + k.root_C_fy * (k.L_gxy / k.mu + k.L_gyy * k.C_gxy / k.mu**2)


def _sigma_f2(problem: LogCoshFamily, at: Point) -> float:
    """sigma_f^2 of lm:B, with the sigmas of this point."""
    sigma = problem.variances(at.x, at.y)
    return 2 * (sigma.f_x + problem.constants.r_v**2 * sigma.g_xy)


def _difference_errors(problem: LogCoshFamily, at: Point, delta: float) -> tuple[float, float]:
    """The largest ||H_delta v - H v|| and ||J_delta v - J v|| over the samples."""
    pairs = zip(problem.products(*at, delta), problem.products(*at), strict=True)
    H_error, J_error = ((seen - true).norm(dim=1).max().item() for seen, true in pairs)
    return H_error, J_error


def _mean_error(problem: LogCoshFamily, step: Step, eta: float, delta: float | None = None) -> Directions:
    """E ||h_{t+1} - d(to)||^2 of the three estimators, d exact."""
    after, true = momentum(problem, step, eta, delta), problem.directions(*step.to)
    return Directions(*((h - d.mean(0)).square().sum(1).mean().item() for h, d in zip(after, true, strict=True)))


def _moves(problem: LogCoshFamily, step: Step) -> float:
    """alpha^2 ||h^f||^2 + 2 beta^2 (||e^g||^2 + ||grad_y g||^2) >= ||dx||^2 + ||dy||^2."""
    g_y = problem.g_y(step.at.x, step.at.y).mean(0)
    return step.alpha**2 * sq(step.h.x) + 2 * step.beta**2 * (sq(errors(problem, step).y) + sq(g_y))


def _upper_moves(problem: LogCoshFamily, step: Step) -> float:
    """L_F^2 `_moves` + 2 C_gxy lam^2 (||e^R||^2 + L^2 ||v - v*||^2)."""
    k, (x, y, v) = problem.constants, step.at
    helper = sq(errors(problem, step).v) + k.L**2 * sq(v - problem.v_star(x, y))
    return k.L_F**2 * _moves(problem, step) + 2 * k.C_gxy * step.lam**2 * helper


def _change_in_v(problem: LogCoshFamily, at: Point, v: Tensor, delta: float) -> Tensor:
    one, two = problem.directions(*at, delta).v, problem.directions(at.x, at.y, v, delta).v
    return (one - two).mean(0)


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else math.inf
