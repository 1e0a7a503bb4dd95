"""Pictures of the linear system H v = b: level lines of R, contraction, a moving target, and what a product buys."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from bilevel_book.style import BLACK, BLUE, DEPTH, GREEN, ORANGE, PURPLE, RED, SKY, panels

WINDOW = (-1.35, 1.65, -1.75, 0.25)  # of the plane of v: left, right, bottom, top


def bowl(H: Tensor, b: Tensor, points: Sequence[Tensor]) -> Figure:
    """Level lines of R, its two axes, and at some points the way down beside the way to v*."""
    with panels(height=4.2) as (figure, axes):
        centre = draw_bowl(axes, H, b)
        values, vectors = torch.linalg.eigh(H)
        for value, vector, name in zip(values, vectors.T, ("μ", "L"), strict=True):
            reach = 0.95 * vector / value.sqrt()  # the same height of R on both axes
            ends = torch.stack((centre - reach, centre + reach))
            axes.plot(*ends.T, color=BLACK, linewidth=1, linestyle=":")
            right = ends[ends[:, 0].argmax()]
            axes.annotate(f"curvature {name}", right, xytext=(5, 0), textcoords="offset points", fontsize=10)
        for point in points:
            downhill = -(H @ point - b)
            axes.annotate("", point + 0.25 * downhill, point, arrowprops={"arrowstyle": "-|>", "color": RED, "lw": 2})
            axes.plot(*torch.stack((point, centre)).T, color=ORANGE, linewidth=1.4, linestyle="--")
            axes.plot(*point, "o", color=RED, markersize=6)
        axes.plot([], [], color=RED, label="downhill, −d_v")
        axes.plot([], [], color=ORANGE, linestyle="--", label="straight to v*")
        axes.legend(loc="lower left", facecolor="white", frameon=True, framealpha=0.9, edgecolor="none")
        axes.set_title("Downhill leads to v*, but not straight")
        return figure


def iterates(H: Tensor, b: Tensor, path: Tensor, rate: float) -> Figure:
    """Gradient steps on R for one step size: on the level lines, and the error after each step."""
    centre = torch.linalg.solve(H, b)
    error = torch.linalg.vector_norm(path - centre, dim=1)
    error = error / error[0]
    with panels(2, height=6.4, height_ratios=[3, 2]) as (figure, (above, below)):
        draw_bowl(above, H, b, filled=False)  # a frame has few colours to spend
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


def factors(lam: Tensor, measured: Tensor, exact: Tensor, used: Tensor, printed: Tensor, mu: float, L: float) -> Figure:
    """Factors on the squared distance over the step size; `measured` has a row for each tried direction."""
    with panels(height=4.6) as (figure, axes):
        low, high = measured.min(0).values, measured.max(0).values
        axes.fill_between(lam, low, high, color=SKY, alpha=0.35, linewidth=0, label="over all directions")
        axes.plot(lam, exact, color=BLUE, label="exact worst case")
        safe = lam <= 2 / (mu + L)
        axes.plot(lam[safe], used[safe], color=GREEN, linestyle="--", label="1 − 2λμL/(μ+L), used later")
        axes.plot(lam, printed, color=RED, linestyle="-.", label="printed in the paper")
        axes.axhline(0, color=BLACK, linewidth=0.8)
        axes.axhline(1, color=BLACK, linewidth=0.8, linestyle=":")
        for place, name in ((2 / (mu + L), "2/(μ+L)"), (2 / L, "2/L")):
            axes.axvline(place, color=BLACK, linewidth=0.8, linestyle=":")
            axes.text(place + 0.01, 1.62, name, fontsize=10)
        axes.set(xlabel="λ", ylabel="factor on ‖v − v*‖²", xlim=(0, lam[-1]), ylim=(-1.8, 1.8))
        figure.legend(loc="outside lower center", ncols=2)
        axes.set_title("A bound must lie above the shaded band")
        return figure


def tracking(errors: dict[float, Tensor], bound: dict[float, float], stop: int) -> Figure:
    """The distance to a target that moves with constant speed and then stops, for several speeds."""
    with panels(height=4.0) as (figure, axes):
        for (speed, error), colour, style in zip(errors.items(), (BLUE, ORANGE, GREEN), ("-", "--", "-."), strict=True):
            axes.semilogy(error, color=colour, linestyle=style)
            axes.plot([12, stop], [bound[speed]] * 2, color=BLACK, linewidth=1, linestyle=":")
            words = {"color": BLACK, "fontsize": 10, "ha": "right", "va": "center"}
            axes.text(stop - 1.5, 0.35 * bound[speed], f"speed {speed:g}", **words)
        axes.axvline(stop, color=BLACK, linewidth=0.8)
        axes.text(stop - 1.5, 3.0, "x stops here", ha="right", fontsize=10)
        axes.plot([], [], color=BLACK, linewidth=1, linestyle=":", label="bound: drift / (1 − ρ)")
        axes.set(xlabel="t", ylabel="‖v − v*‖", xlim=(0, len(error) - 1), ylim=(1e-6, 6))
        axes.legend(loc="lower left")
        axes.set_title("Ten times slower, ten times closer")
        return figure


def what_products_buy(curves: dict[str, tuple[Sequence[int], Sequence[float]]]) -> Figure:
    """Relative error of v against the products spent so far, for several ways to spend them."""
    looks = ((PURPLE, ":", 2.2), (ORANGE, "--", 1.8), (SKY, "--", 1.8), (RED, "-", 2.6), (BLUE, "-.", 1.6))
    with panels(height=4.8) as (figure, axes):
        for (name, (products, error)), (colour, style, width) in zip(curves.items(), looks, strict=True):
            axes.semilogy(products, error, color=colour, linestyle=style, linewidth=width, label=name)
        axes.set(xlabel="products H v spent", ylabel="relative error of v", xlim=(0, None), ylim=(5e-7, 2))
        figure.legend(loc="outside lower center", ncols=2)
        axes.set_title("Cold solvers repeat their error")
        return figure


def draw_bowl(axes: Axes, H: Tensor, b: Tensor, filled: bool = True) -> Tensor:
    """Level lines of R(v) = v'Hv / 2 - v'b in the plane, with its lowest point, which is returned."""
    left, right, bottom, top = WINDOW
    first = torch.linspace(left, right, 150, dtype=H.dtype)
    second = torch.linspace(bottom, top, 100, dtype=H.dtype)
    v = torch.stack(torch.meshgrid(first, second, indexing="xy"), dim=-1)
    centre = torch.linalg.solve(H, b)
    height = ((v - centre) @ H * (v - centre)).sum(-1) / 2  # R above its minimum
    if filled:
        axes.contourf(first, second, height.sqrt(), levels=np.linspace(0, 2.1, 10), cmap=DEPTH, extend="max")
    else:
        axes.contour(first, second, height.sqrt(), levels=np.linspace(0, 3, 9)[1:], colors=BLUE, linewidths=0.8)
    axes.plot(*centre, "*", color=BLACK, markersize=13)
    axes.annotate("v*", centre, xytext=(8, -14), textcoords="offset points", fontsize=12)
    axes.set(xlim=(left, right), ylim=(bottom, top), xlabel="v, first entry", ylabel="second entry")
    axes.set_aspect("equal")
    return centre
