"""Finite differences: how far they are from products (lm:boundofeJH), and what the paper asks of delta."""

import dataclasses
import math

from bilevel_book.theory.check import Check, Point, sq
from bilevel_book.theory.families import Constants, LogCoshFamily, variance

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


def difference_variance(problem: LogCoshFamily, at: Point, delta: float, same: bool = True) -> float:
    """E ||H_delta v - E H_delta v||^2 with the same sample at both signs, or with two independent ones.

    Exact: the average over all samples, or over all pairs. With noise of variance sigma^2 in grad_y g that does not
    depend on y, independent samples give sigma^2 / (2 delta^2) more; the same sample cancels it.
    """
    plus = problem.g_y(at.x, at.y + delta * at.v)
    minus = problem.g_y(at.x, at.y - delta * at.v)
    pairs = plus - minus if same else (plus.unsqueeze(1) - minus).flatten(0, 1)
    return variance(pairs / (2 * delta))


# How small delta must be


def delta_limit(k: Constants, eta_f: float, eta_R: float) -> float:
    """The largest delta with 4 L_gxy r_v^2 delta <= eta_f / 2 and 4 L_gyy r_v^2 delta <= eta_R / 2.

    What the proof of lm:mergeV_free needs (eq:1subetaf_free, eq:firscoeefient_free).
    """
    limits = [eta / slope for eta, slope in ((eta_f, k.L_gxy), (eta_R, k.L_gyy)) if slope > 0]
    return min(limits, default=math.inf) / (8 * k.r_v**2)


def delta_limit_as_printed(k: Constants, eta_f: float, eta_R: float) -> float:
    """th:hessianfree, def:parameters_free: the same with L_gxy in both: no condition at all when J is constant"""
    return delta_limit(dataclasses.replace(k, L_gyy=k.L_gxy), eta_f, eta_R)
