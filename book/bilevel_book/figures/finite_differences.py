"""Pictures of products by finite differences: how large should delta be? Chapter 4."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

from bilevel_book.figures.valley import draw_valley
from bilevel_book.style import BLACK, BLUE, GREEN, GREY, ORANGE, RED, panels
from bilevel_core.problems import Valley

COLOURS_OF_TYPES = {"float32": RED, "float64": BLUE}
Curve = tuple[Sequence[float], Sequence[float]]  # values of delta, and something measured there


def rounding(
    curves: Mapping[str, Curve], zoom: Curve, slope: float, secant: float, at: tuple[str, float, float]
) -> Figure:
    """Above: the gradient within two delta of y, as the computer has it. Below: the error for every delta.

    `zoom` holds multiples u of delta and [grad g(y + u delta) - grad g(y)] / delta; `at` number type, delta, error.
    """
    kind, delta, error = at
    colour = COLOURS_OF_TYPES[kind]
    with panels(2, height=5.4, height_ratios=[1, 1]) as (figure, (above, below)):
        u = np.array([-2.0, 2.0])
        above.plot(u, slope * u, color=BLACK, linewidth=1.2, linestyle="--", label="true slope")
        above.plot(*zoom, color=colour, linewidth=1.5, label=f"gradient in {kind}")
        steps, change = (np.asarray(part) for part in zoom)
        ends = [change[np.abs(steps - end).argmin()] for end in (-1, 1)]
        above.plot([-1, 1], ends, "o-", color=ORANGE, markersize=7, linewidth=1.5, label="the two gradients")
        above.set(xlim=(-2, 2), ylim=(-4, 4), xlabel="(position − y) / δ", ylabel="change / δ")
        above.legend(loc="upper left", fontsize=9)
        above.set_title(f"Slope by two gradients {secant:.4f}, true {slope:.4f}")
        for name, (deltas, errors) in curves.items():
            below.loglog(deltas, errors, color=COLOURS_OF_TYPES[name], alpha=1 if name == kind else 0.35, label=name)
        below.loglog(delta, error, "o", color=ORANGE, markersize=10, markeredgecolor=BLACK)
        below.set(xlabel="δ", ylabel="relative error of Hv", xlim=(5e-10, 2), ylim=(1e-12, 20))
        below.legend(loc="lower left")
        below.set_title(f"{kind}: typical relative error {error:.0e}")
        return figure


def scaling(curves: Mapping[float, Curve], norm: float, delta: float, error: float) -> Figure:
    """The relative error of H v against delta for several ||v||, and against delta ||v||: one curve."""
    with panels(2, height=5.2) as (figure, (above, below)):
        for size, (deltas, errors) in curves.items():
            look = {"color": RED, "zorder": 3} if size == norm else {"color": GREY, "linewidth": 1}
            above.loglog(deltas, errors, **look)
            below.loglog(np.asarray(deltas) * size, errors, **look)
        for axes, place in ((above, delta), (below, delta * norm)):
            axes.loglog(place, error, "o", color=ORANGE, markersize=10, markeredgecolor=BLACK, zorder=4)
            axes.axhline(1e-4, color=GREEN, linewidth=1, linestyle="--")
            axes.set(ylim=(1e-6, 5), ylabel="relative error of Hv")
            axes.minorticks_off()  # frames are drawn faster
        above.text(1.2e-6, 1.3e-4, "10⁻⁴", color=GREEN)
        above.set(xlabel="δ", xlim=(1e-6, 10), title="Against δ: one curve for each length of v")
        below.set(xlabel="δ ‖v‖", xlim=(1e-6, 10), title="Against δ‖v‖: one curve for all")
        return figure


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
