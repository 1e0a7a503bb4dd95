"""Pictures of the ball that v is kept in: Chapter 5."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from bilevel_book.style import BLACK, BLUE, DEPTH, GREEN, ORANGE, PURPLE, RED, SKY, panels

STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def nearest_points(before: np.ndarray, after: np.ndarray, inside: np.ndarray, outside: np.ndarray) -> Figure:
    """Points of the plane and where the unit ball takes them, with one target inside and one outside."""
    with panels(height=4.3) as (figure, axes):
        draw_ball(axes, 1.0)
        for start, end in zip(before, after, strict=True):
            axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": BLUE, "lw": 1.4, "shrinkB": 0})
        axes.plot(*before.T, "o", color=BLUE, markersize=6, label="w")
        axes.plot(*after.T, "o", color=BLUE, markersize=6, markerfacecolor="white", label="P w")
        axes.plot(*inside, "*", color=GREEN, markersize=14, label="u inside: no w moves away")
        axes.plot(*outside, "X", color=RED, markersize=10, label="u outside: its neighbour does")
        axes.set(xlim=(-1.6, 3.1), ylim=(-1.55, 2.05), aspect="equal", xticks=[-1, 0, 1, 2, 3], yticks=[-1, 0, 1, 2])
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2, handletextpad=0.3, columnspacing=1.0)
        axes.set_title("The ball pulls towards whatever lies inside it")
        return figure


def three_growths(norms: Sequence[float], curves: dict[str, Sequence[float]]) -> Figure:
    """What goes wrong as v grows, each relative to its value at the first norm."""
    with panels(height=3.8) as (figure, axes):
        for (name, values), colour, marker in zip(curves.items(), (BLUE, ORANGE, RED), "osD", strict=True):
            axes.loglog(norms, np.asarray(values) / values[0], color=colour, marker=marker, markersize=6, label=name)
        axes.set(xlabel="‖v‖", ylabel="relative to ‖v‖ = 1", title="A long v costs more than its length")
        axes.legend(loc="upper left")
        return figure


def without_the_ball(runs: dict[str, pd.DataFrame]) -> Figure:
    """||v||, the search for wrong labels, and test accuracy along runs of hyper-cleaning, a line for each seed."""
    styles = {"norm_v": "‖v‖", "auc": "AUC", "test_accuracy": "test accuracy"}
    with panels(3, height=7.8, sharex=True, height_ratios=[2.2, 1.6, 1.6]) as (figure, axes):
        for (name, run), colour, line in zip(runs.items(), (RED, BLUE, GREEN, PURPLE, ORANGE), STYLES, strict=True):
            for panel, column in zip(axes, styles, strict=True):
                seeds = run[run.step > 0].pivot(index="step", columns="seed", values=column)
                first, *_ = panel.plot(seeds, color=colour, linestyle=line, linewidth=1.2)
                first.set_label(name)
        for panel, label in zip(axes, styles.values(), strict=True):
            panel.set_ylabel(label)
        axes[0].set_yscale("log")
        axes[0].legend(loc="upper left", labelspacing=0.2)
        axes[0].set_title("Without the ball ‖v‖ passes a million")
        axes[1].axhline(0.5, color=BLACK, linewidth=0.8)
        axes[1].set_title("Wrong labels are then found by chance only")
        axes[2].set(xlabel="step", ylim=(0.6, 0.9), title="The test accuracy hardly shows it")
        return figure


def seen_slopes(x: np.ndarray, slopes: dict[str, np.ndarray], ends: dict[str, float]) -> Figure:
    """The slope of Phi as the method sees it for different radii, and where each run came to rest."""
    with panels(height=3.8) as (figure, axes):
        axes.axhline(0, color=BLACK, linewidth=0.8)
        looks = ((BLACK, "-", ""), (RED, "-", "s"), (BLUE, "--", "o"))
        for (name, slope), (colour, line, marker) in zip(slopes.items(), looks, strict=True):
            axes.plot(x, slope, color=colour, linestyle=line, linewidth=3.5 if colour == BLACK else 1.8, label=name)
            if name in ends:
                axes.plot(ends[name], 0, marker=marker, color=colour, markersize=10)
        axes.set(xlabel="x", ylabel="slope", ylim=(-0.17, 0.17))
        axes.legend(loc="upper left")
        axes.set_title("A ball that is too small moves the zero of the slope")
        return figure


def path_in_ball(path: np.ndarray, target: np.ndarray, radius: float, slope: np.ndarray, level: float) -> Figure:
    """Above: v in the plane with its ball. Below: ||grad Phi|| along the same run, and its usual level at the end."""
    with panels(2, height=6.4, height_ratios=[3, 1.5]) as (figure, (above, below)):
        draw_ball(above, radius)
        above.plot(*path.T, color=BLUE, linewidth=0.8, alpha=0.8)
        above.plot(*path[-100:].T, "o", color=BLUE, markersize=2.5)
        above.plot(*target, "*", color=RED, markersize=15, markeredgecolor="white")
        above.set(xlim=(-1.6, 1.6), ylim=(-1.1, 1.1), aspect="equal", xlabel="first entry of v", ylabel="second")
        above.set_title("The path of v in its ball; the star is v*")
        below.semilogy(slope, color=BLACK, linewidth=1)
        below.axhline(max(level, 1e-4), color=RED, linewidth=1.5, linestyle="--")
        below.set(xlabel="t", ylabel="‖∇Φ‖", ylim=(1e-4, 4))
        below.set_title("Slope of Φ at the end: " + (f"{level:.3f}" if level >= 1e-3 else "below 0.001"))
        return figure


def map_and_path(
    gaps: np.ndarray, deltas: Sequence[float], radii: Sequence[float], at: tuple[int, int], v: np.ndarray, x: np.ndarray
) -> Figure:
    """Above: how far Phi ends above its minimum for each (delta, r_v). Below: v and x for the marked pair."""
    with panels(3, height=7.6, height_ratios=[2.6, 1.5, 1.2]) as (figure, (above, below, last)):
        # Few colours, so that the palette of a frame holds them all.
        shades = ListedColormap([DEPTH(depth) for depth in (1.0, 0.7, 0.5, 0.25, 0.0)])
        above.imshow(gaps, cmap=shades, norm=BoundaryNorm([0, 0.03, 0.1, 0.3, 2, 4], 5), aspect="auto")
        for i, j in np.ndindex(gaps.shape):
            colour = "white" if gaps[i, j] > 0.3 else BLACK
            above.text(j, i, f"{gaps[i, j]:.2f}", ha="center", va="center", color=colour, fontsize=10)
        above.add_patch(Circle((at[1], at[0]), 0.45, fill=False, edgecolor=RED, linewidth=2.5))
        above.set(xlabel="r_v", ylabel="δ", title="Φ at the end, above its minimum")
        above.set_xticks(range(len(radii)), [f"{r:g}" for r in radii])
        above.set_yticks(range(len(deltas)), [f"{d:g}" for d in deltas])
        below.plot(v, color=BLUE, linewidth=0.9)
        below.set_yscale("symlog", linthresh=0.2)
        below.set(ylim=(-6.5, 6.5), ylabel="v", yticks=[-5, -1, -0.2, 0, 0.2, 1, 5], title="One path of v, and of x")
        below.set_yticklabels(["-5", "-1", "-0.2", "0", "0.2", "1", "5"])
        last.axhline(0.32, color=SKY, linewidth=3)
        last.axhline(-np.pi / 3, color=ORANGE, linewidth=1.5, linestyle="--")
        last.plot(x, color=BLACK, linewidth=1)
        last.text(len(x), 0.36, "minimum", color=BLUE, ha="right", va="bottom", fontsize=10)
        last.text(len(x), -np.pi / 3 + 0.04, "J = 0", color=ORANGE, ha="right", va="bottom", fontsize=10)
        last.set(ylim=(-2.3, 1.2), xlabel="t", ylabel="x")
        return figure


def draw_ball(axes: Axes, radius: float) -> None:
    axes.add_patch(Circle((0, 0), radius, facecolor="#e4f0f8", edgecolor=BLACK, linewidth=1.2))
    axes.set_axisbelow(True)
