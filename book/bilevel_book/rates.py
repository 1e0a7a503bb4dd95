"""Measured rates: the running average of ||grad Phi||^2, its slope on logarithmic axes, and intervals over the seeds.

    A(T) = (1/T) sum_{t<T} ||grad Phi(x_t)||^2        the quantity of the theorems

The long runs are those of `experiments/rate.toml`, on `Ripples`, and `experiments/rate_bent.toml`, on `Bent`, with 8
copies, the seeds, for each noise and start. Every method has the exponents of its own theory and the same constants:
1/2 for the steps along f, 1 for the others. `report` says how far each slope is from the claimed one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from bilevel_book.bent import Bent, InBall
from bilevel_book.experiments import runs_of, sweep
from bilevel_book.methods import F2SA, F3SA
from bilevel_book.ripples import Ripples
from bilevel_book.verdicts.student import interval
from bilevel_core import run
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers import SOBA
from bilevel_core.solvers.base import STEP, Solver, State, option

CLAIMED = {"FdeHBO": -2 / 3, "SOBA": -1 / 2, "F3SA": -2 / 5, "F2SA": -2 / 7}
CONTROL = "SOBA, 2/3"  # SOBA with a step that shrinks like t^-2/3, for which no theory promises T^-2/3
# Controls, to which no theory promises the rate. The first is SOBA with the steps of x and of the lower level of the
# method, without its momentum; the second of FdeHBO is the sharper one near a minimiser.
CONTROLS = {"FdeHBO": ["SOBA, 1/3", CONTROL], "F3SA": ["SOBA, 3/5"], "F2SA": ["SOBA, 5/7"]}
# The runs that stand for a method. On a quadratic lower level FdeHBO cannot be told from FMBO. The paper fixes delta;
# one that shrinks like t^-1/3 is ours.
RUNS = {
    "FdeHBO": {"rate-bent": ["FdeHBO, delta 0.1", "FdeHBO, delta 10 t^-1/3"]},
    "FMBO": {"rate": ["FdeHBO"]},
    "F3SA": {"rate": ["F3SA"], "rate-bent": ["F3SA"]},
    "F2SA": {"rate": ["F2SA"], "rate-bent": ["F2SA"]},
}
# The exponents of the steps of x, and of y and v.
SOBAS = {
    "SOBA": (1 / 2, 1 / 2), CONTROL: (2 / 3, 1 / 2),
    "SOBA, 1/3": (1 / 3, 1 / 3), "SOBA, 3/5": (3 / 5, 2 / 5), "SOBA, 5/7": (5 / 7, 4 / 7),
}  # fmt: skip
# Every schedule is c (W + t)^-p. The longest step of v is then 4^-1/3, and times the largest curvature of a sample,
# 1.5 * 1.5, it stays below 2: no method needs a ball.
W = 4.0
SEEDS = 8
# At 0.2 the bias of the penalty methods is the largest term, at 2 the noise is, whose factor on g is then at its limit.
NOISES = (0.2, 0.5, 2.0)
# The minimiser is near -0.25, a ripple is 2 pi a = 6 to 9 long: from 0 there is nothing to travel, from 2 a part of a
# ripple, from 6 about one, from 20 about three.
STARTS = (0.0, 2.0, 6.0, 20.0)
NOISE, NEAR, FAR = 0.5, 0.0, 20.0
PROBLEMS = {"rate": "quadratic", "rate-bent": "bent"}  # the lower level of an experiment
SINCE = 1000  # the first T of a fit
MERGED = 0.1  # settings whose slopes differ by less are one
SEED_COLUMNS = [str(seed) for seed in range(SEEDS)]


@dataclass(frozen=True)
class MeanThenFrozen:
    """max(1 / (1 + t), floor): an average of all that was seen, until the weight of the new one is down to `floor`."""

    floor: float

    def __call__(self, t: int) -> float:
        return max(1 / (1 + t), self.floor)


def solver(method: str, frozen: float | None = None, delta: Rate = 0.1, radius: float = float("inf")) -> Solver:
    """The method with its schedules in t, or with constant steps: each schedule frozen at the time `frozen`.

    `delta` and `radius`, of the ball of each copy, are for FdeHBO.
    """

    def rate(c: float, p: float) -> float | Power:
        power = Power(c, W, p)
        return power if frozen is None else power(frozen)

    def eta(p: float) -> Callable[[int], float]:
        return Power(1.0, W - 1, p, cap=1.0) if frozen is None else MeanThenFrozen(Power(1.0, W, p)(frozen))

    if method in SOBAS:
        of_x, of_yv = SOBAS[method]
        return SOBA(alpha=rate(0.5, of_x), beta=rate(1, of_yv), lam=rate(1, of_yv))
    if method == "FdeHBO":
        steps = {"alpha": rate(0.5, 1 / 3), "beta": rate(1, 1 / 3), "lam": rate(1, 1 / 3)}
        return InBall(**steps, eta=eta(2 / 3), delta=delta, radius=radius)
    if method == "F3SA":
        steps = {"alpha": rate(0.5, 3 / 5), "beta": rate(0.5, 3 / 5), "gamma": rate(1, 2 / 5)}
        return F3SA(**steps, multiplier=rate(1, -1 / 5), eta=eta(4 / 5))
    if method == "F2SA":
        steps = {"alpha": rate(0.5, 5 / 7), "beta": rate(0.5, 5 / 7), "gamma": rate(1, 4 / 7)}
        return F2SA(**steps, multiplier=rate(1, -1 / 7), inner=1)
    raise ValueError(f"no such method: {method}; there are {', '.join({*CLAIMED, *SOBAS})}")


@dataclass(frozen=True)
class AveragedState(State):
    """The state of the method itself, and sum_{s<t} ||grad Phi(x_s)||^2 for each copy."""

    inner: State
    total: Tensor


@dataclass(frozen=True, kw_only=True)
class Averaged(Solver[AveragedState]):
    """One of the methods on a stack; a row of its history has A(t) for each copy, and how many v are at their ball."""

    state_type = AveragedState
    method: str = "FdeHBO"
    frozen: float | None = None
    delta: Rate = option(0.1, STEP, "of the differences of FdeHBO")
    radius: float = float("inf")
    solver: Solver = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "solver", solver(self.method, self.frozen, self.delta, self.radius))

    def init(self, problem: Ripples, seed: int = 0, **given: Tensor | None) -> AveragedState:
        inner = self.solver.init(problem, seed, **given)
        return AveragedState(inner.x, inner.y, inner.v, inner.t, inner.rng, inner, torch.zeros(problem.copies).double())

    def update(self, problem: Ripples, state: AveragedState, generator: torch.Generator) -> AveragedState:
        inner, total = self.solver.step(problem, state.inner), state.total + problem.squared_norm(state.x)
        return state.replace(x=inner.x, y=inner.y, v=inner.v, inner=inner, total=total)

    def measure(self, problem: Ripples, state: AveragedState) -> dict[str, float]:
        averages = dict(zip(problem.names, (state.total / state.t).tolist(), strict=True))  # nan at t = 0
        at_the_ball = problem.each(state.v).norm(dim=1) > 0.999999 * self.radius
        return averages | ({} if self.radius == float("inf") else {"at_the_ball": at_the_ball.double().mean().item()})


class _AllPairs:
    """All pairs (noise, start), each with SEEDS copies, which have names."""

    def __init__(self, noises: Sequence[float] = NOISES, starts: Sequence[float] = STARTS):
        each = list(product(noises, starts, range(SEEDS)))
        super().__init__(len(each), noise=[noise for noise, _, _ in each], start=[start for _, start, _ in each])
        self.names = [copy_name(*which) for which in each]


class Stack(_AllPairs, Ripples):
    """The stack on `Ripples`."""


class BentStack(_AllPairs, Bent):
    """The stack on `Bent`."""


def copy_name(noise: float, start: float, seed: int) -> str:
    return f"noise {noise:g} start {start:g} seed {seed}"


def horizons(first: float, last: float, per_decade: int = 10) -> list[int]:
    """Whole numbers from `first` to `last`, evenly spaced on a logarithmic axis."""
    count = round(per_decade * np.log10(last / first)) + 1
    return [int(T) for T in np.unique(np.geomspace(first, last, count).round())]


def averages(problem: Ripples, method: str, marks: Sequence[int]) -> pd.DataFrame:
    """A(T) for the horizons T in `marks`, run now: index T, a column for each copy."""
    history = run(problem, Averaged(method=method), steps=marks[-1], every=marks, progress=False).history
    return history.rename(columns={"step": "T"}).set_index("T").loc[list(marks), problem.names]


@lru_cache(maxsize=3)
def histories(kind: str, experiment: str = "rate") -> dict[tuple[str, float | None], pd.DataFrame]:
    """The stored runs of a kind by label, or, of the kind "frozen", by method and by the time of freezing."""
    table = runs_of(experiment, kind)
    runs = {run.label: run.options for run in sweep(experiment, groups=[kind])}
    return {
        (runs[label]["method"] if kind == "frozen" else label, runs[label].get("frozen")): rows
        for label, rows in table.groupby("label")
    }


def taus(method: str) -> list[float]:
    """The times at which the schedules of a method were frozen."""
    return sorted(tau for name, tau in histories("frozen") if name == method)


def stored(
    kind: str, method: str, noise: float = NOISE, start: float = NEAR, since: int = 100, experiment: str = "rate"
) -> pd.DataFrame:
    """Averages of a method from T = `since` on: index T (for the kind "frozen": tau and T), a column for each seed."""
    columns = {copy_name(noise, start, seed): str(seed) for seed in range(SEEDS)}
    every = histories(kind, experiment)
    found = {tau: rows for (name, tau), rows in every.items() if name == method and {*columns} <= {*rows}}
    if not found:
        raise ValueError(f"no stored run of {method} with noise {noise} and start {start}")
    runs = pd.concat({tau: found[tau].set_index("step") for tau in sorted(found)}, names=["tau", "T"])
    runs = runs[runs.index.get_level_values("T") >= max(since, 1)].rename(columns=columns)[SEED_COLUMNS]
    return runs if kind == "frozen" else runs.droplevel("tau")


def slope(averages: pd.DataFrame) -> pd.Series:
    """For each column the least-squares slope of log A against log T; T is the index."""
    x = np.log(averages.index.to_numpy(float))
    return pd.Series(np.polyfit(x, np.log(averages), 1)[0], averages.columns)


def table(runs: dict[str, pd.Series]) -> pd.DataFrame:
    """Mean and 95 % interval over the seeds, and the claimed exponent: method, slope, low, high, claimed."""
    rows = [(method, *interval(each), CLAIMED.get(method)) for method, each in runs.items()]
    return pd.DataFrame(rows, columns=["method", "slope", "low", "high", "claimed"])


def slopes(noise: float = NOISE, start: float = NEAR, methods: Sequence[str] = tuple(CLAIMED)) -> pd.DataFrame:
    """Slopes over T = 1e3 ... 1e5 with the schedules of the theories."""
    return table({method: slope(stored("schedules", method, noise, start, SINCE)) for method in methods})


def report(method: str, since: int = SINCE) -> pd.DataFrame:
    """How far the slopes of a method are from the claimed one: problem, noise, starts, slope, off, low, high, controls.

    `off` is slope - claimed, with its interval from `low` to `high`; each control of the method has a column with its
    slope, and one, "gap to" it, with the upper end of the interval of slope - control. With one noise, neighbouring
    starts and any delta are one setting as long as no slope, nor any of a control, differs by MERGED: it has their
    means, seed by seed.
    """
    family = "FdeHBO" if method == "FMBO" else method
    controls, rows = CONTROLS[family], []
    for (experiment, labels), noise in product(RUNS[method].items(), NOISES):
        settings: list[dict[float, list[pd.DataFrame]]] = []
        for start, label in product(STARTS, labels):
            names = [label, *controls]
            found = [slope(stored("schedules", name, noise, start, since, experiment)) for name in names]
            cell = pd.concat(found, axis=1, keys=["slope", *controls])
            known = [each for cells in settings[-1].values() for each in cells] if settings else []
            if not known or any(((cell.mean() - each.mean()).abs() >= MERGED).any() for each in known):
                settings.append({})
            settings[-1].setdefault(start, []).append(cell)
        for setting in settings:
            mean = sum(each for cells in setting.values() for each in cells) / sum(map(len, setting.values()))
            row = {"problem": PROBLEMS[experiment], "noise": noise, "starts": sorted({min(setting), max(setting)})}
            row |= dict(zip(("off", "low", "high"), interval(mean.slope - CLAIMED[family]), strict=True))
            row |= mean.mean().to_dict()
            rows.append(row | {f"gap to {name}": interval(mean.slope - mean[name])[2] for name in controls})
    return pd.DataFrame(rows)


def in_words(found: pd.DataFrame, claimed: float) -> str:
    """A report in one sentence."""
    steeper, flatter = (found.high < 0).sum(), (found.low > 0).sum()
    gaps = {name.removeprefix("gap to "): (found[name] < 0).sum() for name in found if name.startswith("gap to ")}
    return (
        f"slope minus {claimed:.2f} from {found.off.min():.2f} to {found.off.max():+.2f} in {len(found)} settings: "
        f"{steeper} steeper, {len(found) - steeper - flatter} with {claimed:.2f} in the interval, {flatter} flatter; "
        "steeper than the control " + ", than ".join(f"{name} in {count}" for name, count in gaps.items())
    )


def levels(T: int, noise: float = NOISE, start: float = FAR, methods: Sequence[str] = tuple(CLAIMED)) -> pd.DataFrame:
    """A(T) with the schedules of the theories, by default from the far start: method, mean, low, high."""
    found = table({method: stored("schedules", method, noise, start).loc[T] for method in methods})
    return found.rename(columns={"slope": "mean"}).drop(columns="claimed")


def best_frozen(method: str, start: float = 2.0) -> pd.DataFrame:
    """For each T the frozen schedule with the least mean over the seeds: index T, columns tau and the seeds."""
    runs = stored("frozen", method, start=start)
    best = runs.mean(axis=1).groupby("T").idxmin()
    return runs.loc[best].reset_index("tau")


def fair_slopes(start: float = 2.0) -> pd.DataFrame:
    """Slopes over T = 1e2 ... 1e4 of the best frozen schedule for each T."""
    return table({method: slope(best_frozen(method, start)[SEED_COLUMNS]) for method in CLAIMED})
