"""The numbers that the proofs of Theorems 1 (FdeHBO) and 2 (FMBO) choose, as printed and corrected.

The steps are alpha_t = (w + t)^-1/3, beta_t = c_beta alpha_t, lam_t = c_lam alpha_t, eta_{t+1} = c alpha_t^2 with
c = c_f, c_g, c_R; K_1, K_2 and the three cbar are weights of the potential, see potential.py.
"""

import dataclasses
from dataclasses import dataclass
from math import sqrt

from bilevel_book.theory.assumed import ProblemConstants


@dataclass(frozen=True)
class ProofConstants:
    """One choice of the eleven numbers of def:potentialF and def:parameters (or their _free versions)."""

    K_1: float
    K_2: float
    c_beta: float
    c_lam: float
    cbar_f: float
    cbar_g: float
    cbar_R: float
    c_f: float
    c_g: float
    c_R: float
    w: float
    y_price: float  # of |y - y*|^2 in the function-value lemma: 2 Lam^2, or 4 Lam^2 on FdeHBO's nearby problem
    factor_R: float = 48.0  # of the moves in the recursion of e^R: 48 in lm:errorR, 96 in lm:errorR_free

    def alpha(self, t: float) -> float:
        return (self.w + t) ** (-1 / 3)


def printed(p: ProblemConstants, method: str = "FMBO", beta: float = 1.0, lam: float = 1.0) -> ProofConstants:
    """def:parameters and def:potentialF (FMBO), def:parameters_free and def:potentialF_free (FdeHBO), as printed.

    With B = L_fy^2 + C_fy L_gxy^2 / mu^2 (the paper's label for it is spelt out every time):

        K_1 = 8 B / (c_beta L_mu),  K_2 = 4 C / (c_lam L_mu),  c_beta^2 >= 512 L_y^2 B / L_mu^2,
        c_lam^2 >= max{1024 C A / L_mu^2, 128 (mu + L) C c_beta^2 / L_mu, 128 C c_beta^2},
        w >= max{c_beta (mu + L), c_lam (mu + L) / (2 mu L)}^3 - 1   (and w >= 2, in the proof).

    In the code q = c_beta^2 L_mu max{L_mu, mu + L} / B.

    `beta` and `lam` (at least 1) enlarge c_beta and c_lam, which the paper allows. Where the print needs L_y, L_f or
    r_v, the corrected ones are used, in favour of the print.
    """
    if min(beta, lam) < 1:
        raise ValueError(f"c_beta and c_lam have lower bounds only, so beta and lam are at least 1, got {beta}, {lam}")
    free = _is_free(method)
    _check_coupled(p)
    C, L, L_mu, total, B = p.C_gxy, p.L, p.L_mu, p.mu + p.L, p.B_printed
    A = p.L_fy**2 / p.mu**2 + p.C_fy ** (2 if free else 1) * p.L_gyy**2 / p.mu**4  # the square is in the print
    c_beta = beta * sqrt(512 * p.L_y**2 * B) / L_mu
    c_lam = lam * sqrt(max(1024 * C * A / L_mu**2, 128 * total * C * c_beta**2 / L_mu, 128 * C * c_beta**2))
    q = L_mu * c_beta**2 * max(L_mu, total) / B
    cbar_f = max(96 * p.L_F2, 12 * L**2 * c_lam**2, 48 * p.L_f**2 * q, 1.5 * L_mu**2 * c_lam**2)
    cbar_g = max(256 * L**2, 128 * L**2 * q)
    twice = 2 if free else 1
    cbar_R = twice * max(768 * p.M, 48 * L**4 * c_lam**2 / C, 384 * p.M * q)
    small = 1 / (3 * p.L_f)
    return ProofConstants(
        K_1=8 * B / (c_beta * L_mu),
        K_2=4 * C / (c_lam * L_mu),
        c_beta=c_beta,
        c_lam=c_lam,
        cbar_f=cbar_f,
        cbar_g=cbar_g,
        cbar_R=cbar_R,
        c_f=twice * (small + cbar_f),
        c_g=small + 32 * L**2 * c_beta**2 + 17 * B / L_mu**2 * cbar_g,
        c_R=twice * (small + twice * 48 * L**2 * c_lam**2 + 16 * C / L_mu**2 * cbar_R),
        w=max(2.0, max(c_beta * total, c_lam * total / (2 * p.mu * L)) ** 3 - 1),
        y_price=2 * p.Lam**2,
        factor_R=twice * 48.0,
    )


