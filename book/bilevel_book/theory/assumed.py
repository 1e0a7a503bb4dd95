"""What the assumptions say about f and g in numbers, and the constants that the lemmas make of them."""

from dataclasses import dataclass
from math import sqrt

import torch


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
    return ProblemConstants(
        mu=mu,
        L=L,
        L_gyy=power(-2, 2),
        L_gxy=power(-2, 2),
        C_gxy=(L * uniform(0.01, 1)) ** 2,
        L_fx=power(-2, 2),
        L_fy=power(-2, 2),
        C_fy=power(-3, 2),
    )
