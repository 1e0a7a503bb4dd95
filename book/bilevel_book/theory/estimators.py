"""Recursive momentum, h+ = d(to) + (1 - eta) (h - d(at)) on one new sample: lm:errorg, lm:errorR, lm:errorf, twins.

Truths are averages over all samples that may be drawn.
"""

from bilevel_book.theory.check import Check, Step, bound_on_move, errors, sq
from bilevel_book.theory.families import LogCoshFamily
from bilevel_book.theory.lipschitz import sigma_f2, squared_L_F
from bilevel_core.directions import Directions


def momentum(problem: LogCoshFamily, step: Step, eta: float, delta: float | None = None) -> Directions:
    """The next estimators h_y, h_v, h_x for every sample that may be drawn (def:htg, def:htR, def:htf)."""
    now, before = problem.directions(*step.to, delta), problem.directions(*step.at, delta)
    return Directions(*(d + (1 - eta) * (h - old) for d, h, old in zip(now, step.h, before, strict=True)))


def lower_error(problem: LogCoshFamily, step: Step, eta: float) -> Check:
    """lm:errorg, lm:errorg_free, as the last line of the proof has it:

    E ||e_y'||^2 <= (1-eta)^2 (1 + 32 L^2 beta^2) ||e_y||^2 + 2 eta^2 sigma_g^2
                         + 16 (1-eta)^2 L^2 alpha^2 ||h_x||^2 + 32 (1-eta)^2 L^2 beta^2 ||grad_y g||^2
    """
    return _lower_error(problem, step, eta, extra_factor=1.0)


def lower_error_as_printed(problem: LogCoshFamily, step: Step, eta: float) -> Check:
    """lm:errorg, lm:errorg_free: the same with ||e_y||^4 for the first ||e_y||^2"""
    return _lower_error(problem, step, eta, extra_factor=sq(errors(problem, step).y))


def _lower_error(problem: LogCoshFamily, step: Step, eta: float, extra_factor: float) -> Check:
    """extra_factor: what the print multiplies (1-eta)^2 ||e_y||^2 by: ||e_y||^2 once more, where 1 is right."""
    k, keep, e_y = problem.constants, (1 - eta) ** 2, sq(errors(problem, step).y)
    bound = (
        keep * (extra_factor + 32 * k.L**2 * step.beta**2) * e_y
        + 2 * eta**2 * problem.variances(step.to.x, step.to.y).g
        + 16 * keep * k.L**2 * step.alpha**2 * sq(step.h.x)
        + 32 * keep * k.L**2 * step.beta**2 * sq(problem.g_y(step.at.x, step.at.y).mean(0))
    )
    return Check(_mean_error(problem, step, eta).y, bound)


def upper_error(problem: LogCoshFamily, step: Step, eta: float) -> Check:
    """lm:errorf:

    E ||e_x'||^2 <= (1-eta)^2 ||e_x||^2 + 2 eta^2 sigma_f^2
                         + 6 (1-eta)^2 [L_F^2 (alpha^2 ||h_x||^2 + 2 beta^2 (||e_y||^2 + ||grad_y g||^2))
                                        + 2 C_gxy lam^2 (||e_v||^2 + L^2 ||v - v*||^2)]
    """
    keep, e_x = (1 - eta) ** 2, sq(errors(problem, step).x)
    bound = keep * e_x + 2 * eta**2 * sigma_f2(problem, step.to) + 6 * keep * _upper_moves(problem, step)
    return Check(_mean_error(problem, step, eta).x, bound)


def upper_error_free(problem: LogCoshFamily, step: Step, eta: float, delta: float) -> Check:
    """prop:HFetf, lm:errorf_free, for h_x made of differences, bias = L_gxy r_v^2 delta:

    E ||e_x'||^2 <= [(1-eta)^2 + 4 bias] ||e_x||^2 + 4 eta^2 sigma_f^2 + 4 bias + 16 bias^2
                         + the terms of lm:errorf with the factor 6
    """
    k, keep, e_x = problem.constants, (1 - eta) ** 2, sq(errors(problem, step).x)
    bias = k.L_gxy * k.r_v**2 * delta
    bound = (keep + 4 * bias) * e_x + 4 * eta**2 * sigma_f2(problem, step.to) + 4 * bias + 16 * bias**2
    return Check(_mean_error(problem, step, eta, delta).x, bound + 6 * keep * _upper_moves(problem, step))


