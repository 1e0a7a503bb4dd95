"""The schedules of Theorems 1 and 2."""

from bilevel_core.schedules import Power, Rate


def theorem(
    w: float = 8.0, c_alpha: float = 1.0, c_beta: float = 1.0, c_lam: float = 1.0, c_eta: float = 1.0
) -> dict[str, Power]:
    """Keyword arguments of FMBO and FdeHBO; the proof's own constants are far too large to run, these are practical.

    alpha_t = c_alpha (w + t)^-1/3,  beta_t = c_beta (w + t)^-1/3,  lam_t = c_lam (w + t)^-1/3,
    eta_{t+1} = c_eta (w + t)^-2/3,  capped at 1 (eta_0 = 1 always). The paper has c_alpha = 1.
    """
    eta = Power(c_eta, w - 1, 2 / 3, cap=1.0)
    return {"alpha": Power(c_alpha, w), "beta": Power(c_beta, w), "lam": Power(c_lam, w), "eta": eta}


def value_at(rate: Rate, t: int) -> float:
    """The value of a float or a schedule at time t."""
    return rate(t) if callable(rate) else rate
