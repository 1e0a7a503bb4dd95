"""Measured rates: the running average of ||grad Phi||^2, its slope on logarithmic axes, and intervals over the seeds.

    A(T) = (1/T) sum_{t<T} ||grad Phi(x_t)||^2        the quantity of the theorems

The runs are those of `benchmarks/rate.py`, stored in results/rate. All are on `Ripples`, with 8 copies, the seeds, for
each noise and start. Every method has the exponents of its own theory and the same constants: 1/2 for the steps along
f, 1 for the others.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from bilevel_book.ripples import Ripples
from bilevel_core.experiments import results_folder
from bilevel_core.schedules import Power
from bilevel_core.solvers import F2SA, F3SA, SOBA, FdeHBO
from bilevel_core.solvers.solver import Solver

CLAIMED = {"FdeHBO": -2 / 3, "SOBA": -1 / 2, "F3SA": -2 / 5, "F2SA": -2 / 7}
CONTROL = "SOBA, 2/3"  # SOBA with a step that shrinks like t^-2/3, for which no theory promises T^-2/3
W = 4.0  # every schedule is c (W + t)^-p
SEEDS = 8
T_QUANTILE = 2.3646  # of Student's t distribution with 7 degrees of freedom, at 0.975
NOISES, STARTS = (0.2, 0.5, 2.0), (0.0, 2.0, 6.0, 20.0)
NOISE, NEAR, FAR = 0.5, 0.0, 20.0
TAUS = {  # where the best lies inside
    "FdeHBO": (1, 3, 10, 32, 100, 316, 1000, 3162),
    "SOBA": (1, 3, 10, 32, 100, 316, 1000, 3162),
    "F3SA": (1, 3, 10, 32, 100, 316),
    "F2SA": (1, 3, 10, 32, 100, 316),
}
SEED_COLUMNS = [str(seed) for seed in range(SEEDS)]


def solver(method: str, frozen: float | None = None) -> Solver:
    """The method with its schedules in t, or with constant steps: each schedule frozen at the time `frozen`.

    With a frozen eta the first steps average all they have seen, eta_t = 1 / (1 + t), until eta is reached.
    """

    def rate(c: float, p: float) -> float | Power:
        power = Power(c, W, p)
        return power if frozen is None else power(frozen)

    def eta(p: float) -> Callable[[int], float]:
        return Power(1.0, W - 1, p, cap=1.0) if frozen is None else lambda t: max(1 / (1 + t), rate(1, p))

    if method in ("SOBA", CONTROL):
        return SOBA(alpha=rate(0.5, 2 / 3 if method == CONTROL else 1 / 2), beta=rate(1, 1 / 2), lam=rate(1, 1 / 2))
    if method == "FdeHBO":  # without a ball: a norm of the whole stack would tie its copies together
        steps = {"alpha": rate(0.5, 1 / 3), "beta": rate(1, 1 / 3), "lam": rate(1, 1 / 3)}
        return FdeHBO(**steps, eta=eta(2 / 3), delta=0.1, r_v=float("inf"))
    if method == "F3SA":
        steps = {"alpha": rate(0.5, 3 / 5), "beta": rate(0.5, 3 / 5), "gamma": rate(1, 2 / 5)}
        return F3SA(**steps, multiplier=rate(1, -1 / 5), eta=eta(4 / 5))
    if method == "F2SA":
        steps = {"alpha": rate(0.5, 5 / 7), "beta": rate(0.5, 5 / 7), "gamma": rate(1, 4 / 7)}
        return F2SA(**steps, multiplier=rate(1, -1 / 7), inner=1)
    raise ValueError(f"no such method: {method}; there are {', '.join([*CLAIMED, CONTROL])}")


def stack(noises: Sequence[float], starts: Sequence[float]) -> Ripples:
    """All pairs (noise, start), each with SEEDS copies."""
    pairs = [(noise, start) for noise in noises for start in starts for _ in range(SEEDS)]
    noise, start = zip(*pairs, strict=True)
    return Ripples(len(pairs), noise=noise, start=start)


def horizons(first: float, last: float, per_decade: int = 10) -> list[int]:
    """Whole numbers from `first` to `last`, evenly spaced on a logarithmic axis."""
    count = round(per_decade * np.log10(last / first)) + 1
    return [int(T) for T in np.unique(np.geomspace(first, last, count).round())]


def averages(problem: Ripples, solver: Solver, marks: Sequence[int], seed: int = 0) -> np.ndarray:
    """A(T) for the horizons T in `marks`: one row for each, one column for each copy."""
    state, total, rows, wanted = solver.init(problem, seed), torch.zeros(problem.copies).double(), [], set(marks)
    while state.t < marks[-1]:
        total += problem.squared_norm(state.x)
        state = solver.step(problem, state)
        if state.t in wanted:
            rows.append((total / state.t).numpy())
    return np.array(rows)


def table(values: np.ndarray, noises: Sequence[float], starts: Sequence[float], marks: Sequence[int]) -> pd.DataFrame:
    """`averages` of a `stack`, with a row for each (noise, start, T) and a column for each seed."""
    index = pd.MultiIndex.from_product((noises, starts, marks), names=("noise", "start", "T"))
    rows = values.reshape(len(marks), -1, SEEDS).swapaxes(0, 1).reshape(-1, SEEDS)
    return pd.DataFrame(rows, index, SEED_COLUMNS).reset_index()


def file(kind: str, method: str) -> Path:
    return results_folder() / "rate" / f"{kind}_{method.replace(', 2/3', '_two_thirds')}.csv"


def stored(kind: str, method: str, noise: float = NOISE, start: float = NEAR, since: int = 100) -> pd.DataFrame:
    """Averages of a method from T = `since` on: index T (for the kind "frozen": tau and T), a column for each seed."""
    rows = pd.read_csv(file(kind, method)).query("noise == @noise and start == @start and T >= @since")
    if rows.empty:
        raise ValueError(f"no stored run of {method} with noise {noise} and start {start}")
    return rows.set_index(["tau", "T"] if kind == "frozen" else "T")[SEED_COLUMNS]


def slope(averages: pd.DataFrame) -> pd.Series:
    """For each column the least-squares slope of log A against log T; T is the index."""
    x = np.log(averages.index.to_numpy(float))
    return pd.Series(np.polyfit(x, np.log(averages), 1)[0], averages.columns)


def interval(values: pd.Series) -> tuple[float, float, float]:
    """Mean over the seeds, and the ends of its 95 % confidence interval: mean -+ t s / sqrt(8)."""
    if len(values) != SEEDS:
        raise ValueError(f"the interval is for {SEEDS} seeds, got {len(values)} values")
    mean, half = values.mean(), T_QUANTILE * values.std(ddof=1) / SEEDS**0.5
    return mean, mean - half, mean + half


def slopes(noise: float = NOISE, start: float = NEAR, methods: Sequence[str] = tuple(CLAIMED)) -> pd.DataFrame:
    """Slopes over T = 1e2 ... 1e5 with the schedules of the theories: method, slope, low, high, claimed."""
    rows = [(m, *interval(slope(stored("schedules", m, noise, start))), CLAIMED.get(m)) for m in methods]
    return pd.DataFrame(rows, columns=["method", "slope", "low", "high", "claimed"])


def levels(T: int, noise: float = NOISE, start: float = FAR, methods: Sequence[str] = tuple(CLAIMED)) -> pd.DataFrame:
    """A(T) with the schedules of the theories, by default from the far start: method, mean, low, high."""
    rows = [(m, *interval(stored("schedules", m, noise, start).loc[T])) for m in methods]
    return pd.DataFrame(rows, columns=["method", "mean", "low", "high"])


def best_frozen(method: str, start: float = 2.0) -> pd.DataFrame:
    """For each T the frozen schedule with the least mean over the seeds: index T, columns tau and the seeds."""
    runs = stored("frozen", method, start=start)
    best = runs.mean(axis=1).groupby("T").idxmin()
    return runs.loc[best].reset_index("tau")


def fair_slopes(start: float = 2.0) -> pd.DataFrame:
    """Slopes over T = 1e2 ... 1e4 of the best frozen schedule for each T: method, slope, low, high, claimed."""
    rows = [(m, *interval(slope(best_frozen(m, start)[SEED_COLUMNS])), claimed) for m, claimed in CLAIMED.items()]
    return pd.DataFrame(rows, columns=["method", "slope", "low", "high", "claimed"])
