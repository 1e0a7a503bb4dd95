"""Sentences of the paper with the intervals that decide them, under a rule that the reader chooses."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bilevel_book.style import BLACK, GREEN, GREY, ORANGE, RED, panels
from bilevel_book.verdicts.deciding import MARGIN, MEANT, WORST_FIRST, Verdict
from bilevel_book.verdicts.measures import AXES
from bilevel_book.verdicts.sentences import TRACKS, Case

MARKS = {  # colour, mark, filled: a word can be told without its colour
    Verdict.HOLDS: (GREEN, "<", True),
    Verdict.ALIKE: (ORANGE, "s", True),
    Verdict.FAILS: (RED, ">", True),
    Verdict.UNDECIDED: (GREY, "o", False),
}
WIDEST, NEAR = 30.0, 4.0  # ratios beyond are drawn at the edge; what decides is seldom far


def answer(cases: Sequence[Case], axis: str | None = None, margin: float = MARGIN) -> Figure:
    """A panel for each track, a line for each sentence and measure, of the rival that decides: the ratio at the end of
    the budget and its interval, with that at two thirds of it as a thin line below.

    Left of the shaded margin the praised method is ahead; a verdict is bold if the protocol's own rule gives another.
    """
    tracks = [track for track in TRACKS if any(track in case.tracks for case in cases)]
    tables = {track: _deciding(cases, track, axis, margin) for track in tracks}
    rows = [len(table) for table in tables.values()]
    stacked = {"squeeze": False, "sharex": True, "height_ratios": rows}
    with panels(len(tables), height=1.2 + 0.28 * sum(rows), **stacked) as (figure, axes):
        for panel, (track, table) in zip(axes[:, 0], tables.items(), strict=True):
            names = [f"{row.id}, {row.measure} ({row.rival})" for row in table.itertuples()]
            intervals(panel, table, names, margin, NEAR)
            panel.set_title(TRACKS[track])
            asked = {case.id: case for case in cases if track in case.tracks}
            for line, identifier in enumerate(table.id):
                word, own = (asked[identifier].verdict(track, *rule) for rule in ((axis, margin), ()))
                weight, place = "normal" if word == own else "bold", panel.get_yaxis_transform()
                panel.text(1.02, line, word, transform=place, va="center", fontsize=9, weight=weight)
        figure.suptitle("", x=0.02, ha="left", fontsize=11.5, fontweight="bold")
        axes[-1, 0].set_xlabel("ratio, praised / rival")
        return figure


def _deciding(cases: Sequence[Case], track: str, axis: str | None, margin: float) -> pd.DataFrame:
    """Of the rivals of a sentence and measure the one with the worst word, and of those the furthest ahead."""
    tables = [case.numbers(track, axis, margin).assign(id=case.id) for case in cases if track in case.tracks]
    table = pd.concat(tables, ignore_index=True)
    end, early = (table[table.horizon == horizon].reset_index(drop=True) for horizon in ("end", "two thirds"))
    rank = end.verdict.map(lambda word: -WORST_FIRST.index(Verdict(word)))
    ranked = end.assign(early_low=early.low, early_high=early.high, rank=rank)
    ranked = ranked.sort_values(["rank", "mean"], kind="stable", na_position="first")
    return ranked.groupby(["id", "measure"], sort=False).tail(1).sort_index().reset_index(drop=True)


def intervals(
    panel: Axes, table: pd.DataFrame, names: Sequence[str], margin: float = MARGIN, widest: float = WIDEST
) -> None:
    """A line for each row of `decide`: the ratio with its interval, marked by the verdict, beside the shaded margin."""
    panel.axvspan(1 / (1 + margin), 1 + margin, color=GREY, alpha=0.25, linewidth=0)
    panel.axvline(1, color=BLACK, linewidth=0.8)
    for line, row in table.iterrows():
        colour, mark, filled = MARKS[MEANT[row.get("means", "ahead")].get(row.verdict, row.verdict)]
        if np.isfinite(row.low):
            low, high, middle = np.clip([row.low, row.high, np.exp(row["mean"])], 1 / widest, widest)
            panel.plot([low, high], [line, line], color=colour, linewidth=2)
            panel.plot(middle, line, mark, color=colour, markerfacecolor=colour if filled else "none", markersize=7)
            if "early_low" in row:  # at two thirds of the budget
                ends = np.clip([row.early_low, row.early_high], 1 / widest, widest)
                panel.plot(ends, [line + 0.27] * 2, color=colour, linewidth=1)
        else:
            panel.text(1, line, "cannot be read", ha="center", va="center", fontsize=8.5, color=colour)
    panel.set_yticks(range(len(table)), names)
    panel.set(xscale="log", xlim=(1 / widest, widest), ylim=(len(table) - 0.4, -0.6))
    panel.tick_params(axis="y", length=0, labelsize=9)
    ticks = [tick for tick in (0.1, 0.3, 1, 3, 10) if 1 / widest < tick < widest]
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()


def ratios(judged: pd.DataFrame, title: str, of: str) -> Figure:
    """A line for each row of `against`: its ratio to what it is compared with, `of`, and the interval that decides."""
    with panels(height=1.2 + 0.28 * len(judged)) as (figure, panel):
        intervals(panel, judged.reset_index(drop=True), list(judged.index), widest=NEAR)
        panel.set(title=title, xlabel=of)
        return figure


def told(cases: Sequence[Case], axis: str | None = None, margin: float = MARGIN) -> str:
    """How many verdicts each word has under a rule, and how many of them the protocol's own rule shares."""
    pairs = [(case.verdict(track, axis, margin), case.verdict(track)) for case in cases for track in case.tracks]
    counts = pd.Series([word for word, _ in pairs]).value_counts()
    words = ", ".join(f"{counts[word]} {word}" for word in Verdict if word in counts)
    moved = sum(word != own for word, own in pairs)
    where = "on the home axis" if axis is None else f"in {AXES[axis]}"
    return f"Margin {margin:.0%}, {where}: {words}; " + (f"{moved} moved (bold)" if moved else "none moved")
