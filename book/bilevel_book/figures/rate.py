"""Pictures of measured rates: the rippled objective, averages against T, slopes with intervals. Chapter 14."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from bilevel_book.rates import CLAIMED
from bilevel_book.style import BLACK, BLUE, GREEN, GREY, ORANGE, RED, look, name_lines, panels


def ripples(
    x: np.ndarray, phi: np.ndarray, slope: np.ndarray, minimiser: float, starts: Mapping[float, float]
) -> Figure:
    """Phi of one entry with the starts marked, and its slope; where the slope falls Phi is not convex."""
    with panels(2, height=5.4, sharex=True) as (figure, (above, below)):
        above.plot(x, phi, color=BLUE)
        above.plot(list(starts), list(starts.values()), "o", color=ORANGE, markeredgecolor=BLACK, label="starts")
        above.set(ylabel="Φ(x)", title="A valley with ripples on its sides")
        above.legend(loc="upper left")
        below.plot(x, slope, color=BLUE)
        falls = np.gradient(slope, x) < 0
        below.fill_between(x, -2, 2, where=falls, color=RED, alpha=0.12, linewidth=0, label="Φ is not convex")
        below.axhline(0, color=BLACK, linewidth=0.8)
        for ax in (above, below):
            ax.axvline(minimiser, color=GREEN, linestyle="--", linewidth=1.2)
        below.set(xlabel="x", ylabel="Φ′(x)", xlim=(x[0], x[-1]), ylim=(-1.7, 2))
        below.set_title("Its slope is bounded, with one zero")
        below.legend(loc="lower right")
        return figure


def decay(
    curves: Mapping[str, pd.DataFrame], title: str = "", claimed: Mapping[str, float] | None = None, floor: float = 1e-4
) -> Figure:
    """A(T) for each method: mean, range over the seeds; grey lines with the claimed slopes end where it does."""
    with panels(height=4.4) as (figure, axes):
        for name, runs in curves.items():
            T, mean = runs.index.to_numpy(), runs.mean(axis=1).to_numpy()
            axes.fill_between(T, runs.min(axis=1), runs.max(axis=1), color=look(name).color, alpha=0.15, linewidth=0)
            axes.plot(T, mean, label=name, **look(name).line)
            if claimed and name in claimed:
                axes.plot(T, mean[-1] * (T / T[-1]) ** claimed[name], color=GREY, linewidth=0.9, zorder=1)
        axes.set(xscale="log", yscale="log", xlim=(T[0], T[-1]), ylim=(floor, 20), title=title)
        axes.set(xlabel="number of steps T", ylabel="A(T), mean of ‖∇Φ‖²")
        axes.minorticks_off()  # frames are drawn faster
        name_lines(axes)
        return figure


def report(found: pd.DataFrame, method: str, title: str, height: float = 3.3) -> Figure:
    """The slopes of `rates.report` with their intervals, and those of the controls; the upright line is the claim."""
    claimed = CLAIMED["FdeHBO" if method == "FMBO" else method]
    controls = [name.removeprefix("gap to ") for name in found if name.startswith("gap to ")]
    with panels(height=height) as (figure, axes):
        places = range(len(found))
        axes.axvline(claimed, color=BLACK, linewidth=1, label=f"claimed, {claimed:.2f}")
        for name, colour, mark in zip(controls, (GREY, ORANGE), "sD", strict=False):
            axes.plot(found[name], places, mark, color=colour, markersize=5, label=f"control: {name}")
        axes.hlines(places, claimed + found.low, claimed + found.high, color=look(method).color, linewidth=5, alpha=0.4)
        axes.plot(found.slope, places, "o", color=look(method).color, markersize=6, label=method)
        names = [f"{row.noise:g}, {' to '.join(f'{x:g}' for x in row.starts)}" for row in found.itertuples()]
        axes.set_yticks(places, names, fontsize=9)
        axes.set(ylim=(len(found) - 0.5, -0.5), xlim=(-1.03, 0), ylabel="noise, start")
        axes.set_title(title, x=-0.2)  # in line with the labels: there is no room for a second line
        axes.set_xlabel("slope of A(T) on logarithmic axes, with 95 % interval")
        axes.grid(axis="x", color="#dddddd", linewidth=0.7)
        figure.legend(loc="outside lower center", ncols=4, fontsize=8.5, handlelength=1, columnspacing=1)
        return figure


def fair(best: Mapping[str, pd.DataFrame]) -> Figure:
    """Above, A(T) with the best constant steps for each T; below, the time tau at which they were frozen."""
    with panels(2, height=6.6, sharex=True) as (figure, (above, below)):
        for name, runs in best.items():
            T, style = runs.index.to_numpy(), look(name)._asdict()
            above.loglog(T, runs.drop(columns="tau").mean(axis=1), label=name, markersize=4, **style)
            below.loglog(T, runs.tau, label=name, markersize=4, **style)
        above.set(ylabel="best A(T)", title="Each horizon with its own best steps")
        above.yaxis.set_major_locator(FixedLocator([0.05, 0.1, 0.2, 0.5, 1, 2]))
        above.yaxis.set_major_formatter("{x:g}")
        below.set(xlabel="number of steps T", ylabel="best τ", title="Longer runs want shorter steps")
        for ax in (above, below):
            ax.yaxis.set_minor_locator(NullLocator())
            name_lines(ax)
        return figure
