"""v* lies in a ball; v*, d_x, y* and grad Phi are Lipschitz: lm:boundofv, lm:boundofgradf, lm:B, lm:3ieq."""

import dataclasses
import math

from torch import Tensor

from bilevel_book.theory.check import Check, Point, distance, squared_distance
from bilevel_book.theory.families import Constants, LogCoshFamily, variance
from bilevel_core.directions import project

# v* and the ball


def bound_of_v(problem: LogCoshFamily, x: Tensor, y: Tensor) -> Check:
    """lm:boundofv: ||v*(x, y)|| <= sqrt(C_fy) / mu"""
    return Check(problem.v_star(x, y).norm().item(), problem.constants.r_v)


def radius_as_printed(problem: LogCoshFamily, x: Tensor, y: Tensor) -> Check:
    """th:main, th:hessianfree: ||v*(x, y)|| <= C_fy / mu, what the radius of the theorems would need"""
    return Check(problem.v_star(x, y).norm().item(), problem.constants.C_fy / problem.constants.mu)


def projection(w: Tensor, u: Tensor, r_v: float) -> Check:
    """eq:vgaps, step (b): ||P(w) - u|| <= ||w - u|| for every u in the ball (not for others)"""
    return Check(distance(project(w, r_v), u), distance(w, u))


def v_star_moves(problem: LogCoshFamily, one: Point, two: Point) -> Check:
    """eq:vt1star: ||v*(z1) - v*(z2)|| <= (L_fy / mu + sqrt(C_fy) L_gyy / mu^2) ||z1 - z2||, z = (x, y)"""
    truth = distance(problem.v_star(one.x, one.y), problem.v_star(two.x, two.y))
    return Check(truth, problem.constants.L_v * math.sqrt(squared_distance(one, two)))


def v_star_moves_as_printed(problem: LogCoshFamily, one: Point, two: Point) -> Check:
    """prop:hessian_free_v, lm:vv (end), lm:vv_free: the squares of both sides, at most doubled, with C_fy^2 for C_fy"""
    bound = squared_speed(problem.constants, problem.constants.C_fy**2) * squared_distance(one, two)
    return Check(v_star_moves(problem, one, two).truth ** 2, bound)


def squared_speed(k: Constants, C_fy: float) -> float:
    """2 (L_fy^2 / mu^2 + C_fy L_gyy^2 / mu^4), which the paper has for L_v^2."""
    return 2 * (k.L_fy**2 / k.mu**2 + C_fy * k.L_gyy**2 / k.mu**4)


# The surrogate d_x, y* and grad Phi


def surrogate_moves(problem: LogCoshFamily, one: Point, two: Point, delta: float | None = None) -> Check:
    """lm:boundofgradf: ||d_x(z1, v) - d_x(z2, v)|| <= L_F ||z1 - z2|| for ||v|| <= r_v and every sample, z = (x, y)

    v is that of `one`. With delta, J v is a central difference: the same constant.
    """
    d1 = problem.directions(one.x, one.y, one.v, delta).x
    d2 = problem.directions(two.x, two.y, one.v, delta).x
    return Check(
        (d1 - d2).norm(dim=1).max().item(),
        squared_L_F(problem.constants) ** 0.5 * math.sqrt(squared_distance(one, two)),
    )


def squared_L_F(k: Constants) -> float:
    """2 (L_fx^2 + L_gxy^2 r_v^2), the paper's L_F^2; M_x^2 is at most this."""
    return 2 * (k.L_fx**2 + (k.L_gxy * k.r_v) ** 2)


def surrogate_variance(problem: LogCoshFamily, at: Point) -> Check:
    """lm:B: E ||d_x(xi) - d_x||^2 <= sigma_f^2 = 2 (sigma_fx^2 + r_v^2 sigma_gxy^2)"""
    return Check(variance(problem.directions(*at).x), sigma_f2(problem, at))


def sigma_f2(problem: LogCoshFamily, at: Point) -> float:
    """sigma_f^2 of lm:B, with the sigmas of this point."""
    sigma = problem.variances(at.x, at.y)
    return 2 * (sigma.f_x + problem.constants.r_v**2 * sigma.g_xy)


def surrogate_error(problem: LogCoshFamily, x: Tensor, y: Tensor) -> Check:
    """lm:3ieq, first inequality: ||d_x(x, y, v*(x, y)) - grad Phi(x)|| <= Lam ||y - y*(x)||"""
    truth = _surrogate_error(problem, x, y, problem.v_star(x, y))
    return Check(truth, problem.constants.Lam * distance(y, problem.y_star(x)))


def surrogate_error_as_printed(problem: LogCoshFamily, x: Tensor, y: Tensor, v: Tensor) -> Check:
    """lm:3ieq: ||d_x(x, y, v) - grad Phi(x)|| <= L ||y - y*(x)|| for ANY v, L made of C_gxy without the root"""
    return Check(_surrogate_error(problem, x, y, v), _without_root(problem).Lam * distance(y, problem.y_star(x)))


def _surrogate_error(problem: LogCoshFamily, x: Tensor, y: Tensor, v: Tensor) -> float:
    return distance(problem.directions(x, y, v).x.mean(0), problem.hypergradient(x))


def y_star_moves(problem: LogCoshFamily, x1: Tensor, x2: Tensor) -> Check:
    """lm:3ieq, second inequality: ||y*(x1) - y*(x2)|| <= sqrt(C_gxy) / mu ||x1 - x2||"""
    return Check(distance(problem.y_star(x1), problem.y_star(x2)), problem.constants.L_y * distance(x1, x2))


def y_star_moves_as_printed(problem: LogCoshFamily, x1: Tensor, x2: Tensor) -> Check:
    """lm:3ieq, second inequality: the same with C_gxy / mu, a squared bound"""
    return Check(distance(problem.y_star(x1), problem.y_star(x2)), _without_root(problem).L_y * distance(x1, x2))


def hypergradient_moves(problem: LogCoshFamily, x1: Tensor, x2: Tensor) -> Check:
    """lm:3ieq, third inequality: ||grad Phi(x1) - grad Phi(x2)|| <= Lam sqrt(1 + L_y^2) ||x1 - x2||"""
    return Check(
        distance(problem.hypergradient(x1), problem.hypergradient(x2)), problem.constants.L_Phi * distance(x1, x2)
    )


def hypergradient_moves_as_printed(problem: LogCoshFamily, x1: Tensor, x2: Tensor) -> Check:
    """lm:3ieq, third inequality: the same with L (1 + C_gxy / mu), no roots"""
    truth, wrong = distance(problem.hypergradient(x1), problem.hypergradient(x2)), _without_root(problem)
    return Check(truth, wrong.Lam * (1 + wrong.L_y) * distance(x1, x2))


def _without_root(problem: LogCoshFamily) -> Constants:
    """The constants with C_gxy where its root belongs: Lam is `L` of lm:3ieq, the undefined C_y read as sqrt(C_fy)."""
    return dataclasses.replace(problem.constants, C_gxy=problem.constants.C_gxy**2)
