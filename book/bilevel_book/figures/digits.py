"""Mislabelled digits while their weights are learnt: Chapter 1."""

from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bilevel_book.digits import Digits
from bilevel_book.style import BLACK, BLUE, RED, panels
from bilevel_core.solvers import State

COLUMNS, PITCH, SIDE, BAR = 6, (1.18, 1.78), 1.0, 0.08  # of the grid, in sides of a digit


def believed(problem: Digits, path: Sequence[State], t: int, shown: int = 12) -> Figure:
    """The first digits with their labels, each as dark as its weight at time t; below, the mean weights of all."""
    weights = torch.stack([torch.sigmoid(state.x) for state in path])
    with panels(2, height=4.6, height_ratios=[3.1, 1.4]) as (figure, (above, below)):
        for k in range(shown):
            _tile(above, problem, k, weights[t, k].item())
        rows = -(-shown // COLUMNS)
        above.set(xlim=(-0.05, COLUMNS * PITCH[0]), ylim=(0.4 - rows * PITCH[1], 0.3), aspect="equal")
        above.set_axis_off()
        for part, colour, style, name in ((~problem.wrong, BLUE, "-", "right"), (problem.wrong, RED, "--", "wrong")):
            mean = weights[:, part].mean(1)
            below.plot(mean, color=colour, linestyle=style)
            below.plot(t, mean[t], "o", color=colour, markersize=8)
            words = {"textcoords": "offset points", "color": colour, "ha": "right"}
            below.annotate(f"labels that are {name}", (len(path) - 1, mean[-1]), (0, 5), **words)
        below.set(xlabel="step t", ylabel="mean weight", ylim=(0, 1.15), xlim=(0, len(path) - 0.5))
        return figure


def _tile(axes: Axes, problem: Digits, k: int, weight: float) -> None:
    """One digit: its given label above, itself as dark as its weight, a bar of its weight below."""
    left, upper = k % COLUMNS * PITCH[0], -(k // COLUMNS) * PITCH[1]
    wrong = bool(problem.wrong[k])
    ink = problem.images[k] / 255 * (0.1 + 0.9 * weight)
    axes.imshow(ink.numpy(), extent=(left, left + SIDE, upper - SIDE, upper), cmap="gray_r", vmin=0, vmax=1)
    colour = RED if wrong else BLACK
    words = f"label {problem.given[k]}" + (" ✗" if wrong else "")
    axes.text(left + SIDE / 2, upper + 0.06, words, ha="center", va="bottom", fontsize=10, color=colour)
    axes.barh(upper - SIDE - BAR, weight * SIDE, BAR, left=left, color=RED if wrong else BLUE)
    axes.text(left + SIDE, upper - SIDE - 2.2 * BAR, f"{weight:.2f}", ha="right", va="top", fontsize=9, color=colour)
