"""The potential of the proofs, and what one step changes it by.

The proofs follow one number down, the potential (def:potentialF, def:potentialF_free)

    V_t = Phi(x_t) + K_1 |y_t - y*|^2 + K_2 |v_t - v*|^2
          + (|e^f_t|^2 / cbar_f + |e^g_t|^2 / cbar_g + |e^R_t|^2 / cbar_R) / alpha_{t-1},

with y* = y*(x_t), v* = v*(x_t, y_t), and e the errors of the three momentum estimates h. One step changes V by at most
-alpha_t/2 |grad Phi|^2, plus noise, plus a sum of seven squares with coefficients. The lemma lm:mergeV holds if no
coefficient is positive: `coefficients` adds them up.
"""

from math import expm1, log1p

from bilevel_book.theory.assumed import ProblemConstants
from bilevel_book.theory.chosen import ProofConstants

QUANTITIES = ("|h^f|^2", "|y - y*|^2", "|v - v*|^2", "|grad_y g|^2", "|e^f|^2", "|e^g|^2", "|e^R|^2")
PARTS = ("Phi", "K_1", "K_2", "cbar_f", "cbar_g", "cbar_R")  # the six parts of V, by their weights


def contributions(
    p: ProblemConstants, c: ProofConstants, t: int = 1000, y_price: float | None = None
) -> dict[str, dict[str, float]]:
    """Who adds what to each coefficient of E[V_{t+1} - V_t] / alpha_t: quantity -> part of V -> number.

    From the lemmas, with h for h^f and steps of time t:

    Phi     -1/2 (1 - alpha L_f) |h|^2 + |e^f|^2 + y_price |y - y*|^2 + 2 C |v - v*|^2              (lm:corefunction)
    K_1     c_beta { -L_mu/2 |y - y*|^2 - (2/(mu + L) - beta) |grad_y g|^2 + 2/L_mu |e^g|^2 }
            + 2 L_y^2 / (c_beta L_mu) |h|^2                                                        (lm:yy)
    K_2     c_lam { -L_mu/2 |v - v*|^2 + 2/L_mu |e^R|^2 }
            + 4 A / (c_lam L_mu) (|h|^2 + 2 c_beta^2 (|e^g|^2 + |grad_y g|^2))                     (lm:vv)
    cbar_f  6 L_F^2 (|h|^2 + 2 c_beta^2 (...)) + 12 C c_lam^2 (|e^R|^2 + L^2 |v - v*|^2)           (lm:errorf)
    cbar_g  16 L^2 |h|^2 + 32 L^2 c_beta^2 |grad_y g|^2                                            (lm:errorg)
    cbar_R  48 M (|h|^2 + 2 c_beta^2 (...)) + 48 L^4 c_lam^2 |v - v*|^2                            (lm:errorR)

    where (...) = |e^g|^2 + |grad_y g|^2, the first three rows are multiplied by 1, K_1, K_2 and the others divided by
    cbar, and each error has the coefficient [(1 - eta)^2 (1 + x) / alpha_t - 1 / alpha_{t-1}] / alpha_t of its own
    recursion, x = 0, 32 L^2 beta^2, 48 L^2 lam^2 (48 is 96 in the printed version for FdeHBO; its delta terms are left
    out). The lemmas are true if `conditions` hold; lm:corefunction with y_price = 2 Lam^2 (default), where the paper
    has 4 (L_fx^2 + C_fy L_gxy^2 / mu^2): `printed_y_price`.
    """
    C, L, L_mu = p.C_gxy, p.L, p.L_mu
    alpha, beta2, lam2 = c.alpha(t), c.c_beta**2, c.c_lam**2
    h, y, v, step, e_f, e_g, e_R = QUANTITIES
    follow = c.K_2 * 4 * p.A / (c.c_lam * L_mu)  # v* follows x and y
    in_f, in_R = 6 * p.L_F2 / c.cbar_f, c.factor_R * p.M / c.cbar_R
    table = {
        h: {
            "Phi": -(1 - alpha * p.L_f) / 2,
            "K_1": c.K_1 * 2 * p.L_y**2 / (c.c_beta * L_mu),
            "K_2": follow,
            "cbar_f": in_f,
            "cbar_g": 16 * L**2 / c.cbar_g,
            "cbar_R": in_R,
        },
        y: {"Phi": c.y_price if y_price is None else y_price, "K_1": -c.K_1 * c.c_beta * L_mu / 2},
        v: {
            "Phi": 2 * C,
            "K_2": -c.K_2 * c.c_lam * L_mu / 2,
            "cbar_f": 12 * C * L**2 * lam2 / c.cbar_f,
            "cbar_R": c.factor_R * L**4 * lam2 / c.cbar_R,
        },
        step: {
            "K_1": -c.K_1 * c.c_beta * (2 / (p.mu + L) - c.c_beta * alpha),
            "K_2": 2 * follow * beta2,
            "cbar_f": 2 * in_f * beta2,
            "cbar_g": 32 * L**2 * beta2 / c.cbar_g,
            "cbar_R": 2 * in_R * beta2,
        },
        e_f: {"Phi": 1.0, "cbar_f": _forgetting(c, c.c_f, 0.0, t) / c.cbar_f},
        e_g: {
            "K_1": c.K_1 * 2 * c.c_beta / L_mu,
            "K_2": 2 * follow * beta2,
            "cbar_f": 2 * in_f * beta2,
            "cbar_g": _forgetting(c, c.c_g, 32 * L**2 * beta2, t) / c.cbar_g,
            "cbar_R": 2 * in_R * beta2,
        },
        e_R: {
            "K_2": c.K_2 * 2 * c.c_lam / L_mu,
            "cbar_f": 12 * C * lam2 / c.cbar_f,
            "cbar_R": _forgetting(c, c.c_R, c.factor_R * L**2 * lam2, t) / c.cbar_R,
        },
    }
    return {quantity: {part: table[quantity].get(part, 0.0) for part in PARTS} for quantity in QUANTITIES}


