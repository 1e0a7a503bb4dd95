"""Pictures of what released code does: Chapter 11."""

import math
from collections.abc import Sequence
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bilevel_book.figures.verdicts import intervals
from bilevel_book.style import BLACK, BLUE, GREEN, GREY, ORANGE, RED, look, name_lines, panels

CHANCE = math.log(10)
WORSE = {"lower": "better", "higher": "worse"}  # where a small reading is a good one


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
    with panels(len(runs), height=2.6 * len(runs) + 1.0) as (figure, axes):
        handles: dict[str, Line2D] = {}
        for panel, (method, curves) in zip(axes, runs.items(), strict=True):
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
            loss_axis(panel)
            panel.set_ylabel("train loss")
            panel.set_title(method, fontsize=11)
            name_lines(panel)
        axes[-1].set_xlabel("outer steps")
        title = "Re-noised labels alone keep the loss near ln 10 or above"
        figure.suptitle(title, x=0.02, ha="left", weight="bold", size=11.5)
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=2, fontsize=9, columnspacing=1.2)
        return figure


def range_of_seeds(panel: Axes, at: pd.Index, losses: pd.DataFrame, colour: str) -> None:
    """A band from the lowest to the highest seed."""
    panel.fill_between(at, losses.min(axis=1), losses.max(axis=1), color=colour, alpha=0.2, linewidth=0)


def loss_axis(panel: Axes) -> None:
    panel.set_yscale("log")
    panel.set_ylim(0.33, 28)
    panel.set_yticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
    panel.minorticks_off()


def by_switch(title: str, judged: dict[str, pd.DataFrame]) -> Figure:
    """A panel for each reading, a line for each switch, as `against` judged it: to the right it makes things worse."""
    rows = [len(table) for table in judged.values()]
    stacked = {"squeeze": False, "sharex": True, "height_ratios": rows}
    with panels(len(judged), height=1.2 + 0.36 * sum(rows), **stacked) as (figure, axes):
        for panel, (reading, table) in zip(axes[:, 0], judged.items(), strict=True):
            intervals(panel, table.reset_index(drop=True), [fill(str(name), 24) for name in table.index], widest=8.0)
            for line, word in enumerate(table.word):
                place = panel.get_yaxis_transform()
                panel.text(1.02, line, WORSE.get(word, word), transform=place, va="center", fontsize=9)
            panel.set_title(reading, fontsize=10.5, weight="normal")
            panel.set_xlim(0.6, 8)
            panel.set_xticks([1, 2, 4], ["1", "2", "4"])
            panel.tick_params(axis="y", labelsize=8.5)
        axes[-1, 0].set_xlabel("ratio, with the switch / without it")
        figure.suptitle(title, x=0.02, ha="left", weight="bold", size=11)
        return figure


def sums(nu: np.ndarray, truth: np.ndarray, paper: np.ndarray, release: np.ndarray) -> Figure:
    """What two short sums make of 1 / nu."""
    with panels(height=3.5) as (figure, axes):
        axes.axhspan(-1, 0, color=RED, alpha=0.08, linewidth=0)
        axes.axhline(0, color=BLACK, linewidth=0.8)
        axes.plot(nu, truth, color=BLACK, label="1 / ν, the truth")
        axes.plot(nu, paper, color=BLUE, label="sum of the paper")
        axes.plot(nu, release, color=ORANGE, linestyle="--", label="sum of the release")
        axes.text(0.1, -0.62, "v points backwards", color=RED, fontsize=10)
        axes.set(ylim=(-0.8, 3.7), xlim=(0, nu[-1]), xlabel="curvature ν", ylabel="v for a unit gradient")
        name_lines(axes)
        axes.set_title("Above ν = 2 the release turns v round")
        return figure


def clock(losses: dict[str, pd.DataFrame], costs: dict[str, float], evaluation: float) -> Figure:
    """Train loss against a clock that counts the cost of a step and one evaluation, of so many seconds, for each."""
    with panels(height=4.2) as (figure, axes):
        for method, run in losses.items():
            seconds = (costs[method] + evaluation) * run.index
            axes.semilogx(seconds, run.mean(axis=1), markersize=3, label=method, **look(method)._asdict())
            range_of_seeds(axes, seconds, run, look(method).color)
        loss_axis(axes)
        axes.set(xlim=(0.05, 12_000), xlabel="seconds on the clock", ylabel="train loss")
        axes.set_xticks([0.1, 1, 10, 100, 1000, 10_000], ["0.1", "1", "10", "100", "1000", "10000"])
        axes.minorticks_off()
        axes.grid(alpha=0.25)
        figure.legend(loc="outside lower center", ncols=4, columnspacing=1.2)
        return figure


def newer(inner: Sequence[int], errors: dict[str, Sequence[float]], slopes: dict[str, Sequence[float]]) -> Figure:
    """The error of v by inner steps of F2SA, and the slope of Phi along runs of SPABA, each right and as released."""
    looks = ((BLUE, "-", "o"), (RED, "--", "s"), (ORANGE, ":", "^"))
    with panels(2, height=6.6) as (figure, (above, below)):
        for (name, error), (colour, line, mark) in zip(errors.items(), looks[:2], strict=True):
            above.loglog(inner, error, color=colour, linestyle=line, marker=mark, label=name)
        for (name, slope), (colour, line, _) in zip(slopes.items(), looks, strict=True):
            below.semilogy(slope, color=colour, linestyle=line, label=name)
        above.set(xlabel="inner steps", ylabel="relative error of v", title="F2SA: a gradient taken elsewhere")
        below.set(xlabel="step", ylabel="‖∇Φ(x)‖", ylim=(1e-6, 5), title="SPABA: a coin tossed once")
        above.legend(loc="upper left")
        below.legend(loc="lower left")
        return figure
