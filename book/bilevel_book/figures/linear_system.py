"""Gradient steps on the bowl R of the linear system H v = b."""

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from bilevel_book.style import BLACK, BLUE, RED, SKY, panels

WINDOW = (-1.35, 1.65, -1.75, 0.25)  # of the plane of v: left, right, bottom, top


def iterates(H: Tensor, b: Tensor, path: Tensor, rate: float) -> Figure:
    """Gradient steps on R for one step size: on the level lines, and the error after each step."""
    centre = torch.linalg.solve(H, b)
    error = torch.linalg.vector_norm(path - centre, dim=1)
    error = error / error[0]
    with panels(2, height=5.6, height_ratios=[3, 2]) as (figure, (above, below)):
        draw_bowl(above, H, b)
        above.plot(*path.T, color=RED, marker="o", markersize=4, linewidth=1.2)
        above.plot(*path[0], "x", color=BLACK, markersize=9, markeredgewidth=2)
        above.set_title("The path of v, from the cross")
        steps = np.arange(len(path))
        below.semilogy(steps, rate**steps, color=SKY, linewidth=6, label="worst case")
        below.semilogy(steps, error, color=RED, marker="o", markersize=4, label="this path")
        below.axhline(1, color=BLACK, linewidth=0.8)
        below.set(xlabel="step", ylabel="‖v − v*‖ / start", ylim=(1e-5, 300), xlim=(0, len(path) - 1))
        below.set_xticks(range(0, len(path), 5))
        below.legend(loc="lower left")
        below.set_title(f"After {len(path) - 1} steps the error is {error[-1]:.2g} of its start")
        return figure


def draw_bowl(axes: Axes, H: Tensor, b: Tensor) -> Tensor:
    """Level lines of R(v) = v'Hv / 2 - v'b in the plane, with its lowest point, which is returned."""
    left, right, bottom, top = WINDOW
    first = torch.linspace(left, right, 150, dtype=H.dtype)
    second = torch.linspace(bottom, top, 100, dtype=H.dtype)
    v = torch.stack(torch.meshgrid(first, second, indexing="xy"), dim=-1)
    centre = torch.linalg.solve(H, b)
    height = ((v - centre) @ H * (v - centre)).sum(-1) / 2  # R above its minimum
    axes.contour(first, second, height.sqrt(), levels=np.linspace(0, 3, 9)[1:], colors=BLUE, linewidths=0.8)
    axes.plot(*centre, "*", color=BLACK, markersize=13)
    axes.annotate("v*", centre, xytext=(8, -14), textcoords="offset points", fontsize=12)
    axes.set(xlim=(left, right), ylim=(bottom, top), xlabel="v, first entry", ylabel="second entry")
    axes.set_aspect("equal")
    return centre
