"""Finite differences: how far they are from products (lm:boundofeJH), and the nearby problem that they solve exactly.

The second half is not in the paper. H_delta v - grad_y f is the gradient in v of another function, R_delta
(`LogCoshFamily.R_delta`), which is as convex as R: delta moves the solution, and does nothing else.
"""

import dataclasses
import math

import torch
from torch import Tensor

from bilevel_book.theory.check import Check, Point, distance, sq
from bilevel_book.theory.families import Constants, LogCoshFamily, variance
from bilevel_core.directions import hessian_vector
from bilevel_core.problem import BilevelProblem

# How far differences are from products


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


def _difference_errors(problem: LogCoshFamily, at: Point, delta: float) -> tuple[float, float]:
    """The largest ||H_delta v - H v|| and ||J_delta v - J v|| over the samples."""
    pairs = zip(problem.products(*at, delta), problem.products(*at), strict=True)
    H_error, J_error = ((seen - true).norm(dim=1).max().item() for seen, true in pairs)
    return H_error, J_error


def difference_at_kink(problem: BilevelProblem, v: Tensor, delta: float) -> Check:
    """lm:boundofeJH: the first bound where it is attained: H = 1 + |y| at y = 0, L_gyy = 1"""
    x, y = problem.start(torch.Generator())
    error = hessian_vector(problem, x, y, v, None, delta) - hessian_vector(problem, x, y, v, None)
    return Check(error.norm().item(), delta * sq(v) / 2)


def difference_variance(problem: LogCoshFamily, at: Point, delta: float, same: bool = True) -> float:
    """E ||H_delta v - E H_delta v||^2 with the same sample at both signs, or with two independent ones.

    Exact: the average over all samples, or over all pairs. With noise of variance sigma^2 in grad_y g that does not
    depend on y, independent samples give sigma^2 / (2 delta^2) more; the same sample cancels it.
    """
    plus = problem.g_y(at.x, at.y + delta * at.v)
    minus = problem.g_y(at.x, at.y - delta * at.v)
    pairs = plus - minus if same else (plus.unsqueeze(1) - minus).flatten(0, 1)
    return variance(pairs / (2 * delta))


# The problem that finite differences solve


def surrogate_monotone(problem: LogCoshFamily, at: Point, v: Tensor, delta: float) -> Check:
    """mu ||v - v'||^2 <= <grad R_delta(v) - grad R_delta(v'), v - v'>: R_delta is mu-strongly convex"""
    change = _change_in_v(problem, at, v, delta)
    return Check(problem.constants.mu * sq(at.v - v), (change @ (at.v - v)).item())


def surrogate_smooth(problem: LogCoshFamily, at: Point, v: Tensor, delta: float) -> Check:
    """||grad R_delta(v) - grad R_delta(v')|| <= L ||v - v'||"""
    return Check(_change_in_v(problem, at, v, delta).norm().item(), problem.constants.L * distance(at.v, v))


def _change_in_v(problem: LogCoshFamily, at: Point, v: Tensor, delta: float) -> Tensor:
    """grad R_delta(at.v) - grad R_delta(v)."""
    one, two = problem.directions(*at, delta).v, problem.directions(at.x, at.y, v, delta).v
    return (one - two).mean(0)


def bound_of_v_delta(problem: LogCoshFamily, x: Tensor, y: Tensor, delta: float) -> Check:
    """||v*_delta|| <= sqrt(C_fy) / mu: the same ball will do"""
    return Check(problem.v_star_delta(x, y, delta).norm().item(), problem.constants.r_v)


def shift_of_v(problem: LogCoshFamily, x: Tensor, y: Tensor, delta: float) -> Check:
    """||v*_delta - v*|| <= L_gyy delta C_fy / (2 mu^3)"""
    k = problem.constants
    truth = distance(problem.v_star_delta(x, y, delta), problem.v_star(x, y))
    return Check(truth, k.L_gyy * delta * k.r_v**2 / (2 * k.mu))


def surrogate_bias(problem: LogCoshFamily, x: Tensor, y: Tensor, delta: float) -> Check:
    """||d_x(x, y, v*_delta; delta) - grad Phi|| <= Lam ||y - y*|| + b,

    b = (L_gxy / 2 + sqrt(C_gxy) L_gyy / (2 mu)) r_v^2 delta. The only place where delta enters: it leaves a floor of
    order delta^2 in ||grad Phi||^2.
    """
    v = problem.v_star_delta(x, y, delta)
    truth = distance(problem.directions(x, y, v, delta).x.mean(0), problem.hypergradient(x))
    return Check(truth, problem.constants.Lam * distance(y, problem.y_star(x)) + problem.constants.bias(delta))


# How small delta must be


def delta_limit(k: Constants, eta_f: float, eta_R: float) -> float:
    """The largest delta with 4 L_gxy r_v^2 delta <= eta_f / 2 and 4 L_gyy r_v^2 delta <= eta_R / 2.

    What the proof of lm:mergeV_free needs (eq:1subetaf_free, eq:firscoeefient_free).
    """
    return min(_ratio(eta_f, k.L_gxy), _ratio(eta_R, k.L_gyy)) / (8 * k.r_v**2)


def delta_limit_as_printed(k: Constants, eta_f: float, eta_R: float) -> float:
    """th:hessianfree, def:parameters_free: the same with L_gxy in both: no condition at all when J is constant"""
    return delta_limit(dataclasses.replace(k, L_gyy=k.L_gxy), eta_f, eta_R)


def _ratio(a: float, b: float) -> float:
    """a / b; where b = 0 nothing is asked, so there is no limit."""
    return a / b if b > 0 else math.inf


def difference_margin(k: Constants, eta_R: float, delta: float) -> Check:
    """eq:firscoeefient_free: 4 L_gyy r_v^2 delta <= eta_R / 2: momentum must forget faster than differences mislead"""
    return Check(4 * k.L_gyy * k.r_v**2 * delta, eta_R / 2)
