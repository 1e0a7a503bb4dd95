"""Pictures of stored experiments: curves of several methods, with the interval that their seeds give as a band."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from bilevel_book.curves import at_marks, mean_curves
from bilevel_book.style import BLACK, METHODS, look, name_lines, panels

AXES = {"step": "steps", "equivalents": "gradient equivalents", "seconds": "calibrated seconds, one thread"}
NAMES = {
    "upper_loss": "outer loss", "upper_accuracy": "outer accuracy", "test_accuracy": "test accuracy",
    "test_loss": "test loss", "train_loss": "train loss", "auc": "AUC", "sigma_noisy": "weight of wrong labels",
}  # fmt: skip


def race(
    table: pd.DataFrame,
    columns: Sequence[str],
    axis: str,
    title: str = "",
    until: float | None = None,
    limits: Sequence[tuple[float, float]] | None = None,
) -> Figure:
    """One panel for each column: the mean over seeds with its 95 % interval as a band, a cross where a run diverged.

    A loss is averaged in its logarithm. `until` ends the axis, `limits` are the ends of each panel's upright one.
    """
    table = table.dropna(subset=[axis])  # a method that looks at all the data has no place among batches
    with panels(len(columns), height=0.7 + 2.9 * len(columns), sharex=True, squeeze=False) as (figure, axes):
        for panel, column in zip(axes[:, 0], columns, strict=True):
            draw_bands(panel, table, axis, column, until)
            panel.set_ylabel(NAMES.get(column, column))
        for panel, ends in zip(axes[:, 0], limits or [], strict=limits is not None):
            panel.set_ylim(ends)
        axes[0, 0].set_title(title)
        axes[-1, 0].set_xlabel(AXES[axis])
        axes[-1, 0].locator_params(axis="x", nbins=6)
        for panel, column in zip(axes[:, 0], columns, strict=True):
            if column.endswith("loss"):
                label_loss(panel)
            name_lines(panel)
        return figure


def as_in_the_paper(
    table: pd.DataFrame,
    columns: Sequence[str],
    until: float,
    title: str,
    methods: Mapping[str, Sequence[str]] | None = None,
) -> Figure:
    """The paper's layout: a panel beside the other for each column, the mean of the seeds and its range, min to max.

    `methods` are those of each panel, by its title, if not all are in all.
    """
    marks = np.linspace(0, until, 121)
    shown = methods or {NAMES[column]: table.label.unique() for column in columns}
    with panels(columns=len(columns), width=2.4 + 2.4 * len(columns), height=2.7) as (figure, axes):
        for panel, column, (name, chosen) in zip(axes, columns, shown.items(), strict=True):
            values = at_marks(table[table.label.isin(chosen)], "seconds", column, marks)
            for label, own in values.groupby("label", sort=False):
                style = look(str(label))
                panel.plot(marks, own.mean(), label=label, linewidth=1.8, **style.line)
                panel.fill_between(marks, own.min(), own.max(), color=style.color, alpha=0.15, linewidth=0)
            panel.set(xlabel="seconds of CPU", title=name)
            panel.grid(alpha=0.25)
            if column.endswith("loss"):
                panel.set_yscale("log")
                label_loss(panel)
        lines = {line.get_label(): line for panel in axes for line in panel.get_lines()}
        figure.legend(lines.values(), lines, loc="outside lower center", ncols=min(6, len(lines)))
        figure.suptitle(title, x=0.02, ha="left", fontsize=11.5, fontweight="bold")
        return figure


def levels(ratios: pd.DataFrame, title: str, first: str = "FdeHBO") -> Figure:
    """The geometric mean ratio of the crossing times of the first method and each rival (rows), by level (columns)."""
    with panels(height=3.2) as (figure, axes):
        for rival, row in ratios.iterrows():
            axes.plot(row.index, row, label=rival, **look(str(rival))._asdict(), markersize=5)
        axes.axhline(1, color=BLACK, linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="level of the loss", ylabel=f"{first} over the rival", title=title)
        axes.invert_xaxis()
        label_loss(axes)
        axes.set_xticks(list(ratios.columns), [f"{level:.2g}" for level in ratios.columns])
        axes.minorticks_off()
        name_lines(axes)
        return figure


def draw_bands(panel: Axes, table: pd.DataFrame, axis: str, column: str, until: float | None = None) -> None:
    solvers = dict(zip(table.label, table.solver, strict=True))
    marks = np.linspace(0, until or table.groupby(["label", "seed"])[axis].max().max(), 121)
    values, is_loss = at_marks(table, axis, column, marks), column.endswith("loss")
    curves = np.exp(mean_curves(np.log(values))) if is_loss else mean_curves(values).clip(0, 1)
    variants = Counter[str]()
    for number, label in enumerate(solvers):
        style, rows = look(label, solvers[label], variants[solvers[label]]), curves.loc[label]
        variants[solvers[label]] += label not in METHODS
        apart = {"markevery": (3 * number % 24, 24), "markersize": 4.5}  # the marks of two curves seldom meet
        panel.plot(marks, rows["mean"], label=label, linewidth=1.8, **style._asdict(), **apart)
        panel.fill_between(marks, rows["low"], rows["high"], color=style.color, alpha=0.15, linewidth=0)
        ends = table[(table.label == label) & (table.step == table.diverged_at)]
        for seed, end in ends.groupby("seed"):
            before = table[(table.label == label) & (table.seed == seed)][column].dropna().iloc[-1]
            panel.plot(end[axis].iloc[0], before, "x", color=style.color, markersize=9, markeredgewidth=2)
    if is_loss:
        panel.set_yscale("log")
    panel.grid(alpha=0.25)


def label_loss(panel: Axes) -> None:
    """Numbers on a logarithmic axis, as many as there is room for."""
    low, high = panel.get_ylim()
    subs = (1, 1.5, 2, 3, 4, 5, 6, 8) if high < 15 * low else (1, 2, 5)
    panel.yaxis.set_major_locator(LogLocator(subs=subs, numticks=20))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter("")


def lanes(
    read: pd.DataFrame, label: str, title: str, solvers: dict[str, str], lines: dict[str, float] | None = None
) -> Figure:
    """A lane for each row of `read`, best mean on top, with a dot for each seed; named lines are drawn across."""
    rows = read.loc[read.mean(axis=1).sort_values().index]
    with panels(height=1.2 + 0.3 * len(rows)) as (figure, axes):
        for lane, (name, seeds) in enumerate(rows.iterrows()):
            style = look(str(name), solvers.get(str(name)))
            axes.plot(seeds, [lane] * len(seeds), style.marker, color=style.color, markersize=6, alpha=0.6)
            axes.plot(seeds.mean(), lane, "|", color=style.color, markersize=18, markeredgewidth=2.5)
        for words, value in (lines or {}).items():
            axes.axvline(value, color=BLACK, linewidth=1, linestyle=":")
            axes.text(value, len(rows) - 0.4, words, ha="center", va="bottom", fontsize=8.5)
        axes.set_yticks(range(len(rows)), rows.index)
        axes.set(ylim=(-0.6, len(rows) - 0.4), xlabel=label)
        axes.set_title(title, pad=20 if lines else None)
        axes.tick_params(axis="y", length=0, labelsize=9)
        axes.grid(axis="y", alpha=0.3)
        return figure
