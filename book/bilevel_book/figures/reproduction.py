"""Pictures of stored experiments: curves of several methods and seeds, the seeds as a band."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bilevel_book.curves import at_marks, band
from bilevel_book.style import BLACK, BLUE, SKY, filled, house_style, look, name_lines, panels

AXES = {
    "cpu_seconds": "CPU seconds of the method, one thread",
    "gradients": "gradient evaluations",
    "samples": "samples drawn",
    "step": "steps",
    "equivalents": "gradient equivalents",
    "seconds": "calibrated seconds, one thread",
}
NAMES = {
    "upper_loss": "outer loss", "upper_accuracy": "outer accuracy", "test_accuracy": "test accuracy",
    "test_loss": "test loss", "train_loss": "train loss", "auc": "AUC",
}  # fmt: skip


def race(
    table: pd.DataFrame,
    columns: Sequence[str],
    axis: str = "cpu_seconds",
    title: str = "",
    until: float | None = None,
    limits: Sequence[tuple[float, float]] | None = None,
) -> Figure:
    """One panel for each column: the mean over seeds as a line, their range as a band, a cross where a run diverged.

    `until` ends the axis, `limits` are the ends of each panel's upright one.
    """
    with house_style():
        figure, axes = panels(len(columns), height=0.7 + 2.9 * len(columns), sharex=True, squeeze=False)
        for panel, column in zip(axes[:, 0], columns, strict=True):
            draw_bands(panel, table, axis, column, until)
            panel.set_ylabel(NAMES.get(column, column))
        for panel, ends in zip(axes[:, 0], limits or [], strict=limits is not None):
            panel.set_ylim(ends)
        axes[0, 0].set_title(title)
        axes[-1, 0].set_xlabel(AXES[axis])
        axes[-1, 0].locator_params(axis="x", nbins=6)
        for panel in axes[:, 0]:
            name_lines(panel)
        return figure


def draw_bands(panel: Axes, table: pd.DataFrame, axis: str, column: str, until: float | None = None) -> None:
    solvers = dict(zip(table.label, table.solver, strict=True))
    marks = np.linspace(0, until or table.groupby(["label", "seed"])[axis].max().max(), 121)
    curves = band(at_marks(table, axis, column, marks))
    for label in solvers:
        style, rows = look(label, solvers[label]), curves.loc[label]
        panel.plot(marks, rows["mean"], label=label, linewidth=1.8, **style.line)
        panel.fill_between(marks, rows["min"], rows["max"], color=style.color, alpha=0.15, linewidth=0)
        ends = table[(table.label == label) & (table.step == table.diverged_at)]
        for seed, end in ends.groupby("seed"):
            before = table[(table.label == label) & (table.seed == seed)][column].dropna().iloc[-1]
            panel.plot(end[axis].iloc[0], before, "x", color=style.color, markersize=9, markeredgewidth=2)
    if column.endswith("loss"):
        panel.set_yscale("log")
    panel.grid(alpha=0.25)


def bars(values: pd.DataFrame, label: str, title: str, reference: float | None = None) -> Figure:
    """Horizontal bars with the range of the seeds: rows of (mean, min, max); a line at the reference."""
    with house_style():
        figure, axes = panels(height=1.0 + 0.33 * len(values))
        rows = values.iloc[::-1]
        errors = np.stack([rows["mean"] - rows["min"], rows["max"] - rows["mean"]])
        axes.barh(rows.index, rows["mean"], xerr=errors, **filled(SKY), ecolor=BLACK, height=0.62, capsize=2)
        if reference is not None:
            axes.axvline(reference, color=BLUE, linewidth=1.2)
        axes.set(xlabel=label, title=title)
        axes.tick_params(axis="y", length=0, labelsize=9.5)
        return figure


def order_after(table: pd.DataFrame, column: str, at: float, axis: str = "cpu_seconds") -> pd.Series:
    """The mean over the seeds of each method at a place of the axis, the best first."""
    values = at_marks(table, axis, column, [at])[at]
    return values.groupby("label").mean().sort_values(ascending=column.endswith("loss"))


def standings(
    table: pd.DataFrame, column: str, at: float, limits: tuple[float, float], axis: str = "cpu_seconds"
) -> Figure:
    """Where every run stands at a place of the axis: a lane for each method, a dot for each seed, best mean on top."""
    values = at_marks(table, axis, column, [at])[at]
    solvers = dict(zip(table.label, table.solver, strict=True))
    order = order_after(table, column, at, axis)[::-1]
    with house_style():
        figure, axes = panels(height=1.2 + 0.36 * len(order))
        for lane, label in enumerate(order.index):
            colour, _, marker = look(label, solvers[label])
            axes.plot(values[label], [lane] * len(values[label]), marker, color=colour, markersize=6, alpha=0.6)
            axes.plot(order[label], lane, "|", color=colour, markersize=20, markeredgewidth=3)
        axes.set_yticks(range(len(order)), order.index)
        axes.set(xlim=limits, ylim=(-0.6, len(order) - 0.4), xlabel=NAMES.get(column, column))
        axes.set_xscale("log" if column.endswith("loss") else "linear")
        axes.grid(axis="y", alpha=0.3)
        return figure