def _upper_moves(problem: LogCoshFamily, step: Step) -> float:
    """L_F^2 times `bound_on_move`, + 2 C_gxy lam^2 (||e_v||^2 + L^2 ||v - v*||^2): the bracket of lm:errorf."""
    k, (x, y, v) = problem.constants, step.at
    of_v = sq(errors(problem, step).v) + k.L**2 * sq(v - problem.v_star(x, y))
    return squared_L_F(k) * bound_on_move(problem, step) + 2 * k.C_gxy * step.lam**2 * of_v


def adjoint_error(problem: LogCoshFamily, step: Step, eta: float) -> Check:
    """lm:errorR:

    E ||e_v'||^2 <= (1-eta)^2 (1 + 48 L^2 lam^2) ||e_v||^2 + 4 eta^2 (sigma_gyy^2 r_v^2 + sigma_fy^2)
                         + 48 (1-eta)^2 (L_gyy^2 r_v^2 + L_fy^2) [alpha^2 ||h_x||^2
                                                                  + 2 beta^2 (||e_y||^2 + ||grad_y g||^2)]
                         + 48 (1-eta)^2 L^4 lam^2 ||v - v*||^2
    """
    return _adjoint_error(problem, step, eta, None, rise=48 * problem.constants.L**2)


def adjoint_error_free(problem: LogCoshFamily, step: Step, eta: float, delta: float) -> Check:
    """prop:hfetR, lm:errorR_free, with L^2 for L^4 and the term of e_v counted once, c = L_gyy r_v^2 delta:

    E ||e_v'||^2 <= [(1-eta)^2 (1 + 96 L^2 lam^2) + 4 c] ||e_v||^2 + 4 c + 8 c^2
                         + twice the other terms of lm:errorR
    """
    return _adjoint_error(problem, step, eta, delta, rise=96 * problem.constants.L**2)


def adjoint_error_free_as_printed(problem: LogCoshFamily, step: Step, eta: float, delta: float) -> Check:
    """prop:hfetR: 96 (L^4 + L^2) lam^2 for 96 L^2 lam^2: wrong units, yet true because the term is counted twice"""
    L = problem.constants.L
    return _adjoint_error(problem, step, eta, delta, rise=96 * (L**4 + L**2))


def _adjoint_error(problem: LogCoshFamily, step: Step, eta: float, delta: float | None, rise: float) -> Check:
    """rise: the factor of (1-eta)^2 lam^2 ||e_v||^2. With delta the noise and the moves count twice."""
    k, keep, e_v = problem.constants, (1 - eta) ** 2, sq(errors(problem, step).v)
    times, c = (1, 0.0) if delta is None else (2, k.L_gyy * k.r_v**2 * delta)
    sigma = problem.variances(step.to.x, step.to.y)
    bound = (
        (keep * (1 + rise * step.lam**2) + 4 * c) * e_v
        + (4 * c + 8 * c**2)
        + times * 4 * eta**2 * (sigma.g_yy * k.r_v**2 + sigma.f_y)
        + times * 48 * keep * ((k.L_gyy * k.r_v) ** 2 + k.L_fy**2) * bound_on_move(problem, step)
        + times * 48 * keep * k.L**4 * step.lam**2 * sq(step.at.v - problem.v_star(step.at.x, step.at.y))
    )
    return Check(_mean_error(problem, step, eta, delta).v, bound)


def _mean_error(problem: LogCoshFamily, step: Step, eta: float, delta: float | None = None) -> Directions:
    """E ||h_{t+1} - d(to)||^2 of the three estimators, d exact."""
    after, true = momentum(problem, step, eta, delta), problem.directions(*step.to)
    return Directions(*((h - d.mean(0)).square().sum(1).mean().item() for h, d in zip(after, true, strict=True)))
