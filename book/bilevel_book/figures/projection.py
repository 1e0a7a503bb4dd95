"""The path of v in its ball: the slider of Chapter 5."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from bilevel_book.style import BLACK, BLUE, RED, panels


def path_in_ball(path: np.ndarray, target: np.ndarray, radius: float, slope: np.ndarray, level: float) -> Figure:
    """Above: v in the plane with its ball. Below: ||grad Phi|| along the same run, and its usual level at the end."""
    with panels(2, height=6.4, height_ratios=[3, 1.5]) as (figure, (above, below)):
        draw_ball(above, radius)
        above.plot(*path.T, color=BLUE, linewidth=0.8, alpha=0.8)
        above.plot(*path[-100:].T, "o", color=BLUE, markersize=2.5)
        above.plot(*target, "*", color=RED, markersize=15, markeredgecolor="white")
        above.set(xlim=(-1.6, 1.6), ylim=(-1.1, 1.1), aspect="equal", xlabel="first entry of v", ylabel="second")
        above.set_title("The path of v in its ball; the star is v*")
        below.semilogy(slope, color=BLACK, linewidth=1)
        below.axhline(max(level, 1e-4), color=RED, linewidth=1.5, linestyle="--")
        below.set(xlabel="t", ylabel="‖∇Φ‖", ylim=(1e-4, 4))
        below.set_title("Slope of Φ at the end: " + (f"{level:.3f}" if level >= 1e-3 else "below 0.001"))
        return figure


def draw_ball(axes: Axes, radius: float) -> None:
    axes.add_patch(Circle((0, 0), radius, facecolor="#e4f0f8", edgecolor=BLACK, linewidth=1.2))
    axes.set_axisbelow(True)
