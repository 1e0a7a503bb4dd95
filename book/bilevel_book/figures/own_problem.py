"""Pictures of the chapter on problems of one's own: penalties, learned images, attention, which method to take."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bilevel_book.style import BLACK, BLUE, GREEN, GREY, ORANGE, look, name_lines, panels


def penalties(found: Sequence[float], best: Sequence[float], matter: int) -> Figure:
    """The logarithm of the penalty of every feature, as found and as it is best; the first `matter` features matter."""
    with panels(height=3.2) as (figure, axes):
        places = np.arange(1, len(found) + 1)
        axes.axvspan(0.4, matter + 0.5, color=GREEN, alpha=0.1, linewidth=0)
        axes.axhline(0, color=GREY, linewidth=0.8)
        axes.plot(places, best, "x", color=BLACK, markersize=8, markeredgewidth=1.8, label="L-BFGS on Φ")
        axes.plot(places, found, "o", color=BLUE, label="FdeHBO")
        axes.text(0.6, 0.93, "matter", transform=axes.get_xaxis_transform(), color=GREEN, fontsize=10)
        axes.set(xlabel="feature", ylabel="log penalty", xlim=(0.4, len(found) + 0.6), xticks=[1, 5, 10, 15, 20])
        axes.set_title("Features that matter are freed of their penalty")
        figure.legend(loc="outside lower center", ncols=2)
        return figure


def pictures(rows: Mapping[str, np.ndarray]) -> Figure:
    """A row of small images for each name."""
    with panels(rows=len(rows), height=0.95 * len(rows) + 0.1) as (figure, axes):
        for one, (name, images) in zip(axes, rows.items(), strict=True):
            strip = np.concatenate([np.pad(image, 1, constant_values=np.nan) for image in images], 1)
            low, high = np.nanpercentile(strip, [1, 99])
            one.imshow(strip, cmap="gray_r", vmin=low, vmax=high)
            one.set_axis_off()
            one.set_title(name, fontsize=10.5)
        return figure


def attention(steps: pd.DataFrame, errors: pd.DataFrame) -> Figure:
    """Time and memory of a step over the length of the text, and the error of H v and J v against delta."""
    own = steps[(steps.width == 64) & (steps.kind == np.where(steps.method.isin(["FMBO", "SOBA"]), "plain", "fused"))]
    with panels(rows=3, height=8.2) as (figure, axes):
        figure.set_layout_engine("none")
        for place, (ax, column) in enumerate(zip(axes, ("ms", "megabytes"), strict=False)):
            for method, rows in own.groupby("method"):
                if (method, column) == ("FdeHBO, one graph", "ms"):
                    continue  # as FdeHBO
                ax.plot(rows.length, rows[column], marker=look(method).marker, label=method, **look(method).line)
            ax.set(xscale="log", yscale="log", ylabel=("milliseconds", "megabytes")[place])
            ax.set_xticks(lengths := sorted(own.length.unique()), lengths)
            ax.minorticks_off()
        for (arithmetic, line), (product, colour) in itertools.product(
            (("float32", "-"), ("bfloat16", "--")), (("Hv", BLUE), ("Jv", ORANGE))
        ):
            rows = errors[(errors.arithmetic == arithmetic) & (errors.delta > 0)]
            axes[2].plot(rows.delta, rows[product], line, color=colour, label=f"{product}, {arithmetic}")
        axes[1].set_xlabel("characters in a row of text")
        axes[2].set(xscale="log", yscale="log", xlabel="δ, with ||v|| = 1", ylabel="relative error", ylim=(None, 2))
        last = own[own.length == own.length.max()].set_index("method")
        times, memory = (last[column].FdeHBO / last[column].FMBO for column in ("ms", "megabytes"))
        axes[0].set_title(f"FdeHBO at {own.length.max()}: {times:.2f} of FMBO's time")
        axes[1].set_title(f"... and {memory:.2f} of its memory")
        axes[2].set_title("Differences need float32 and a δ of about 0.1")
        for ax, bottom in zip(axes, (0.71, 0.405, 0.07), strict=True):
            ax.set_position((0.14, bottom, 0.6, 0.24))
        name_lines(axes[0])
        name_lines(axes[1])
        axes[2].legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9)
        return figure


DECISIONS = (
    ("Up to four numbers in x?", "a search, and\nno bilevel method"),
    ("Fused attention, long texts or\noperators of your own?", "FdeHBO, or SOBA\nwith delta=0.01"),
    ("g strongly convex, and all data\nin one evaluation? g very flat?", "objective(problem),\nL-BFGS or Adam"),
    ("Is y a network?", "a single loop from a\nfit, then refit"),
    ("Otherwise: much data, or noise", "SOBA or FMBO"),
)


def decision() -> Figure:
    """Questions from the top to the bottom; a yes leads to the right."""
    with panels(height=4.8) as (figure, axes):
        axes.set(xlim=(0, 10), ylim=(len(DECISIONS) - 0.4, -0.5))
        axes.set_axis_off()
        axes.set_title("Differences are for attention; small problems need no loop")
        arrow = {"arrowstyle": "->", "color": GREY, "linewidth": 1.5}
        box = {"boxstyle": "round", "facecolor": "none"}
        for row, (question, answer) in enumerate(DECISIONS):
            colour = BLUE if answer.startswith("FdeHBO") else GREEN
            centred = {"ha": "center", "va": "center", "size": 10.5}
            axes.text(2.6, row, question, **centred, bbox=box | {"edgecolor": GREY})
            axes.text(8.4, row, answer, **centred, color=colour, bbox=box | {"edgecolor": colour})
            axes.annotate("", (6.75, row), (5.55, row), arrowprops=arrow)
            if row < len(DECISIONS) - 1:
                axes.text(6.1, row - 0.08, "yes", ha="center", va="bottom", size=10, color=GREY)
                axes.annotate("", (2.6, row + 0.7), (2.6, row + 0.3), arrowprops=arrow)
                axes.text(2.75, row + 0.5, "no", va="center", size=10, color=GREY)
        return figure
