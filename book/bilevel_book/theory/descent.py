"""One step lowers Phi and brings y and v closer to their moving targets: lm:corefunction, lm:yy, lm:vv, their twins."""

import torch
from torch import Tensor

from bilevel_book.theory.check import Check, Step, bound_on_move, errors, sq
from bilevel_book.theory.families import LogCoshFamily
from bilevel_book.theory.lipschitz import squared_speed

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


def _factor_as_printed(mu: float, L: float, lam: float) -> float:
    """The factor of ||v - v*||^2 in eq:vtlambda."""
    return 1 - 2 * lam * (L + L**3) * mu / (mu + L) + lam**2 * L**2


def _extremes(H: Tensor) -> tuple[float, float]:
    """mu and L: the smallest and the largest eigenvalue."""
    spectrum = torch.linalg.eigvalsh(H)
    return spectrum[0].item(), spectrum[-1].item()


# One step of the algorithms


def function_descent(problem: LogCoshFamily, step: Step) -> Check:
    """lm:corefunction, lm:corefunction_free, for any h_x and any alpha >= 0:

    Phi(x_{t+1}) <= Phi(x_t) - alpha/2 ||grad Phi||^2 - alpha/2 (1 - alpha L_Phi) ||h_x||^2
                    + alpha ||e_x||^2 + 2 alpha Lam^2 ||y - y*||^2 + 2 alpha C_gxy ||v - v*(x, y)||^2
    """
    return _function_descent(problem, step, 2 * problem.constants.Lam**2)


def function_descent_as_printed(problem: LogCoshFamily, step: Step) -> Check:
    """lm:corefunction, lm:corefunction_free: the same with 4 (L_fx^2 + C_fy L_gxy^2 / mu^2) for 2 Lam^2"""
    k = problem.constants
    return _function_descent(problem, step, 4 * (k.L_fx**2 + (k.L_gxy * k.r_v) ** 2))


def _function_descent(problem: LogCoshFamily, step: Step, y_price: float) -> Check:
    """y_price: the factor of alpha ||y - y*||^2."""
    k, (x, y, v), alpha = problem.constants, step.at, step.alpha
    bound = (
        problem.objective(x).item()
        - alpha / 2 * sq(problem.hypergradient(x))
        - alpha / 2 * (1 - alpha * k.L_Phi) * sq(step.h.x)
        + alpha * sq(errors(problem, step).x)
        + alpha * y_price * sq(y - problem.y_star(x))
        + 2 * alpha * k.C_gxy * sq(v - problem.v_star(x, y))
    )
    return Check(problem.objective(step.to.x).item(), bound)


def lower_descent(problem: LogCoshFamily, step: Step, gamma: float, gamma2: float) -> Check:
    """lm:yy, lm:yy_free, for ALL gamma, gamma2 > 0 and beta >= 0 (printed: for some):

    ||y_{t+1} - y*_{t+1}||^2 <= (1 + gamma) (1 + gamma2) [(1 - 2 beta L_mu) ||y - y*||^2
                                                         - (2 beta / (mu + L) - beta^2) ||grad_y g||^2]
                                + (1 + 1/gamma) L_y^2 alpha^2 ||h_x||^2
                                + (1 + gamma) (1 + 1/gamma2) beta^2 ||e_y||^2
    """
    k, at, to, beta = problem.constants, step.at, step.to, step.beta
    inside = (1 - 2 * beta * k.L_mu) * sq(at.y - problem.y_star(at.x))
    inside -= (2 * beta / (k.mu + k.L) - beta**2) * sq(problem.g_y(at.x, at.y).mean(0))
    bound = (
        (1 + gamma) * (1 + gamma2) * inside
        + (1 + 1 / gamma) * k.L_y**2 * sq(to.x - at.x)
        + (1 + gamma) * (1 + 1 / gamma2) * beta**2 * sq(errors(problem, step).y)
    )
    return Check(sq(to.y - problem.y_star(to.x)), bound)


def adjoint_descent(problem: LogCoshFamily, step: Step, gamma: float, gamma2: float) -> Check:
    """lm:vv, prop:hessian_free_v, lm:vv_free, for all gamma, gamma2 > 0 and 0 <= lam <= 2 / (mu + L):

    ||v_{t+1} - v*_{t+1}||^2 <= (1 + gamma) (1 + gamma2) (1 - lam mu)^2 ||v - v*||^2
                                + (1 + gamma) (1 + 1/gamma2) lam^2 ||e_v||^2
                                + (1 + 1/gamma) L_v^2 [alpha^2 ||h_x||^2 + 2 beta^2 (||e_y||^2 + ||grad_y g||^2)]
    """
    k = problem.constants
    return _v_descent(problem, step, gamma, gamma2, (1 - step.lam * k.mu) ** 2, k.L_v**2)


def adjoint_descent_as_printed(problem: LogCoshFamily, step: Step, gamma: float, gamma2: float) -> Check:
    """lm:vv: the same with the factor 1 - 2 lam (L + L^3) mu / (mu + L) + lam^2 L^2, and `squared_speed` for L_v^2"""
    k = problem.constants
    return _v_descent(problem, step, gamma, gamma2, _factor_as_printed(k.mu, k.L, step.lam), squared_speed(k, k.C_fy))


def adjoint_descent_free_as_printed(problem: LogCoshFamily, step: Step, gamma: float, gamma2: float) -> Check:
    """prop:hessian_free_v, lm:vv_free: that factor, and C_fy^2 in `squared_speed`"""
    k = problem.constants
    return _v_descent(
        problem, step, gamma, gamma2, _factor_as_printed(k.mu, k.L, step.lam), squared_speed(k, k.C_fy**2)
    )


def _v_descent(problem: LogCoshFamily, step: Step, gamma: float, gamma2: float, factor: float, speed: float) -> Check:
    """factor: what the step on the linear system leaves of ||v - v*||^2; speed: the squared speed of v*."""
    at, to = step.at, step.to
    bound = (
        (1 + gamma) * (1 + gamma2) * factor * sq(at.v - problem.v_star(at.x, at.y))
        + (1 + gamma) * (1 + 1 / gamma2) * step.lam**2 * sq(errors(problem, step).v)
        + (1 + 1 / gamma) * speed * bound_on_move(problem, step)
    )
    return Check(sq(to.v - problem.v_star(to.x, to.y)), bound)
