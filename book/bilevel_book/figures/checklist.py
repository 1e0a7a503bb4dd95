"""Pictures of the page "If you write a bilevel comparison"."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bilevel_book.figures.verdicts import MARKS
from bilevel_book.style import BLACK, BLUE, GREY, ORANGE, PURPLE, house_style, look, name_lines, panels
from bilevel_book.verdicts.deciding import Verdict

INTERVALS = {  # colour, line, mark
    "Student's t": (BLUE, "-", "o"),
    "percentile bootstrap": (ORANGE, "--", "s"),
    "smallest to largest": (PURPLE, ":", "^"),
}


def coverages(table: pd.DataFrame) -> Figure:
    """Index: the number of seeds; a column for each kind of interval."""
    with house_style():
        figure, axes = panels(width=6.4, height=3.6)
        axes.axhline(0.95, color=GREY, linewidth=1)
        axes.text(14.7, 0.96, "promised: 95 %", color=GREY, ha="right", va="bottom", fontsize=9)
        for name, (colour, line, mark) in INTERVALS.items():
            axes.plot(table.index, table[name], line, color=colour, marker=mark, markersize=5, label=name)
        axes.set(xlabel="seeds", ylabel="how often the truth is inside", ylim=(0.45, 1.02))
        axes.set_xticks(table.index)
        axes.set_yticks(np.arange(0.5, 1.01, 0.1), [f"{share:.0%}" for share in np.arange(0.5, 1.01, 0.1)])
        name_lines(axes)
        axes.set_title("Few seeds: the bootstrap promises too much")
        return figure


def against_trials(table: pd.DataFrame, title: str) -> Figure:
    """Index: the number of trials; a column for each method with the loss that its best trial shows."""
    with house_style():
        figure, axes = panels(width=6.4, height=4.8)
        for name in table:
            mark = look(name).marker
            axes.plot(table.index, table[name], **look(name).line, marker=mark, markevery=[0, 3, 11], label=name)
        axes.set(xscale="log", yscale="log", xlabel="trials", ylabel="test loss of the best, median")
        axes.set_xticks([1, 4, 12, 24], ["1", "4", "12", "24"])
        axes.set_yticks([0.35, 0.5, 0.7, 1.0], ["0.35", "0.5", "0.7", "1"])
        axes.minorticks_off()
        name_lines(axes)
        axes.set_title(title)
        return figure


def chances_of_words(ratio: np.ndarray, chances: Mapping[Verdict, np.ndarray], margin: float) -> Figure:
    """The chance of each verdict against the true ratio, the praised method's over its rival's."""
    with house_style():
        figure, axes = panels(width=6.4, height=3.6)
        axes.axvspan(1 / (1 + margin), 1 + margin, color=GREY, alpha=0.25, linewidth=0)
        axes.axvline(1, color=BLACK, linewidth=0.8)
        for word, chance in chances.items():
            colour, mark, filled = MARKS[word]
            shape = {"marker": mark, "markevery": 10, "markerfacecolor": colour if filled else "white"}
            axes.plot(ratio, chance, color=colour, label=str(word), **shape)
        axes.set(xscale="log", xlabel="true ratio, praised / rival", ylabel="chance of the word", ylim=(-0.03, 1.03))
        axes.set_xticks([0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.4], ["0.7", "0.8", "0.9", "1", "1.1", "1.25", "1.4"])
        axes.minorticks_off()
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=4, columnspacing=1, handlelength=1.4)
        return figure
