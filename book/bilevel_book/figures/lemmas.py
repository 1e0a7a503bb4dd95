"""Pictures of the statements of the paper: truth against bound, contraction factors, what a bound is made of."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from bilevel_book.style import BLACK, BLUE, GREEN, ORANGE, RED, SKY, panels

LOW, HIGH = 1e-3, 60.0  # the range of the axis of shares


@contextmanager
def _frame(height: float, left: float, bottom: float) -> Iterator[tuple[Figure, Axes]]:
    """Axes at a fixed place, with room for a legend below: frames do not jump, and are drawn faster."""
    with panels(height=height) as (figure, axes):
        figure.set_layout_engine("none")
        axes.set_position((left, bottom, 0.97 - left, 1 - 0.1 / height - bottom))
        yield figure, axes


def shares(corrected: Mapping[str, float], printed: Mapping[str, float]) -> Figure:
    """Truth over bound, a bar for each corrected statement and its printed one, if any; inf: a bound below 0."""
    names = list(corrected)
    bars = []  # place, thickness, share, colour
    for place, name in enumerate(names):
        pair = name in printed
        bars.append((place - 0.2 * pair, 0.38 if pair else 0.55, corrected[name], BLUE))
        if pair:
            bars.append((place + 0.2, 0.38, printed[name], RED if printed[name] > 1 + 1e-8 else ORANGE))
    places, thick, values, colours = zip(*bars, strict=True)
    with _frame(6.4, left=0.29, bottom=0.13) as (figure, axes):
        axes.axvspan(1, HIGH, color=RED, alpha=0.07, linewidth=0)
        reach = np.clip(values, 1.15 * LOW, HIGH)  # a stub where the share is too small for the axis
        axes.barh(places, reach - LOW, thick, left=LOW, color=colours)
        for place, value in zip(places, values, strict=True):
            if value > HIGH:
                label = "bound ≤ 0" if value == math.inf else f"{value:.0f}"
                axes.text(0.9 * HIGH, place, label, fontsize=8.5, color="white", ha="right", va="center")
        axes.axvline(1, color=BLACK, linewidth=1.2)
        axes.set_yticks(range(len(names)), names, fontsize=9.5)
        axes.tick_params(axis="y", length=0)
        axes.set(xscale="log", xlim=(LOW, HIGH), ylim=(len(names) - 0.4, -0.6), xlabel="truth / bound")
        axes.xaxis.set_major_locator(FixedLocator([1e-3, 1e-2, 0.1, 1, 10]))
        axes.set_xticklabels(["0.001", "0.01", "0.1", "1", "10"])
        axes.minorticks_off()
        for colour, label in ((BLUE, "corrected"), (ORANGE, "printed"), (RED, "printed, violated")):
            axes.plot([], [], color=colour, linewidth=7, label=label)
        figure.legend(loc="lower center", ncols=3, fontsize=9.5, handlelength=1.2, columnspacing=1.2)
        return figure


def factors(units: np.ndarray, curves: Mapping[str, np.ndarray], limit: float) -> Figure:
    """Factors on the squared distance against lam, in units of 2 / (mu + L), where the contraction ends.

    `curves` holds the truth, the bound that the proofs use and the printed factor; `limit` is the printed one on lam.
    """
    looks = ({"color": BLUE, "linewidth": 3}, {"color": GREEN, "linestyle": "--"}, {"color": RED, "linestyle": "-."})
    with _frame(4.4, left=0.12, bottom=0.2) as (figure, axes):
        axes.axhspan(-2, 0, color=RED, alpha=0.07, linewidth=0)
        axes.axhline(0, color=BLACK, linewidth=0.8)
        axes.axvline(1, color=BLACK, linewidth=0.8, linestyle=":")
        for (name, values), look in zip(curves.items(), looks, strict=True):
            axes.plot(units, values, label=name, **look)
        if limit < units[-1]:
            axes.axvline(limit, color=ORANGE, linewidth=1.4)
            axes.text(limit, 1.66, " printed limit", color=BLACK, fontsize=9.5, ha="left" if limit < 0.7 else "right")
        axes.text(0.02, -1.9, "a squared norm cannot be here", fontsize=9.5, color=RED)
        axes.set(xlim=(0, units[-1]), ylim=(-2, 1.9), ylabel="factor on ‖v − v*‖²")
        axes.set(xlabel="λ, in units of 2 / (μ + L)", xticks=[0, 0.5, 1], yticks=[-2, -1, 0, 1])
        figure.legend(loc="lower center", ncols=3, fontsize=9.5, handlelength=1.8, columnspacing=1.2)
        return figure


def recursion(names: Sequence[str], parts: Mapping[str, Sequence[float]], truth: Sequence[float]) -> Figure:
    """What the bound on each new error is made of, stacked, and the truth as a mark."""
    with _frame(3.9, left=0.09, bottom=0.22) as (figure, axes):
        left = np.zeros(len(names))
        for (label, values), colour in zip(parts.items(), (SKY, ORANGE, GREEN), strict=True):
            axes.barh(names, values, 0.5, left=left, color=colour, label=label)
            left = left + np.asarray(values)
        axes.plot(truth, names, "D", color=BLACK, markersize=8, label="truth")
        axes.axvline(1, color=BLACK, linewidth=0.8, linestyle=":")
        axes.invert_yaxis()
        axes.set(xlim=(0, 4.2), xlabel="new squared error / old squared error")
        figure.legend(loc="lower center", ncols=4, fontsize=9.5, handlelength=1.2, columnspacing=1.2)
        return figure
