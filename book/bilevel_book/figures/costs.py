"""What a step costs: over its floor, beside other code, and as sizes grow; Chapter 15."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from bilevel_book.style import BLACK, BLUE, GREY, ORANGE, PURPLE, RED, SKY, look, name_lines, panels

COLOURS = (BLUE, ORANGE, PURPLE)
PASSES = {"features": SKY, "through": BLUE, "head gradients": ORANGE, "head products": RED}


def over_floor(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """The ratio of each method to its floor, a panel for each problem; upright marks are goals, hollow ones miss."""
    with _panel_for_each(tables) as (figure, axes):
        for ax, (title, table) in zip(axes, tables.items(), strict=True):
            for place, row in enumerate(table.itertuples()):
                _dot(ax, row.value, place, row.case, hollow=row.met == "NO")
            ax.plot(table.at_most, range(len(table)), "|", color=BLACK, markersize=13, markeredgewidth=2)
            _lanes(ax, table.case, title)
            wide = table.value.max() > 3 * table.value.min()
            _ratios(ax, [1, 2, 3, 5, 10, 20, 40] if wide else [0.9, 1, 1.1, 1.2, 1.3, 1.5], "")
        ax.set_xlabel("time of a step / time of its floor")
        return figure


def step_and_call(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Milliseconds of a step (dots) and of one of its calls, gradients and products alike (crosses)."""
    with _panel_for_each(tables) as (figure, axes):
        for ax, (title, table) in zip(axes, tables.items(), strict=True):
            for place, row in enumerate(table.itertuples()):
                ax.plot([row.each, row.ms], [place, place], color=look(row.case).color, alpha=0.35, linewidth=3)
                _dot(ax, row.ms, place, row.case)
                ax.plot(row.each, place, "x", color=look(row.case).color, markeredgewidth=2)
            _lanes(ax, table.case, title)
            ax.set(xscale="log")
        ax.set(xlabel="CPU milliseconds: cross, one call; mark, a step")
        return figure


def passes(counts: Mapping[str, float], units: Mapping[str, float], step: float, most: float) -> Figure:
    """The floor of a step as stacked passes, each as long as it takes, and the measured step below it."""
    with panels(height=2.9) as (figure, ax):
        left = 0.0
        for name, colour in PASSES.items():
            width = counts[name] * units[name]
            ax.barh(0, width, left=left, color=colour, edgecolor="white", label=f"{name}: {counts[name]:.3g}")
            left += width
        ax.barh(1, step, color=GREY)
        ax.set_yticks([0, 1], ["floor", "step"])
        ax.set(ylim=(1.6, -0.6), xlim=(0, most), xlabel="CPU milliseconds")
        ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.28), ncols=2, fontsize=9.5)
        return figure


def beside_peers(table: pd.DataFrame, title: str) -> Figure:
    """Our time over that of other code, one mark for each problem and peer; left of the line we are faster."""
    peers = list(dict.fromkeys(table.against))
    with panels(height=0.42 * len(peers) + 1.9) as (figure, ax):
        for (case, rows), mark, colour in zip(table.groupby("case", sort=False), "osD", COLOURS, strict=False):
            places = [peers.index(peer) for peer in rows.against]
            ax.plot(rows.value, places, mark, color=colour, markersize=8, label=case)
        ax.axvline(1, color=BLACK, linewidth=1.2)
        _lanes(ax, peers, title)
        _ratios(ax, [0.25, 0.5, 0.6, 0.7, 0.8, 1, 1.2, 1.5, 2, 3], "our time / their time")
        ax.legend(loc="upper center", bbox_to_anchor=(0.35, -0.35), ncols=3)
        return figure


def memory(table: pd.DataFrame) -> Figure:
    """Megabytes at the peak of a step of twenty unrolled steps, by way and problem."""
    ways = list(dict.fromkeys(table.part))
    with panels(height=3.2) as (figure, ax):
        for (case, rows), mark, colour in zip(table.groupby("case", sort=False), "osD", COLOURS, strict=False):
            ax.plot(rows.value, [ways.index(way) for way in rows.part], mark, color=colour, markersize=9, label=case)
        _lanes(ax, [way.removeprefix("memory: ") for way in ways], "Graphs that are kept take memory")
        ax.set(xscale="log", xlabel="megabytes at the peak of one step")
        ax.legend(loc="upper center", bbox_to_anchor=(0.35, -0.25), ncols=3)
        return figure


def growth(table: pd.DataFrame, series: Mapping[str, Sequence[str]], column: str, label: str, title: str) -> Figure:
    """Time or memory of a step while one quantity grows, a panel for each; the grey line is proportional growth."""
    with panels(len(series), height=2.75 * len(series), squeeze=False) as (figure, axes):
        axes[0, 0].set_title(title)
        for ax, (quantity, grows) in zip(axes[:, 0], series.items(), strict=True):
            rows = table[table.grows.isin(grows)]
            for method, line in rows.groupby("method", sort=False):
                ax.loglog(line["size"], line[column], label=method, markersize=5, **look(str(method))._asdict())
            size, top = rows["size"].max(), rows[rows["size"] == rows["size"].max()][column].max()
            ax.plot([size / 100, size], [2 * top / 100, 2 * top], color=GREY, linewidth=1, zorder=1)
            ax.set(xlabel=quantity, ylabel=label)
            ax.minorticks_off()
            name_lines(ax)
        return figure


@contextmanager
def _panel_for_each(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple[Figure, Sequence[Axes]]]:
    """Stacked panels, each as high as its table has rows."""
    height = sum(0.27 * len(table) + 1.1 for table in tables.values())
    with panels(len(tables), height=height, squeeze=False) as (figure, axes):
        yield figure, axes[:, 0]


def _dot(ax: Axes, value: float, place: int, label: str, hollow: bool = False) -> None:
    colour, _, marker = look(label)
    ax.plot(value, place, marker, color=colour, markersize=8, markerfacecolor="white" if hollow else colour)


def _lanes(ax: Axes, names: Any, title: str) -> None:
    ax.set_yticks(range(len(names)), list(names))
    ax.set(ylim=(len(names) - 0.4, -0.6), title=title)
    ax.grid(axis="x", color="#dddddd", linewidth=0.7)


def _ratios(ax: Axes, ticks: Sequence[float], label: str) -> None:
    ax.set(xscale="log", xlabel=label)
    low, high = ax.get_xlim()
    shown = [tick for tick in ticks if low <= tick <= high]
    ax.set_xticks(shown, [f"{tick:g}" for tick in shown])
    ax.xaxis.set_minor_locator(NullLocator())
