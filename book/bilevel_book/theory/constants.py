"""The constants of Theorems 1 (FdeHBO) and 2 (FMBO): what the assumptions say about f and g in numbers, what the proofs
choose, as printed and corrected, and what that does to their potential. All of it is arithmetic on numbers.

The steps are alpha_t = (w + t)^-1/3, beta_t = c_beta alpha_t, lam_t = c_lam alpha_t, eta_{t+1} = c alpha_t^2 with
c = c_f, c_g, c_R; K_1, K_2 and the three cbar are weights of the potential (def:potentialF, def:potentialF_free)

    V_t = Phi(x_t) + K_1 |y_t - y*|^2 + K_2 |v_t - v*|^2
          + (|e^f_t|^2 / cbar_f + |e^g_t|^2 / cbar_g + |e^R_t|^2 / cbar_R) / alpha_{t-1},

with y* = y*(x_t), v* = v*(x_t, y_t), and e the errors of the three momentum estimates h. One step changes V by at most
-alpha_t/2 |grad Phi|^2, plus noise, plus a sum of seven squares with coefficients. The lemma lm:mergeV holds if no
coefficient is positive: `coefficients` adds them up.
"""

import dataclasses
from dataclasses import dataclass
from math import expm1, log1p, sqrt

import torch

QUANTITIES = ("|h^f|^2", "|y - y*|^2", "|v - v*|^2", "|grad_y g|^2", "|e^f|^2", "|e^g|^2", "|e^R|^2")
PARTS = ("Phi", "K_1", "K_2", "cbar_f", "cbar_g", "cbar_R")  # the six parts of V, by their weights


@dataclass(frozen=True)
class ProblemConstants:
    """What Assumptions 1 to 3 say about f and g. Beware: C_gxy and C_fy bound *squared* norms.

    mu, L: strong convexity of g(x, .), Lipschitz constant of grad_y g; L_gyy, L_gxy: of the second derivatives;
    C_gxy >= |grad_xy g|^2; L_fx, L_fy: Lipschitz constants of the gradients of f; C_fy >= |grad_y f|^2.
    """

    mu: float = 1.0
    L: float = 2.0
    L_gyy: float = 1.0
    L_gxy: float = 1.0
    C_gxy: float = 1.0
    L_fx: float = 1.0
    L_fy: float = 1.0
    C_fy: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.mu <= self.L:
            raise ValueError(f"need 0 < mu <= L, got {self}")
        if min(self.L_gyy, self.L_gxy, self.C_gxy, self.L_fx, self.L_fy, self.C_fy) < 0:
            raise ValueError(f"a bound cannot be negative, got {self}")

    @property
    def root_C_gxy(self) -> float:
        """A bound on |grad_xy g| itself."""
        return sqrt(self.C_gxy)

    @property
    def root_C_fy(self) -> float:
        """A bound on |grad_y f| itself."""
        return sqrt(self.C_fy)

    @property
    def L_mu(self) -> float:
        """mu L / (mu + L): a step of size s <= 2 / (mu + L) contracts squared distances by 1 - 2 s L_mu."""
        return self.mu * self.L / (self.mu + self.L)

    @property
    def r_v(self) -> float:
        """sqrt(C_fy) / mu, which bounds |v*| (lm:boundofv). The theorems print C_fy / mu."""
        return self.root_C_fy / self.mu

    @property
    def L_y(self) -> float:
        """sqrt(C_gxy) / mu, the Lipschitz constant of y*; lm:3ieq prints it without the root."""
        return self.root_C_gxy / self.mu

    @property
    def Lam(self) -> float:
        """|F(x, y, v*(x, y)) - grad Phi(x)| <= Lam |y - y*(x)|: `L` of lm:3ieq, with the roots."""
        return self.L_fx + self.L_fy * self.L_y + self.r_v * (self.L_gxy + self.L_gyy * self.L_y)

    @property
    def L_f(self) -> float:
        """Lam (1 + L_y), the Lipschitz constant of grad Phi."""
        return self.Lam * (1 + self.L_y)

    @property
    def L_F2(self) -> float:
        """2 (L_fx^2 + L_gxy^2 r_v^2): the square of the Lipschitz constant L_F of F in (x, y)."""
        return 2 * (self.L_fx**2 + (self.L_gxy * self.r_v) ** 2)

    @property
    def L_F(self) -> float:
        """F is L_F-Lipschitz in (x, y) while v is in the ball (lm:boundofgradf)."""
        return sqrt(self.L_F2)

    @property
    def L_R(self) -> float:
        """sqrt(2 (L_gyy^2 r_v^2 + L_fy^2)): grad_v R is L_R-Lipschitz in (x, y), v in the ball (eq:r_error_v)."""
        return sqrt(2 * self.M)

    @property
    def L_v(self) -> float:
        """L_fy / mu + sqrt(C_fy) L_gyy / mu^2: v* is L_v-Lipschitz in (x, y); L_v^2 <= 2 A."""
        return (self.L_fy + self.r_v * self.L_gyy) / self.mu

    @property
    def M(self) -> float:
        """L_gyy^2 r_v^2 + L_fy^2: half the squared Lipschitz constant of grad_v R in (x, y)."""
        return (self.L_gyy * self.r_v) ** 2 + self.L_fy**2

    @property
    def A(self) -> float:
        """(L_fy / mu)^2 + C_fy L_gyy^2 / mu^4: half the squared Lipschitz constant of v*(x, y)."""
        return self.M / self.mu**2

    @property
    def A_printed(self) -> float:
        """A with C_fy^2 for C_fy (prop:hessian_free_v, lm:vv_free)."""
        return dataclasses.replace(self, C_fy=self.C_fy**2).A

    @property
    def B_printed(self) -> float:
        """L_fy^2 + C_fy L_gxy^2 / mu^2, the combination that the printed constants are built with."""
        return self.L_fy**2 + (self.L_gxy * self.r_v) ** 2

    def bias(self, delta: float) -> float:
        """b = (L_gxy + L_gyy L_y) r_v^2 delta / 2: what finite differences do to the hypergradient, at most."""
        return (self.L_gxy + self.L_gyy * self.L_y) * self.r_v**2 * delta / 2


