"""Recursive momentum, h+ = d(to) + (1 - eta) (h - d(at)) on one new sample: lm:errorg, lm:errorR, lm:errorf, twins.

Truths are averages over all samples that may be drawn.
"""

from bilevel_book.theory.check import Check, Step, bound_on_move, errors, sq, squared_distance
from bilevel_book.theory.families import LogCoshFamily, variance
from bilevel_book.theory.lipschitz import sigma_f2
from bilevel_core.directions import Directions


def momentum(problem: LogCoshFamily, step: Step, eta: float, delta: float | None = None) -> Directions:
    """The next estimators h^g, h^R, h^f for every sample that may be drawn (def:htg, def:htR, def:htf)."""
    now, before = problem.directions(*step.to, delta), problem.directions(*step.at, delta)
    return Directions(*(d + (1 - eta) * (h - old) for d, h, old in zip(now, step.h, before, strict=True)))


def lower_error(problem: LogCoshFamily, step: Step, eta: float) -> Check:
    """lm:errorg, lm:errorg_free, as the last line of the proof has it:

    E ||e^g_{t+1}||^2 <= (1-eta)^2 (1 + 32 L^2 beta^2) ||e^g||^2 + 2 eta^2 sigma_g^2
                         + 16 (1-eta)^2 L^2 alpha^2 ||h^f||^2 + 32 (1-eta)^2 L^2 beta^2 ||grad_y g||^2
    """
    return _lower_error(problem, step, eta, extra_factor=1.0)


def lower_error_as_printed(problem: LogCoshFamily, step: Step, eta: float) -> Check:
    """lm:errorg, lm:errorg_free: the same with ||e^g||^4 for the first ||e^g||^2"""
    return _lower_error(problem, step, eta, extra_factor=sq(errors(problem, step).y))


