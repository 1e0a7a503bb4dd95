"""Pictures of the proof of the rate: exponents, the potential and its seven coefficients, sums, delta. Chapter 13."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from bilevel_book.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, name_lines, panels

Curve = tuple[Sequence[float], Sequence[float]]

# Names of `bilevel_book.theory.constants.QUANTITIES` in print.
PRINT = {
    "|h^f|^2": r"$\|h^f\|^2$", "|y - y*|^2": r"$\|y-y^*\|^2$", "|v - v*|^2": r"$\|v-v^*\|^2$",
    "|grad_y g|^2": r"$\|\nabla_y g\|^2$", "|e^f|^2": r"$\|e^f\|^2$", "|e^g|^2": r"$\|e^g\|^2$",
    "|e^R|^2": r"$\|e^R\|^2$",
}  # fmt: skip


def exponents(
    T: Sequence[float], terms: Mapping[str, Sequence[float]], drift: Sequence[float], at: tuple[Fraction, Fraction]
) -> Figure:
    """Above, the terms against T for alpha = T^-p, eta = T^-q; below, the rate over the plane of (p, q)."""
    p, q = at
    with panels(2, height=6.6, height_ratios=[1.15, 1]) as (figure, (above, below)):
        for (name, values), colour, style in zip(terms.items(), (BLUE, ORANGE), "-s", strict=True):
            above.loglog(T, values, color=colour, marker=None if style == "-" else style, markersize=4, label=name)
        above.loglog(T, drift, color=GREEN if q <= 2 * p else RED, linestyle=":", label="drift factor α²/η")
        above.axhline(1, color=BLACK, linewidth=0.7)
        above.set(xlim=(T[0], T[-1]), ylim=(1e-9, 1e4), xlabel="number of steps T")
        above.yaxis.set_major_locator(FixedLocator([1e-8, 1e-4, 1, 1e4]))
        above.xaxis.set_major_locator(FixedLocator([1e2, 1e4, 1e6, 1e8]))
        above.minorticks_off()  # frames are drawn faster
        above.legend(loc="upper left", fontsize=9, ncols=3, columnspacing=0.9, handlelength=1.6)
        grid = np.linspace(0, 1.05, 127)
        P, Q = np.meshgrid(grid, grid)
        reach = np.where(2 * P >= Q, np.minimum(1 - P, Q), np.nan)
        below.contourf(P, Q, reach, levels=np.arange(5) / 6 + 1e-9, colors=["#eef4f8", "#cbdfec", "#97c0d9", "#5b9ac2"])
        for k, place in zip((1, 2, 3), (0.45, 0.45, 0.4), strict=True):
            below.text(place, k / 6, Fraction(k, 6), fontsize=9, ha="center", va="center")
        below.text(0.02, 0.86, "η too small: no bound", fontsize=9.5, color=RED)
        below.plot(1 / 3, 2 / 3, "*", color=ORANGE, markersize=15, markeredgecolor=BLACK)
        below.plot(float(p), float(q), "o", color=RED, markersize=10, markeredgecolor=BLACK)
        below.set(xlim=(0, 1), ylim=(0, 1.05), xlabel="p", ylabel="q", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        below.set_title("Rate exponent for all (p, q); the star is the theorem")
        return figure


def seven(sides: Mapping[str, Mapping[str, float]]) -> Figure:
    """The seven coefficients of the potential as balances between -1 and 1, for several sets of constants."""
    with panels(height=4.6) as (figure, axes):
        thick = 0.8 / len(sides)
        for i, ((name, values), colour) in enumerate(zip(sides.items(), (ORANGE, BLUE), strict=False)):
            places = np.arange(len(values)) + (i - (len(sides) - 1) / 2) * thick
            heights = list(values.values())
            edges = [RED if height > 1e-12 else "none" for height in heights]
            axes.barh(places, heights, thick, color=colour, edgecolor=edges, linewidth=1.8, label=name)
            for place, height in zip(places, heights, strict=True):
                if abs(height) < 1e-12:
                    axes.plot(0, place, "o", color=colour, markersize=5, zorder=4)
        axes.axvline(0, color=BLACK, linewidth=1)
        axes.axvspan(0, 1.05, color=RED, alpha=0.07, linewidth=0)
        axes.set_yticks(range(len(PRINT)), [PRINT[name] for name in next(iter(sides.values()))])
        axes.invert_yaxis()
        axes.set(xlim=(-1.05, 1.05), xticks=[-1, -0.5, 0, 0.5, 1])
        axes.set(xlabel="pays for itself   ←   balance   →   not paid for")
        axes.legend(loc="lower right", fontsize=9.5)
        return figure


def potential(runs: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Figure:
    """Change of V along a run without noise, and the line that the lemma says it stays below; a panel for each."""
    with panels(len(runs), height=5.8, sharex=True) as (figure, axes):
        for ax, (name, (time, change, claimed)), colour in zip(axes, runs.items(), (ORANGE, BLUE), strict=True):
            ax.axhline(0, color=BLACK, linewidth=0.7)
            ax.plot(time, change, color=colour, label="V − V₀ along the run")
            ax.plot(time, claimed, color=BLACK, linestyle="--", linewidth=1.4, label="the lemma: at most this")
            ax.fill_between(time, claimed, change, where=change > claimed, color=RED, alpha=0.15, linewidth=0)
            ax.set(ylim=(-0.05, 0.02), ylabel="change of V", title=name)
            ax.legend(loc="lower left", fontsize=9.5)
        axes[-1].set(xlabel="time, in units in which y forgets", xlim=(0, time[-1]))
        return figure


def sum_of_inverse_steps(T: np.ndarray, curves: Mapping[str, np.ndarray]) -> Figure:
    """The sum of 1/alpha, its bounds, and its mean."""
    looks = ((BLUE, "-", 3), (BLACK, "--", 1.4), (RED, "-.", 2), (SKY, "-", 3))
    with panels(height=3.9) as (figure, axes):
        for (name, values), (colour, line, width) in zip(curves.items(), looks, strict=True):
            axes.loglog(T, values, line, color=colour, linewidth=width, label=name)
        axes.set(xlabel="number of steps T", xlim=(T[0], T[-1]), title="Two slips that more than cancel")
        name_lines(axes)
        return figure


def floors(curves: Mapping[str, Curve], needed: Mapping[str, Curve]) -> Figure:
    """Above, the floor of the squared slope against delta; below, the largest delta for a floor of T^-2/3."""
    looks = {"smooth g": (BLUE, "o"), "kink at y*": (ORANGE, "s")}
    with panels(2, height=6.2) as (figure, (above, below)):
        for name, (colour, marker) in looks.items():
            above.loglog(*curves[name], color=colour, marker=marker, markersize=4, label=name)
            below.loglog(*needed[name], color=colour, marker=marker, markersize=4, label=name)
        above.set(xlabel="δ", ylabel="floor of |Φ′|²", title="Where FdeHBO rests: slope 4, or 2 with a kink")
        above.legend(loc="lower right")
        T = np.array([min(part[0] for part, _ in needed.values()), max(part[-1] for part, _ in needed.values())])
        below.loglog(T, T ** (-4 / 3), color=RED, linestyle="-.", linewidth=1.4, label="$T^{-4/3}$")
        below.loglog(T, 1 / T, color=PURPLE, linestyle=":", label="$T^{-1}$")
        below.set(xlabel="number of steps T", ylabel="δ", ylim=(1e-18, 30))
        below.set_title("Largest δ whose floor is at most $T^{-2/3}$")
        below.legend(loc="lower left", fontsize=9.5)
        return figure


def demands(curves: Mapping[str, Curve], asked: Mapping[str, tuple[float, Mapping[str, float]]]) -> Figure:
    """The error of a difference in each number type; the delta that each argument asks for, and the errors there."""
    with panels(height=4.8) as (figure, axes):
        for (kind, curve), colour in zip(curves.items(), (GREY, SKY), strict=True):
            axes.loglog(*curve, color=colour, linewidth=1.6, label=kind)
        axes.axhline(0.01, color=GREEN, linewidth=1, linestyle="--")
        axes.text(1.4e-14, 0.014, "one per cent", color=GREEN, fontsize=9.5)
        colours = (BLACK, RED, PURPLE, BLUE, ORANGE)
        for (name, (delta, errors)), colour, marker in zip(asked.items(), colours, "Xs^oD", strict=True):
            axes.loglog([delta] * 2, list(errors.values()), color=colour, linewidth=0.8, zorder=2)
            for kind, error in errors.items():
                label = name if kind == "float32" else None
                axes.loglog(delta, error, marker, color=colour, markersize=8, markeredgecolor=BLACK, label=label)
        axes.set(xlim=(1e-14, 2), ylim=(1e-12, 1e4), xlabel="δ", ylabel="relative error of Hv")
        axes.yaxis.set_major_locator(FixedLocator([1e-12, 1e-8, 1e-4, 1, 1e4]))
        axes.xaxis.set_major_locator(FixedLocator([1e-12, 1e-8, 1e-4, 1]))
        axes.minorticks_off()
        axes.legend(loc="upper right", fontsize=9, ncols=2, columnspacing=1)
        return figure


def late(T: np.ndarray, bound: np.ndarray, trivial: float, marks: Mapping[str, float]) -> Figure:
    """What the theorem guarantees against T, on a scale of everyday times; a million steps take a second."""
    with panels(height=3.9) as (figure, axes):
        axes.loglog(T, bound, color=BLUE, label="the theorem's bound")
        axes.axhline(trivial, color=BLACK, linestyle="--", linewidth=1.2, label="true of every point")
        for name, steps in marks.items():
            axes.axvline(steps, color=GREY, linewidth=0.8, linestyle=":")
            ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            axes.text(steps, 2e-3, name, rotation=90, fontsize=9.5, ha="center", va="bottom", bbox=ground)
        axes.set(xlim=(T[0], T[-1]), ylim=(1e-3, 1e4), xlabel="steps T, a million a second")
        axes.set(ylabel="bound on mean ‖∇Φ‖²", title="True, and silent for any run that ends")
        axes.legend(loc="upper right")
        return figure


def practice(runs: Mapping[str, Curve]) -> Figure:
    """Mean squared slope against steps for several choices of constants in the same schedule."""
    with panels(height=3.6) as (figure, axes):
        looks = ((BLUE, "-"), (GREEN, "-."), (ORANGE, "--"))
        for (name, (steps, values)), (colour, line) in zip(runs.items(), looks, strict=False):
            axes.loglog(steps, values, line, color=colour, label=name)
        axes.set(xlabel="steps t", ylabel="running mean of |Φ′(x)|²", ylim=(0.02, 2))
        axes.set_title("The same exponents, other constants")
        name_lines(axes)
        return figure
