"""Pictures of what released code does: Chapter 11."""

import math
from collections.abc import Sequence
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bilevel_book.style import BLACK, BLUE, GREEN, GREY, ORANGE, RED, look, name_lines, panels
from bilevel_book.verdicts.judging import MARGIN, against

CHANCE = math.log(10)
MARKS = {  # how a word of `against` is drawn
    "no difference": (ORANGE, "s"),
    "undecided": (GREY, "o"),
    "higher": (RED, ">"),
    "lower": (RED, "<"),
}


def relabelled(
    k: np.ndarray, fraction: np.ndarray, uses: int, images: np.ndarray, truth: Sequence[int], labels: Sequence[int]
) -> Figure:
    """Above: the fraction of wrong labels after k uses, now marked. Below: a dozen images with the labels of now."""
    with panels(2, height=5.2, height_ratios=[1.5, 1.7]) as (figure, (above, below)):
        above.axhline(0.9, color=BLACK, linestyle=":", linewidth=1.2)
        above.plot(k, fraction, color=BLUE)
        above.plot(uses, fraction[uses], "o", color=RED, markersize=9)
        above.set(xlabel="times that a label was used", ylabel="wrong labels", ylim=(-0.03, 1), xlim=(-2, k[-1] + 2))
        wide = len(images) // 2
        rows = [np.hstack(images[i : i + wide]) for i in (0, wide)]
        gap = np.zeros((11, rows[0].shape[1]))
        below.imshow(1 - np.vstack([gap, rows[0], gap, rows[1]]), cmap="gray", vmin=0, vmax=1)
        for i, (true, label) in enumerate(zip(truth, labels, strict=True)):
            row, column = divmod(i, wide)
            words = {"ha": "center", "va": "center", "fontsize": 15, "weight": "bold"}
            below.text(28 * column + 14, 39 * row + 8, str(label), color=GREEN if true == label else RED, **words)
        below.set_axis_off()
        below.set_title("The label of each image (red: wrong)")
        return figure


def levels(
    runs: dict[str, dict[str, pd.DataFrame]], recorded: pd.DataFrame, published: dict[str, Sequence[float]]
) -> Figure:
    """A panel for each method: train loss by outer steps, mean and range, beside recorded ends of the released code, as
    it is (filled) and with noise drawn once, and levels in published figures (grey dots)."""
    names = {"correct": "noise drawn once", "labels re-noised": "re-noised", "all": "other switches too"}
    with panels(len(runs), height=2.6 * len(runs) + 1.0, squeeze=False) as (figure, axes):
        handles: dict[str, Line2D] = {}
        for panel, (method, curves) in zip(axes[:, 0], runs.items(), strict=True):
            for number, (label, losses) in enumerate(curves.items()):
                drawn = look(method if number == 0 else f"{method}, {label}", number=number - 1)
                panel.plot(losses.index, losses.mean(axis=1), label=names[label], **drawn.line)
                range_of_seeds(panel, losses.index, losses, drawn.color)
            ends = recorded[recorded.method == method]
            for noise, full in (("redrawn", True), ("once", False)):
                some, face = ends[ends.noise == noise], BLACK if full else "white"
                mark = {"color": BLACK, "markerfacecolor": face, "markersize": 7}
                (handles[f"released code, noise {noise}"],) = panel.plot(some.outer_steps, some.train_loss, "D", **mark)
            edge = max([ends.outer_steps.max(), *(losses.index.max() for losses in curves.values())])
            for level in published[method]:
                dots = {"color": GREY, "linestyle": (0, (1, 3)), "linewidth": 2}
                (handles["level in published figure"],) = panel.plot([0, edge], [level] * 2, **dots)
            panel.axhline(CHANCE, color=BLACK, linewidth=0.9)
            panel.text(edge, CHANCE * 0.97, "ln 10", ha="right", va="top", fontsize=9.5)
            panel.set(yscale="log", ylim=(0.33, 28), ylabel="train loss")
            panel.set_yticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
            panel.minorticks_off()
            panel.set_title(method, fontsize=11)
            name_lines(panel)
        axes[-1, 0].set_xlabel("outer steps")
        title = "Re-noised labels alone keep the loss near ln 10 or above"
        figure.suptitle(title, x=0.02, ha="left", weight="bold", size=11.5)
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=2, fontsize=9, columnspacing=1.2)
        return figure