def _lower_error(problem: LogCoshFamily, step: Step, eta: float, extra_factor: float) -> Check:
    """extra_factor: what the print multiplies (1-eta)^2 ||e^g||^2 by: ||e^g||^2 once more, where 1 is right."""
    k, keep, e_g = problem.constants, (1 - eta) ** 2, sq(errors(problem, step).y)
    bound = (
        keep * (extra_factor + 32 * k.L**2 * step.beta**2) * e_g
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
    bound = keep * e_f + 2 * eta**2 * sigma_f2(problem, step.to) + 6 * keep * _upper_moves(problem, step)
    return Check(_mean_error(problem, step, eta).x, bound)


def upper_error_free(problem: LogCoshFamily, step: Step, eta: float, delta: float) -> Check:
    """prop:HFetf, lm:errorf_free, for h^f made of differences, b = L_gxy r_v^2 delta:

    E ||e^f_{t+1}||^2 <= [(1-eta)^2 + 4 b] ||e^f||^2 + 4 eta^2 sigma_f^2 + 4 b + 16 b^2
                         + the terms of lm:errorf with the factor 6
    """
    k, keep, e_f = problem.constants, (1 - eta) ** 2, sq(errors(problem, step).x)
    b = k.L_gxy * k.r_v**2 * delta
    bound = (keep + 4 * b) * e_f + 4 * eta**2 * sigma_f2(problem, step.to) + 4 * b + 16 * b**2
    return Check(_mean_error(problem, step, eta, delta).x, bound + 6 * keep * _upper_moves(problem, step))


def _upper_moves(problem: LogCoshFamily, step: Step) -> float:
    """L_F^2 times `bound_on_move`, + 2 C_gxy lam^2 (||e^R||^2 + L^2 ||v - v*||^2): the bracket of lm:errorf."""
    k, (x, y, v) = problem.constants, step.at
    helper = sq(errors(problem, step).v) + k.L**2 * sq(v - problem.v_star(x, y))
    return k.L_F2 * bound_on_move(problem, step) + 2 * k.C_gxy * step.lam**2 * helper


def helper_error(problem: LogCoshFamily, step: Step, eta: float) -> Check:
    """lm:errorR:

    E ||e^R_{t+1}||^2 <= (1-eta)^2 (1 + 48 L^2 lam^2) ||e^R||^2 + 4 eta^2 (sigma_gyy^2 r_v^2 + sigma_fy^2)
                         + 48 (1-eta)^2 (L_gyy^2 r_v^2 + L_fy^2) [alpha^2 ||h^f||^2
                                                                  + 2 beta^2 (||e^g||^2 + ||grad_y g||^2)]
                         + 48 (1-eta)^2 L^4 lam^2 ||v - v*||^2
    """
    return _helper_error(problem, step, eta, None, e_R_rise=48 * problem.constants.L**2)


def helper_error_free(problem: LogCoshFamily, step: Step, eta: float, delta: float) -> Check:
    """prop:hfetR, lm:errorR_free, with L^2 for L^4 and the term of e^R counted once, c = L_gyy r_v^2 delta:

    E ||e^R_{t+1}||^2 <= [(1-eta)^2 (1 + 96 L^2 lam^2) + 4 c] ||e^R||^2 + 4 c + 8 c^2
                         + twice the other terms of lm:errorR
    """
    return _helper_error(problem, step, eta, delta, e_R_rise=96 * problem.constants.L**2)


def helper_error_free_as_printed(problem: LogCoshFamily, step: Step, eta: float, delta: float) -> Check:
    """prop:hfetR: 96 (L^4 + L^2) lam^2 for 96 L^2 lam^2: wrong units, yet true because the term is counted twice"""
    L = problem.constants.L
    return _helper_error(problem, step, eta, delta, e_R_rise=96 * (L**4 + L**2))


def _helper_error(problem: LogCoshFamily, step: Step, eta: float, delta: float | None, e_R_rise: float) -> Check:
    """e_R_rise: the factor of (1-eta)^2 lam^2 ||e^R||^2. With delta the noise and the moves count twice."""
    k, keep, e_R = problem.constants, (1 - eta) ** 2, sq(errors(problem, step).v)
    times, c = (1, 0.0) if delta is None else (2, k.L_gyy * k.r_v**2 * delta)
    sigma = problem.variances(step.to.x, step.to.y)
    bound = (
        (keep * (1 + e_R_rise * step.lam**2) + 4 * c) * e_R
        + (4 * c + 8 * c**2)
        + times * 4 * eta**2 * (sigma.g_yy * k.r_v**2 + sigma.f_y)
        + times * 48 * keep * k.M * bound_on_move(problem, step)
        + times * 48 * keep * k.L**4 * step.lam**2 * sq(step.at.v - problem.v_star(step.at.x, step.at.y))
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
    z, dv = squared_distance(step.at, step.to), sq(step.to.v - step.at.v)
    now = problem.directions(*step.to, delta)
    e = errors(problem, step, delta)
    after = momentum(problem, step, eta, delta)
    moves = Directions(
        y=2 * k.L**2 * z,
        v=6 * (2 * k.M * z + k.L**2 * dv),
        x=6 * (k.L_F2 * z + k.C_gxy * dv),
    )
    checks = {}
    for name in Directions._fields:
        d, h = getattr(now, name), getattr(after, name)
        truth = (h - d.mean(0)).square().sum(1).mean().item()
        bound = keep * sq(getattr(e, name)) + 2 * eta**2 * variance(d) + keep * getattr(moves, name)
        checks[name] = Check(truth, bound)
    return checks


def _mean_error(problem: LogCoshFamily, step: Step, eta: float, delta: float | None = None) -> Directions:
    """E ||h_{t+1} - d(to)||^2 of the three estimators, d exact."""
    after, true = momentum(problem, step, eta, delta), problem.directions(*step.to)
    return Directions(*((h - d.mean(0)).square().sum(1).mean().item() for h, d in zip(after, true, strict=True)))
