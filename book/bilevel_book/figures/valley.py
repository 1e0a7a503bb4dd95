"""The one-dimensional valley seen from above, and the cover."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bilevel_book.style import BLACK, DEPTH, GREEN, RED, YELLOW, panels
from bilevel_core.problems import Valley
from bilevel_core.solvers import State

WIDTH, HEIGHT = (-2.7, 2.4), (-2.1, 2.1)
XS = torch.linspace(*WIDTH, 500, dtype=torch.float64)
YS = torch.linspace(*HEIGHT, 300, dtype=torch.float64)


def cover(problem: Valley, path: Sequence[State]) -> Figure:
    """The front of the book: a run of FdeHBO through the valley."""
    with panels(width=10, height=4.2) as (figure, axes):
        draw_valley(axes, problem)
        x, y = (torch.cat([getattr(state, name) for state in path]).numpy() for name in "xy")
        axes.plot(x, y, color=RED, linewidth=1.6, alpha=0.8)
        axes.scatter(x, y, s=np.linspace(46, 10, len(x)), color=RED, zorder=3, edgecolor="white", linewidth=0.5)
        axes.text(-2.55, 1.78, "y*(x)", color=BLACK, fontsize=13, style="italic")
        axes.text(0.42, 0.32, "minimum of Φ", color=BLACK, fontsize=12)
        axes.plot(x[-1], y[-1], "*", color=YELLOW, markersize=20, markeredgecolor=BLACK)
        axes.set_axis_off()
        return figure


def draw_valley(axes: Axes, problem: Valley) -> None:
    """How high g lies above its floor in blue, f as green lines, and the floor y*(x)."""
    X, Y = torch.meshgrid(XS, YS, indexing="xy")
    floor = problem.y_star(X)
    height = torch.cosh(Y) - problem.s(X) * Y - (torch.cosh(floor) - problem.s(X) * floor)
    axes.contourf(X, Y, torch.sqrt(height), levels=np.linspace(0, 2.6, 12), cmap=DEPTH, extend="max")
    F = ((Y - problem.a) ** 2 + problem.c * (X - problem.b) ** 2) / 2
    axes.contour(X, Y, F, levels=[0.1, 0.4, 0.9, 1.6, 2.5, 3.6], colors=GREEN, linewidths=0.7)
    axes.plot(XS, problem.y_star(XS), color=BLACK, linewidth=2.2, label="valley floor y*(x)")
    axes.set(xlim=WIDTH, ylim=HEIGHT, xlabel="x", ylabel="y")