def random_constants(generator: torch.Generator) -> ProblemConstants:
    """Constants over several orders of magnitude, log-uniform: a family on which conditions can be counted.

    C_gxy is at most L^2, as it must be.
    """

    def uniform(low: float, high: float) -> float:
        return low + (high - low) * torch.rand((), generator=generator, dtype=torch.float64).item()

    def power(low: float, high: float) -> float:
        return 10 ** uniform(low, high)

    mu = power(-2, 1)
    L = mu * power(0, 2)
    L_gyy, L_gxy, C_gxy = power(-2, 2), power(-2, 2), (L * uniform(0.01, 1)) ** 2
    return ProblemConstants(mu, L, L_gyy, L_gxy, C_gxy, L_fx=power(-2, 2), L_fy=power(-2, 2), C_fy=power(-3, 2))


# What the proofs choose


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

    In the code q = c_beta^2 L_mu (mu + L) / B. Terms that are never the largest, as L_mu <= L, are left out: the last
    one of c_lam, L_mu for mu + L in q, and 3/2 L_mu^2 c_lam^2 in cbar_f.

    `beta` and `lam` (at least 1) enlarge c_beta and c_lam, which the paper allows. Where the print needs L_y, L_f or
    r_v, the corrected ones are used, in favour of the print.
    """
    if min(beta, lam) < 1:
        raise ValueError(f"c_beta and c_lam have lower bounds only, so beta and lam are at least 1, got {beta}, {lam}")
    free = _is_free(method)
    _check_coupled(p)
    C, L, L_mu, total, B = p.C_gxy, p.L, p.L_mu, p.mu + p.L, p.B_printed
    A = p.A_printed if free else p.A
    c_beta = beta * sqrt(512 * p.L_y**2 * B) / L_mu
    c_lam = lam * sqrt(max(1024 * C * A / L_mu**2, 128 * total * C * c_beta**2 / L_mu))
    q = L_mu * c_beta**2 * total / B
    cbar_f = max(96 * p.L_F2, 12 * L**2 * c_lam**2, 48 * p.L_f**2 * q)
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
    c_lam^2 = max{1024 C A / L_mu^2, 64 C A c_beta^2 (mu + L) / (L_mu B)},
    cbar_f = max{96 L_F^2, 12 L_F^2 q, 12 L^2 c_lam^2},   q = c_beta^2 L_mu (mu + L) / B,
    cbar_g = max{256 L^2, 32 L^2 q},   cbar_R = 48 L^4 c_lam^2 / C,
    c_f = 1/(3 L_f) + cbar_f,  c_g = 1/(3 L_f) + 32 L^2 c_beta^2 + 11 B / L_mu^2 cbar_g,
    c_R = 1/(3 L_f) + 48 L^2 c_lam^2 + 24 C / L_mu^2 cbar_R,

    and w so large that 2 <= w, alpha <= 1/(3 L_f), beta and lam <= 1/(mu + L), and every eta <= 1. The erratum lists
    a few more terms in these maxima, which are never the largest because L_mu <= L / 2 and L_mu <= mu <= L.

    For FdeHBO the finite differences are exact derivatives of a nearby problem (Chapter 4), whose momentum lemmas
    are those of FMBO; only the function-value lemma sees the difference, as 4 Lam^2 |y - y*|^2 + 4 b^2.
    """
    _check_coupled(p)
    C, L, L_mu, total = p.C_gxy, p.L, p.L_mu, p.mu + p.L
    B = (2 if _is_free(method) else 1) * p.Lam**2
    c_beta = 16 * sqrt(B) * p.L_y / L_mu
    c_lam = sqrt(max(1024 * C * p.A / L_mu**2, 64 * C * p.A * c_beta**2 * total / (L_mu * B)))
    q = c_beta**2 * L_mu * total / B
    cbar_f = max(96 * p.L_F2, 12 * p.L_F2 * q, 12 * L**2 * c_lam**2)
    cbar_g = max(256 * L**2, 32 * L**2 * q)
    cbar_R = 48 * L**4 * c_lam**2 / C
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


# The potential


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
    in_f, in_g, in_R = 6 * p.L_F2 / c.cbar_f, 32 * L**2 * beta2, c.factor_R * p.M / c.cbar_R
    moves_y = {"K_2": 2 * follow * beta2, "cbar_f": 2 * in_f * beta2, "cbar_R": 2 * in_R * beta2}
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
        step: {"K_1": -c.K_1 * c.c_beta * (2 / (p.mu + L) - c.c_beta * alpha), "cbar_g": in_g / c.cbar_g, **moves_y},
        e_f: {"Phi": 1.0, "cbar_f": _forgetting(c, c.c_f, 0.0, t) / c.cbar_f},
        e_g: {"K_1": c.K_1 * 2 * c.c_beta / L_mu, "cbar_g": _forgetting(c, c.c_g, in_g, t) / c.cbar_g, **moves_y},
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
    return 2 * p.L_F2


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