def range_of_seeds(panel: Axes, at: pd.Index, losses: pd.DataFrame, colour: str) -> None:
    """A band from the lowest to the highest seed."""
    panel.fill_between(at, losses.min(axis=1), losses.max(axis=1), color=colour, alpha=0.2, linewidth=0)


def by_switch(title: str, loss: pd.DataFrame, auc: pd.DataFrame) -> Figure:
    """Train loss and AUC side by side, a line for each switch: mean and range of the seeds, and the verdict on the
    ratio to the correct run, the first row. A strip shows that run, a dotted line the reading of a guess."""
    with panels(height=2.75) as (figure, whole):
        whole.set_axis_off()
        left, right = figure.subplots(1, 2, sharey=True)
        for panel, table, chance in ((left, loss, CHANCE), (right, auc, 0.5)):
            (correct, *mean), words = table.mean(axis=1), against(table).word
            lowest, highest = table.min(axis=1)[1:], table.max(axis=1)[1:]
            panel.axvspan(correct / (1 + MARGIN), correct * (1 + MARGIN), color=GREY, alpha=0.25, linewidth=0)
            panel.axvline(chance, color=BLACK, linestyle=":", linewidth=1.2)
            for name, place in (("correct", correct), ("a guess", chance)):
                panel.text(place, -0.65, name, ha="center", fontsize=9)
            panel.hlines(range(len(mean)), lowest, highest, color=BLACK)
            for line, (value, told) in enumerate(zip(mean, words, strict=True)):
                colour, mark = MARKS[told]
                panel.plot(value, line, mark, color=colour, markerfacecolor="white" if mark == "o" else colour)
                near = value < (correct + chance) / 2
                panel.annotate(
                    told, (value, line), (8 if near else -8, 0), textcoords="offset points",
                    ha="left" if near else "right", va="center", fontsize=9, color=colour,
                )  # fmt: skip
            panel.tick_params(axis="y", length=0, labelsize=9)
        left.set(xlabel="train loss, published step", xlim=(0, 2.7), ylim=(len(loss) - 1.4, -0.5))
        right.set(xlabel="AUC, larger step", xlim=(0.45, 0.85))
        left.set_yticks(range(len(loss) - 1), [fill(name, 25) for name in loss.index[1:]])
        figure.suptitle(title, x=0.02, ha="left", weight="bold", size=11)
        return figure


def newer(inner: Sequence[int], errors: dict[str, Sequence[float]], slopes: dict[str, Sequence[float]]) -> Figure:
    """The error of v by inner steps of F2SA, and the slope of Phi along runs of SPABA, each right and as released."""
    looks = ((BLUE, "-", "o"), (RED, "--", "s"), (ORANGE, ":", "^"))
    with panels(2, height=6.6) as (figure, (above, below)):
        for (name, error), (colour, line, mark) in zip(errors.items(), looks[:2], strict=True):
            above.loglog(inner, error, color=colour, linestyle=line, marker=mark, label=name)
        for (name, slope), (colour, line, _) in zip(slopes.items(), looks, strict=True):
            below.semilogy(slope, color=colour, linestyle=line, label=name)
        above.set(xlabel="inner steps", ylabel="relative error of v", title="F2SA with the gradient at z: v gets worse")
        below.set(xlabel="step", ylabel="‖∇Φ(x)‖", ylim=(1e-6, 5), title="SPABA tossed once can stop at a wrong point")
        above.legend(loc="upper left")
        below.legend(loc="lower left")
        return figure
