"""Pictures of what came after the paper: Chapter 16."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from bilevel_book.complexity import Setting, exponent
from bilevel_book.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, look, panels
from bilevel_book.verdicts.judging import MARGIN

PALE = 0.35 * np.array(to_rgb(GREY)) + 0.65  # what is drawn over it can be seen
ORDERS = (1, 2, 4)  # the p for which an exponent that depends on it is drawn
MARKS = {  # colour, mark, filled: a word can be told without its colour
    "ahead": (GREEN, "<", True), "no difference": (ORANGE, "s", True), "behind": (RED, ">", True),
    "undecided": (GREY, "o", False),
}  # fmt: skip
WIDEST = 30.0  # ratios beyond are drawn at the edge


def two_walks(walks: dict[str, np.ndarray], saddle: tuple[float, float]) -> Figure:
    """Paths of (y, v), a row a step, around the point that both look for, and their distances from it."""
    with panels(2, height=6.4, height_ratios=[3, 2]) as (figure, (plane, below)):
        for name, path in walks.items():
            distance = np.hypot(*(path - saddle).T)
            plane.plot(*path.T, **look(name).line, marker=look(name).marker, markersize=3, linewidth=1, label=name)
            below.semilogy(distance, **look(name).line, label=name)
        plane.plot(*saddle, "*", color=GREEN, markersize=16)
        plane.plot(*path[0], "o", color=BLACK, markersize=8, markerfacecolor="white")
        plane.annotate("y*, v*", saddle, (-12, 10), textcoords="offset points", color=GREEN, ha="right")
        plane.annotate("start", path[0], (8, 2), textcoords="offset points")
        plane.set(xlim=(-1.6, 1.6), ylim=(-0.8, 2.8), xlabel="y", ylabel="v", title="Two walks from one start")
        below.set(xlabel="step", ylim=(1e-5, 1e2), title="How far each is from (y*, v*)")
        below.legend(loc="lower right")
        return figure


def ladder(settings: Sequence[Setting]) -> Figure:
    """For each setting the exponents that are proved, and in grey those that no method can have."""
    with panels(height=6.6) as (figure, axes):
        for row, setting in enumerate(settings):
            by_order = "p" in setting.lower
            lowest = exponent(setting.lower, ORDERS[-1]) if by_order else exponent(setting.lower)
            axes.barh(-row, lowest - 1, left=1, height=0.34, facecolor=PALE, linewidth=0)
            axes.text(1.05, -row + 0.22, f"{setting.oracle}; {setting.assumes}", fontsize=8, va="bottom")
            named: dict[float, list[str]] = {}
            for method in setting.methods:
                for p in ORDERS if by_order else (None,):
                    named.setdefault(exponent(method.upper, p), []).append(f"p = {p}" if p else method.name)
            for at, names in named.items():
                axes.plot(at, -row, "D", color=BLUE, markersize=7)
                axes.text(at, -row - 0.2, ", ".join(dict.fromkeys(names)), ha="center", va="top", fontsize=8)
            if by_order:
                axes.text(6.4, -row, ", ".join(method.name for method in setting.methods), fontsize=8, va="center")
        axes.set(xlim=(1, 8), ylim=(0.3 - len(settings), 0.6), yticks=[], xlabel="e: ‖∇Φ‖ ≤ ε costs ε to the −e calls")
        axes.set_xticks(range(2, 8))
        axes.spines["left"].set_visible(False)
        axes.set_title("What may be assumed decides what it costs")
        return figure


def noisy_products(deltas: np.ndarray, errors: dict[str, np.ndarray], best: dict[str, tuple[float, float]]) -> Figure:
    """The error of a product Hv by differences, on the same sample at both points and on two samples."""
    with panels(height=3.8) as (figure, axes):
        for (name, error), colour, line in zip(errors.items(), (PURPLE, ORANGE), ("-", "--"), strict=True):
            axes.loglog(deltas, error, color=colour, linestyle=line, label=name)
            axes.plot(*best[name], "o", color=colour, markersize=8)
        axes.set(xlabel="δ, half the distance of the two gradients", ylabel="error of Hv", ylim=(1e-4, 1e3))
        axes.legend(loc="upper right")
        axes.set_title("Two samples: noise over δ. One sample: none of it")
        return figure


def against(tables: dict[str, pd.DataFrame], reference: str, margin: float = MARGIN) -> Figure:
    """For each problem the ratio of every rival's score to that of the reference, with the interval that decides."""
    rows = [len(table) for table in tables.values()]
    with panels(len(tables), height=1.4 + 0.28 * sum(rows), sharex=True, height_ratios=rows) as (figure, axes):
        for panel, (name, table) in zip(axes, tables.items(), strict=True):
            _intervals(panel, table, margin)
            panel.set_title(name)
        axes[-1].set(xlabel=f"score / that of {reference}: further left is better")
        return figure


def _intervals(panel: Axes, table: pd.DataFrame, margin: float) -> None:
    """A line for each row: the ratio with its interval, marked by its word, beside the shaded margin."""
    panel.axvspan(1 / (1 + margin), 1 + margin, color=GREY, alpha=0.25, linewidth=0)
    panel.axvline(1, color=BLACK, linewidth=0.8)
    for line, row in enumerate(table.itertuples()):
        colour, mark, filled = MARKS[row.word]
        low, high, middle = np.clip([row.low, row.high, row.ratio], 1 / WIDEST, WIDEST)
        panel.plot([low, high], [line, line], color=colour, linewidth=2)
        panel.plot(middle, line, mark, color=colour, markerfacecolor=colour if filled else "none", markersize=7)
    panel.set_yticks(range(len(table)), table.index)
    panel.set(xscale="log", xlim=(1 / WIDEST, WIDEST), ylim=(len(table) - 0.4, -0.6))
    panel.tick_params(axis="y", length=0, labelsize=9)
    ticks = [0.1, 0.3, 1, 3, 10]
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
