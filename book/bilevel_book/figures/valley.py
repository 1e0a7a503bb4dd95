"""Pictures of the one-dimensional valley: Chapters 1 and 3, and the cover."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from bilevel_book.style import BLACK, BLUE, DEPTH, GREEN, ORANGE, RED, YELLOW, Look, look, panels
from bilevel_core.problems import Valley
from bilevel_core.solvers import State

WIDTH, HEIGHT = (-2.7, 2.4), (-2.1, 2.1)
XS = torch.linspace(*WIDTH, 500, dtype=torch.float64)
YS = torch.linspace(*HEIGHT, 300, dtype=torch.float64)
HALO = [withStroke(linewidth=3.5, foreground="white")]  # or a blue path would be lost on a blue map


def slice_of_lower(problem: Valley, x: float) -> Figure:
    """The lower level at one x, and the value of Phi there."""
    at = torch.tensor(x, dtype=torch.float64)
    y_star = problem.y_star(at)
    with panels(2, height=5.2, height_ratios=[1, 1]) as (figure, (above, below)):
        g = torch.cosh(YS) - problem.s(at) * YS
        above.plot(YS, g, color=BLUE)
        above.plot(y_star, torch.cosh(y_star) - problem.s(at) * y_star, "o", color=RED, markersize=9)
        above.axvline(problem.a, color=GREEN, linewidth=1, linestyle="--")
        above.text(problem.a - 0.05, 6.6, "f prefers y = 1", color=GREEN, ha="right")
        above.set(xlabel="y", ylabel="g(x, y)", ylim=(-2.2, 7.3), title="The lower level takes the minimum of g")
        draw_objective(below, problem)
        below.plot(x, problem.objective(at), "o", color=RED, markersize=9)
        below.set_title("The value of Φ at this x")
        return figure


def step_by_step(problem: Valley, path: Sequence[State], t: int) -> Figure:
    """The run up to time t: the plane with the lag of y as an arrow, and the three errors that must vanish."""
    with panels(2, height=5.6, height_ratios=[3, 2]) as (figure, (plane, errors)):
        x, y = _track(path)
        floor = problem.y_star(torch.tensor(x[t])).item()
        draw_valley(plane, problem)
        draw_path(plane, x[: t + 1], y[: t + 1], look("SOBA"), "SOBA")
        plane.annotate("", (x[t], floor), (x[t], y[t]), arrowprops={"arrowstyle": "->", "lw": 1.5})
        plane.set_title(f"t = {t}: y is {abs(y[t] - floor):.2f} {'above' if y[t] > floor else 'below'} the floor")
        looks = ((BLUE, "-"), (ORANGE, "--"), (GREEN, ":"))
        for (name, error), (colour, style) in zip(errors_of(problem, path).items(), looks, strict=True):
            errors.semilogy(error, color=colour, alpha=0.25, linestyle=style)
            errors.semilogy(error[: t + 1], color=colour, linestyle=style, label=name)
        errors.axvline(t, color=BLACK, linewidth=1)
        errors.set(xlabel="step t", ylim=(1e-7, 10), title="The errors grow while x runs, then all shrink")
        errors.legend(loc="lower left", ncols=3)
        return figure


def errors_of(problem: Valley, path: Sequence[State]) -> dict[str, np.ndarray]:
    """|y - y*|, |v - v*| and |Phi'| along a run."""
    x, y, v = (torch.cat([getattr(state, name) for state in path]) for name in "xyv")
    return {
        "|y − y*|": (y - problem.y_star(x)).abs().numpy(),
        "|v − v*|": (v - problem.v_star(x, y)).abs().numpy(),
        "|Φ′(x)|": problem.hypergradient(x).abs().numpy(),
    }


def cover(problem: Valley, path: Sequence[State]) -> Figure:
    """The front of the book: a run of FdeHBO through the valley."""
    with panels(width=10, height=4.2) as (figure, axes):
        draw_valley(axes, problem)
        x, y = _track(path)
        axes.plot(x, y, color=RED, linewidth=1.6, alpha=0.8)
        axes.scatter(x, y, s=np.linspace(46, 10, len(x)), color=RED, zorder=3, edgecolor="white", linewidth=0.5)
        axes.text(-2.55, 1.78, "y*(x)", color=BLACK, fontsize=13, style="italic")
        axes.text(0.42, 0.32, "minimum of Φ", color=BLACK, fontsize=12)
        axes.plot(x[-1], y[-1], "*", color=YELLOW, markersize=20, markeredgecolor=BLACK)
        axes.set_axis_off()
        return figure


def draw_valley(axes: Axes, problem: Valley) -> None:
    X, Y = torch.meshgrid(XS, YS, indexing="xy")
    floor = problem.y_star(X)
    height = torch.cosh(Y) - problem.s(X) * Y - (torch.cosh(floor) - problem.s(X) * floor)
    axes.contourf(X, Y, torch.sqrt(height), levels=np.linspace(0, 2.6, 12), cmap=DEPTH, extend="max")
    F = ((Y - problem.a) ** 2 + problem.c * (X - problem.b) ** 2) / 2
    axes.contour(X, Y, F, levels=[0.1, 0.4, 0.9, 1.6, 2.5, 3.6], colors=GREEN, linewidths=0.7)
    axes.plot(XS, problem.y_star(XS), color=BLACK, linewidth=2.2, label="valley floor y*(x)")
    axes.set(xlim=WIDTH, ylim=HEIGHT, xlabel="x", ylabel="y")


def draw_path(axes: Axes, x: np.ndarray, y: np.ndarray, style: Look, name: str) -> None:
    """Small marks on the way and a large one at the end, in the look of a method, over whatever lies below."""
    axes.plot(x, y, color=style.color, linewidth=1.2, path_effects=HALO)
    axes.plot(x, y, color=style.color, linewidth=1.2, marker=style.marker, markersize=3, label=name)
    axes.plot(x[-1], y[-1], color=style.color, marker=style.marker, markersize=9, markeredgecolor="white")


def draw_objective(axes: Axes, problem: Valley) -> None:
    axes.plot(XS, problem.objective(XS), color=BLACK)
    axes.set(xlim=WIDTH, ylim=(0, 3.4), xlabel="x", ylabel="Φ(x)")


def _track(path: Sequence[State]) -> tuple[np.ndarray, np.ndarray]:
    return tuple(torch.cat([getattr(state, name) for state in path]).numpy() for name in "xy")
