"""Pictures of products by finite differences: how large should delta be? Chapter 4."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

from bilevel_book.figures.valley import draw_valley
from bilevel_book.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, panels
from bilevel_core.problems import Valley

COLOURS_OF_TYPES = {"float32": RED, "float64": BLUE}
Curve = tuple[Sequence[float], Sequence[float]]  # values of delta, and something measured there


def two_orders(smooth: Curve, kink: Curve) -> Figure:
    """The error of H v by its order: second where g is smooth, first at a kink of g''."""
    with panels(height=3.8) as (figure, axes):
        axes.loglog(*kink, "s", color=ORANGE, markersize=5, label="g″ has a kink")
        axes.loglog(*smooth, "o", color=BLUE, markersize=5, label="smooth g")
        (deltas, first), (_, second) = kink, smooth
        deltas = np.asarray(deltas)
        axes.loglog(deltas, first[-1] * (deltas / deltas[-1]), color=ORANGE, linewidth=1)
        axes.loglog(deltas, second[0] * (deltas / deltas[0]) ** 2, color=BLUE, linewidth=1)
        axes.text(deltas[2], first[2] * 2.5, "slope 1", color=ORANGE)
        axes.text(deltas[1] * 2.4, second[1], "slope 2", color=BLUE)
        axes.set(xlabel="δ", ylabel="error of Hv", title="Smooth losses give the second order")
        axes.legend(loc="lower right")
        return figure


def what_rounds(
    deltas: Sequence[float], largest: Sequence[float], typical: Sequence[float], guesses: Mapping[str, Sequence[float]]
) -> Figure:
    """The rounding error of H v near the answer, with the guess from the terms of the gradient and from their sum."""
    with panels(height=4.0) as (figure, axes):
        axes.loglog(deltas, guesses["terms"], color=BLACK, linewidth=1.2)
        axes.loglog(deltas, guesses["sum"], color=GREY, linewidth=1.2, linestyle="--")
        axes.loglog(deltas, largest, "o", color=RED, markersize=5, label="largest of 400")
        axes.loglog(deltas, typical, "D", color=ORANGE, markersize=4, label="typical")
        axes.annotate("ε ω / (2δ)", (deltas[4], guesses["terms"][4]), (6, 4), textcoords="offset points")
        axes.annotate("ε ‖∇g‖ / δ", (deltas[4], guesses["sum"][4]), (6, 4), textcoords="offset points", color=GREY)
        axes.set(xlabel="δ", ylabel="rounding error of Hv in float32")
        axes.set_title("The gradient vanishes here, its rounding does not")
        axes.legend(loc="lower left")
        return figure


def rounding(
    curves: Mapping[str, Curve], zoom: Curve, slope: float, secant: float, at: tuple[str, float, float]
) -> Figure:
    """Above: the gradient within two delta of y, as the computer has it. Below: the error for every delta.

    `zoom` holds multiples u of delta and [grad g(y + u delta) - grad g(y)] / delta; `at` number type, delta, error.
    """
    kind, delta, error = at
    colour = COLOURS_OF_TYPES[kind]
    with panels(2, height=6.4, height_ratios=[1, 1]) as (figure, (above, below)):
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
    with panels(2, height=6.2) as (figure, (above, below)):
        for size, (deltas, errors) in curves.items():
            look = {"color": RED, "zorder": 3} if size == norm else {"color": GREY, "linewidth": 1}
            above.loglog(deltas, errors, **look)
            below.loglog(np.asarray(deltas) * size, errors, **look)
        for axes, place in ((above, delta), (below, delta * norm)):
            axes.loglog(place, error, "o", color=ORANGE, markersize=10, markeredgecolor=BLACK, zorder=4)
            axes.axhline(1e-4, color=GREEN, linewidth=1, linestyle="--")
            axes.set(ylim=(1e-6, 5), ylabel="relative error of Hv")
            axes.minorticks_off()  # frames are drawn faster
        above.text(1.2e-6, 1.3e-4, "goal", color=GREEN)
        above.set(xlabel="δ", xlim=(1e-6, 10), title="Against δ: one curve for each length of v")
        below.set(xlabel="δ ‖v‖", xlim=(1e-6, 10), title="Against δ‖v‖: one curve for all")
        return figure


def nearby(
    v: Sequence[float], curves: Mapping[float, Sequence[float]], minima: Mapping[float, tuple[float, float]]
) -> Figure:
    """R_delta as a function of v for several delta (0 stands for R), and their minima."""
    with panels(height=3.6) as (figure, axes):
        for (delta, values), colour in zip(curves.items(), (BLACK, BLUE, GREEN, RED), strict=True):
            axes.plot(v, values, color=colour, label=f"δ = {delta:g}" if delta else "R, no difference")
            axes.plot(*minima[delta], "o", color=colour, markersize=7)
        axes.set(xlabel="v", ylabel="$R_δ(v)$", ylim=(-1.7, 3), title="Another convex function, a nearby minimum")
        axes.legend(loc="upper right")
        return figure


def resting(problem: Valley, path: Sequence, limit: float, floors: Curve, delta: float) -> Figure:
    """A run with this delta: in the plane, at its end on Phi, and the floor of its squared slope."""
    x, y = (torch.cat([getattr(state, name) for state in path]).numpy() for name in "xy")
    near = torch.linspace(-0.6, 1.1, 200, dtype=torch.float64)
    phi, stop = problem.objective(near), torch.tensor(limit, dtype=torch.float64)
    best = near[phi.argmin()]
    with panels(3, height=7.6, height_ratios=[2.4, 1.6, 1.8]) as (figure, (plane, objective, floor)):
        draw_valley(plane, problem)
        plane.plot(x, y, color=RED, marker="o", markersize=3, linewidth=1.2)
        plane.plot(limit, problem.y_star(stop), "o", color=RED, markersize=9)
        plane.plot(best, problem.y_star(best), "*", color=ORANGE, markersize=15, markeredgecolor=BLACK)
        plane.set(xlim=(-0.6, 1.1), ylim=(-1.2, 1.9), title=f"FdeHBO rests at x = {limit:.3f}, not at the star")
        objective.plot(near, phi, color=BLACK)
        objective.plot(best, phi.min(), "*", color=ORANGE, markersize=15, markeredgecolor=BLACK)
        objective.plot(limit, problem.objective(stop), "o", color=RED, markersize=9)
        objective.set(xlim=(-0.6, 1.1), ylim=(3.2, 5.2), xlabel="x", ylabel="Φ(x)")
        objective.set_title(f"There the slope of Φ is {problem.hypergradient(stop):.2g}")
        floor.loglog(*floors, color=BLUE)
        floor.loglog(delta, problem.hypergradient(stop) ** 2, "o", color=RED, markersize=9)
        floor.set(xlabel="δ", ylabel="floor of |Φ′|²", xlim=(0.02, 4), ylim=(1e-8, 50))
        floor.set_title("The floor falls with the fourth power of δ")
        return figure


def demands(curve: Curve, asked: Mapping[str, float]) -> Figure:
    """What arguments ask for delta, on the curve of what float32 can do."""
    with panels(height=4.4) as (figure, axes):
        axes.loglog(*curve, color=RED)
        deltas, errors = (np.log(np.asarray(part)) for part in curve)
        looks = [(BLACK, "left", (8, 4))] * 3
        looks += [(BLUE, "right", (-8, -9)), (GREEN, "left", (9, -5)), (PURPLE, "left", (9, -5))]
        for (name, delta), (colour, side, shift) in zip(asked.items(), looks, strict=True):
            error = np.exp(np.interp(np.log(delta), deltas, errors))
            axes.plot(delta, error, "o", color=colour, markersize=8, zorder=3)
            words = {"textcoords": "offset points", "color": colour, "ha": side, "fontsize": 10}
            axes.annotate(name, (delta, error), shift, **words)
        axes.set(xlabel="δ at T = 10⁵", ylabel="relative error of Hv in float32", xlim=(1e-9, 200), ylim=(1e-6, 5))
        axes.set_title("A smaller δ is not a better one")
        return figure
