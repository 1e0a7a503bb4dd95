"""Where a run with finite differences comes to rest: Chapter 4."""

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure

from bilevel_book.figures.valley import draw_valley
from bilevel_book.style import BLACK, BLUE, ORANGE, RED, panels
from bilevel_core.problems import Valley

Curve = tuple[Sequence[float], Sequence[float]]  # values of delta, and something measured there


def resting(problem: Valley, path: Sequence, limit: float, floors: Curve, delta: float) -> Figure:
    """A run with this delta in the plane, and the floor of its squared slope."""
    x, y = (torch.cat([getattr(state, name) for state in path]).numpy() for name in "xy")
    near = torch.linspace(-0.6, 1.1, 200, dtype=torch.float64)
    stop, best = torch.tensor(limit, dtype=torch.float64), near[problem.objective(near).argmin()]
    with panels(2, height=5.4, height_ratios=[3, 2]) as (figure, (plane, floor)):
        draw_valley(plane, problem)
        plane.plot(x, y, color=RED, marker="o", markersize=3, linewidth=1.2)
        plane.plot(limit, problem.y_star(stop), "o", color=RED, markersize=9)
        plane.plot(best, problem.y_star(best), "*", color=ORANGE, markersize=15, markeredgecolor=BLACK)
        plane.set(xlim=(-0.6, 1.1), ylim=(-1.2, 1.9), title=f"FdeHBO rests at x = {limit:.3f}, not at the star")
        floor.loglog(*floors, color=BLUE)
        floor.loglog(delta, problem.hypergradient(stop) ** 2, "o", color=RED, markersize=9)
        floor.set(xlabel="δ", ylabel="floor of |Φ′|²", xlim=(0.02, 4), ylim=(1e-8, 50))
        floor.set_title("The floor falls with the fourth power of δ")
        return figure