def coefficients(
    p: ProblemConstants, c: ProofConstants, t: int = 1000, y_price: float | None = None
) -> dict[str, float]:
    """The seven coefficients of E[V_{t+1} - V_t] / alpha_t: the sums of `contributions`. None should be positive."""
    return {name: sum(parts.values()) for name, parts in contributions(p, c, t, y_price).items()}


def balances(p: ProblemConstants, c: ProofConstants, t: int = 1000, y_price: float | None = None) -> dict[str, float]:
    """The seven coefficients over the sum of the absolute values of their parts: numbers from -1 to 1, free of units.

    0: what pushes and what holds are equal; 1: nothing holds. Rounding stays below 1e-14, so that signs can be read.
    """
    table = contributions(p, c, t, y_price)
    return {name: sum(parts.values()) / sum(map(abs, parts.values())) for name, parts in table.items()}


def printed_y_price(p: ProblemConstants) -> float:
    """4 (L_fx^2 + C_fy L_gxy^2 / mu^2): the coefficient of |y - y*|^2 in the printed lm:corefunction."""
    return 4 * (p.L_fx**2 + (p.L_gxy * p.r_v) ** 2)


def bound(
    p: ProblemConstants, c: ProofConstants, T: float, gap: float = 1.0, sigma2: float = 1.0, delta: float = 0.0
) -> float:
    """What the corrected theorem says about the mean of |grad Phi(x_t)|^2 over t < T, for w >= 2:

    (w + T)^1/3 / T [2 gap + (4 c_f^2/cbar_f + 4 c_g^2/cbar_g + 8 c_R^2/cbar_R) sigma^2 log(1 + T/(w - 1))] + 12 b^2

    with gap = E V_0 - inf Phi, all variances sigma^2, b = `bias(delta)`. It needs `conditions` and coefficients <= 0.
    """
    noise = 4 * c.c_f**2 / c.cbar_f + 4 * c.c_g**2 / c.cbar_g + 8 * c.c_R**2 / c.cbar_R
    return (c.w + T) ** (1 / 3) / T * (2 * gap + noise * sigma2 * log1p(T / (c.w - 1))) + 12 * p.bias(delta) ** 2


def _forgetting(c: ProofConstants, c_eta: float, x: float, t: int) -> float:
    """[(1 - eta)^2 (1 + x alpha^2) / alpha_t - 1 / alpha_{t-1}] / alpha_t, eta = c_eta alpha_t^2, alpha_{-1} = alpha_0.

    Written without differences of nearly equal numbers: w may be 1e40.
    """
    alpha = c.alpha(t)
    eta = c_eta * alpha**2
    slower = 0.0 if t == 0 else -expm1(log1p(-1 / (c.w + t)) / 3) / alpha**2  # (1/alpha_t - 1/alpha_{t-1}) / alpha_t
    return slower - c_eta * (2 - eta) + (1 - eta) ** 2 * x
