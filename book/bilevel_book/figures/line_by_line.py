"""One iteration of FMBO, as arrows: the slider of Chapter 7."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bilevel_book.style import BLACK, BLUE, GREEN, ORANGE, panels
from bilevel_core.directions import Directions
from bilevel_core.problems import Quadratic
from bilevel_core.solvers import State

TALL = 0.52  # height of a plane over its width
ARROW = {"arrowstyle": "->", "shrinkA": 0, "shrinkB": 0, "mutation_scale": 11}


class Iteration(NamedTuple):
    """One step as it happened: the point it left, its directions in truth, on its samples, and averaged."""

    state: State
    truth: Directions
    sampled: Directions
    h: Directions


def arrows_of_a_step(problem: Quadratic, walk: Sequence[Iteration], t: int) -> Figure:
    """The planes of y, v and x (two dimensions each): path, target, and the three candidates for the next move."""
    with panels(3, height=8.6) as (figure, planes):
        targets = {
            "y": [problem.y_star(step.state.x) for step in walk],
            "v": [problem.v_star(step.state.x, step.state.y) for step in walk],
            "x": [problem.minimiser] * len(walk),
        }
        for axes, (name, target) in zip(planes, targets.items(), strict=True):
            path = torch.stack([getattr(step.state, name) for step in walk]).numpy()
            _frame(axes, np.concatenate([path, torch.stack(target).numpy()]))
            if name == "x":
                _level_lines(axes, problem)
            axes.plot(*path[: t + 1].T, color="#999999", marker="o", markersize=2.5, linewidth=1)
            axes.plot(*target[t], "*", color=GREEN, markersize=13, zorder=4)
            for kind, colour, width in (("sampled", ORANGE, 3.8), ("truth", BLACK, 2.8), ("h", BLUE, 2.0)):
                move = -getattr(getattr(walk[t], kind), name).numpy()  # drawn half as long as the direction
                style = ARROW | {"color": colour, "lw": width}
                axes.annotate("", path[t] + move / 2, path[t], arrowprops=style, annotation_clip=False)
            axes.set_ylabel(f"{name}, second entry")
        planes[0].set_title(f"t = {t}: the lower level, y on its way to y*(x)")
        planes[1].set_title("the linear system, v on its way to v*(x, y)")
        planes[2].set_title("the upper level, x on its way to the minimiser")
        planes[2].set_xlabel("first entry")
        for label, colour in (("one sample", ORANGE), ("without noise", BLACK), ("momentum h", BLUE)):
            planes[2].plot([], [], color=colour, linewidth=3, label=label)
        figure.legend(loc="outside upper center", ncols=3, handlelength=1.2)
        return figure


def _frame(axes: Axes, points: np.ndarray) -> None:
    """Room for all points, at equal scales: or the angle between two arrows would lie."""
    low, high = points.min(0), points.max(0)
    half = 0.62 * max(high[0] - low[0], (high[1] - low[1]) / TALL) + 0.12
    middle = (low + high) / 2
    axes.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - TALL * half, middle[1] + TALL * half))
    axes.set_box_aspect(TALL)


def _level_lines(axes: Axes, problem: Quadratic) -> None:
    first, second = (torch.linspace(*limits, 40, dtype=torch.float64) for limits in (axes.get_xlim(), axes.get_ylim()))
    grid = torch.cartesian_prod(first, second)
    phi = torch.func.vmap(problem.objective)(grid).view(40, 40)
    axes.contour(first, second, phi.T, levels=6, colors="#bbbbbb", linewidths=0.7)
