"""What the assumptions say about f and g, in numbers, and the constants that the paper's proofs choose, as printed."""

from dataclasses import dataclass
from math import expm1, log1p, sqrt
from typing import Any, NamedTuple


@dataclass(frozen=True)
class ProblemConstants:
    """The numbers of Assumptions 1 to 3. Beware: C_gxy and C_fy bound *squared* norms.

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
    def r_v(self) -> float:
        """sqrt(C_fy) / mu, which bounds |v*| (lm:boundofv). The theorems print C_fy / mu."""
        return sqrt(self.C_fy) / self.mu

    @property
    def L_mu(self) -> float:
        """mu L / (mu + L): a step of size s <= 2 / (mu + L) contracts squared distances by 1 - 2 s L_mu."""
        return self.mu * self.L / (self.mu + self.L)

    @property
    def L_y(self) -> float:
        """sqrt(C_gxy) / mu, the Lipschitz constant of y*; lm:3ieq prints it without the root."""
        return sqrt(self.C_gxy) / self.mu

    @property
    def M_x(self) -> float:
        """L_fx + r_v L_gxy: d_x is M_x-Lipschitz in (x, y) while v is in the ball."""
        return self.L_fx + self.r_v * self.L_gxy

    @property
    def M_v(self) -> float:
        """L_fy + r_v L_gyy: d_v is M_v-Lipschitz in (x, y) while v is in the ball."""
        return self.L_fy + self.r_v * self.L_gyy

    @property
    def L_v(self) -> float:
        """M_v / mu: v* is L_v-Lipschitz in (x, y)."""
        return self.M_v / self.mu

    @property
    def Lam(self) -> float:
        """M_x + L_y M_v: d_x at v = v*(x, y) is Lam-Lipschitz in (x, y). The `L` of lm:3ieq, with the roots."""
        return self.M_x + self.L_y * self.M_v

    @property
    def L_Phi(self) -> float:
        """Lam sqrt(1 + L_y^2), the Lipschitz constant of grad Phi; lm:3ieq has Lam (1 + L_y) and calls it L_f."""
        return self.Lam * sqrt(1 + self.L_y**2)

    @property
    def theta(self) -> float:
        """(L_gxy + L_gyy L_y) r_v^2 / 2: differences of step delta move the hypergradient by at most theta delta."""
        return (self.L_gxy + self.L_gyy * self.L_y) * self.r_v**2 / 2


class Sizes(NamedTuple):
    """alpha_t, beta_t, lam_t, the three eta_{t+1}, and 1/alpha_t - 1/alpha_{t-1}."""

    alpha: Any
    beta: Any
    lam: Any
    eta_x: Any
    eta_y: Any
    eta_v: Any
    rise: Any


@dataclass(frozen=True)
class ProofConstants:
    """What a proof chooses: the weights of the potential, the factors of the steps, and w in alpha_t = (w + t)^-1/3.

    In the paper a_y and a_v are K_1 and K_2, and p_x, p_y, p_v are one over cbar of f, g and R.
    """

    a_y: Any
    a_v: Any
    p_x: Any
    p_y: Any
    p_v: Any
    c_beta: Any
    c_lam: Any
    c_x: Any
    c_y: Any
    c_v: Any
    w: Any = 2.0

    def sizes(self, t: int) -> Sizes:
        """The step at time t; alpha_{-1} = alpha_0. The rise has no difference of nearly equal numbers."""
        alpha = (self.w + t) ** (-1 / 3)
        rise = 0.0 if t == 0 else -expm1(log1p(-1 / (self.w + t)) / 3) / alpha
        return self.sizes_of(alpha, rise)

    def sizes_of(self, alpha: Any, rise: Any) -> Sizes:
        """beta = c_beta alpha, lam = c_lam alpha, eta = c alpha^2."""
        etas = (c * alpha**2 for c in (self.c_x, self.c_y, self.c_v))
        return Sizes(alpha, self.c_beta * alpha, self.c_lam * alpha, *etas, rise)


def printed(p: ProblemConstants, beta: float = 1.0) -> ProofConstants:
    """def:potentialF and def:parameters as printed. K = L_fy^2 + (L_gxy r_v)^2 and L_R^2 = L_fy^2 + (L_gyy r_v)^2:

        K_1 = 8 K / (c_beta L_mu),  K_2 = 4 C / (c_lam L_mu),  c_beta^2 >= 512 L_y^2 K / L_mu^2,
        c_lam^2 >= max{1024 C L_R^2 / (mu L_mu)^2, 128 (mu + L) C c_beta^2 / L_mu, 128 C c_beta^2},
        w >= max{c_beta (mu + L), c_lam (mu + L) / (2 mu L)}^3 - 1   (and w >= 2, in the proof).

    `beta` >= 1 enlarges c_beta, which the paper allows. L_y, L_Phi and r_v are the corrected ones, and terms of a
    maximum that are never the largest are left out. K_1, K_2, c_beta, c_lam are the same for FdeHBO.
    """
    C, L, L_mu, total = p.C_gxy, p.L, p.L_mu, p.mu + p.L
    K, L_R2 = p.L_fy**2 + (p.L_gxy * p.r_v) ** 2, p.L_fy**2 + (p.L_gyy * p.r_v) ** 2
    c_beta = beta * sqrt(512 * p.L_y**2 * K) / L_mu
    c_lam = sqrt(max(1024 * C * L_R2 / (p.mu * L_mu) ** 2, 128 * total * C * c_beta**2 / L_mu))
    q = L_mu * c_beta**2 * total / K
    cbar_f = max(192 * (p.L_fx**2 + (p.L_gxy * p.r_v) ** 2), 12 * L**2 * c_lam**2, 48 * p.L_Phi**2 * q)
    cbar_g = max(256 * L**2, 128 * L**2 * q)
    cbar_R = max(48 * L**4 * c_lam**2 / C, 384 * L_R2 * q)
    small = 1 / (3 * p.L_Phi)
    return ProofConstants(
        a_y=8 * K / (c_beta * L_mu),
        a_v=4 * C / (c_lam * L_mu),
        p_x=1 / cbar_f,
        p_y=1 / cbar_g,
        p_v=1 / cbar_R,
        c_beta=c_beta,
        c_lam=c_lam,
        c_x=small + cbar_f,
        c_y=small + 32 * L**2 * c_beta**2 + 17 * K / L_mu**2 * cbar_g,
        c_v=small + 48 * L**2 * c_lam**2 + 16 * C / L_mu**2 * cbar_R,
        w=max(2.0, max(c_beta * total, c_lam * total / (2 * p.mu * L)) ** 3 - 1),
    )