def corrected(p: ProblemConstants, method: str = "FMBO") -> ProofConstants:
    """Constants with which every coefficient is at most 0. B = Lam^2 for FMBO and 2 Lam^2 for FdeHBO:

    K_1 = 4 B / (c_beta L_mu),  K_2 = 8 C / (c_lam L_mu),  c_beta = 16 sqrt(B) L_y / L_mu,
    c_lam^2 = max{1024 C A / L_mu^2, 64 C A c_beta^2 / B, 64 C A c_beta^2 (mu + L) / (L_mu B)},
    cbar_f = max{96 L_F^2, 12 L_F^2 q, 12 L^2 c_lam^2, 3/2 L_mu^2 c_lam^2},   q = c_beta^2 L_mu (mu + L) / B,
    cbar_g = max{256 L^2, 32 L^2 q},   cbar_R = max{768 M, 48 L^4 c_lam^2 / C, 96 M q},
    c_f = 1/(3 L_f) + cbar_f,  c_g = 1/(3 L_f) + 32 L^2 c_beta^2 + 11 B / L_mu^2 cbar_g,
    c_R = 1/(3 L_f) + 48 L^2 c_lam^2 + 24 C / L_mu^2 cbar_R,

    and w so large that 2 <= w, alpha <= 1/(3 L_f), beta and lam <= 1/(mu + L), and every eta <= 1.

    For FdeHBO the finite differences are exact derivatives of a nearby problem (Chapter 4), whose momentum lemmas
    are those of FMBO; only the function-value lemma sees the difference, as 4 Lam^2 |y - y*|^2 + 4 b^2.
    """
    _check_coupled(p)
    C, L, L_mu, total = p.C_gxy, p.L, p.L_mu, p.mu + p.L
    B = (2 if _is_free(method) else 1) * p.Lam**2
    c_beta = 16 * sqrt(B) * p.L_y / L_mu
    follow = 64 * C * p.A * c_beta**2 / B
    c_lam = sqrt(max(1024 * C * p.A / L_mu**2, follow, follow * total / L_mu))
    q = c_beta**2 * L_mu * total / B
    cbar_f = max(96 * p.L_F2, 12 * p.L_F2 * q, 12 * L**2 * c_lam**2, 1.5 * L_mu**2 * c_lam**2)
    cbar_g = max(256 * L**2, 32 * L**2 * q)
    cbar_R = max(768 * p.M, 48 * L**4 * c_lam**2 / C, 96 * p.M * q)
    small = 1 / (3 * p.L_f)
    constants = ProofConstants(
        K_1=4 * B / (c_beta * L_mu),
        K_2=8 * C / (c_lam * L_mu),
        c_beta=c_beta,
        c_lam=c_lam,
        cbar_f=cbar_f,
        cbar_g=cbar_g,
        cbar_R=cbar_R,
        c_f=small + cbar_f,
        c_g=small + 32 * L**2 * c_beta**2 + 11 * B / L_mu**2 * cbar_g,
        c_R=small + 48 * L**2 * c_lam**2 + 24 * C / L_mu**2 * cbar_R,
        w=2.0,
        y_price=2 * B,
    )
    return large_enough(p, constants)


def _check_coupled(p: ProblemConstants) -> None:
    if not (p.C_gxy > 0 and p.L_fy > 0):
        raise ValueError(f"the constants of the proof need C_gxy > 0 and L_fy > 0, got {p}")


def large_enough(p: ProblemConstants, c: ProofConstants) -> ProofConstants:
    """The same constants with the smallest w, not below the given one, for which all `conditions` hold."""
    total = p.mu + p.L
    roots = (3 * p.L_f, c.c_beta * total, c.c_lam * total, *(sqrt(eta) for eta in (c.c_f, c.c_g, c.c_R)))
    return dataclasses.replace(c, w=max(2.0, c.w, max(roots) ** 3))


def conditions(p: ProblemConstants, c: ProofConstants) -> dict[str, float]:
    """What the proof needs of w, each as a number that must be at most 1 (at t = 0, where the steps are largest).

    The print has the third, and lam <= 2 mu L / (mu + L) for the fourth: a step size bounded by a curvature.
    """
    alpha, total = c.alpha(0), p.mu + p.L
    return {
        "2 <= w": 2 / c.w,
        "alpha <= 1/(3 L_f)": 3 * p.L_f * alpha,
        "beta <= 1/(mu + L)": c.c_beta * alpha * total,
        "lam <= 1/(mu + L)": c.c_lam * alpha * total,
        "eta <= 1": max(c.c_f, c.c_g, c.c_R) * alpha**2,
    }


def _is_free(method: str) -> bool:
    if method not in ("FMBO", "FdeHBO"):
        raise ValueError(f"method is FMBO or FdeHBO, got {method!r}")
    return method == "FdeHBO"
