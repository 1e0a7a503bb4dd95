"""Pictures of the methods side by side: their family, and a race."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

from bilevel_book.figures.valley import draw_objective
from bilevel_book.style import BLUE, METHODS, RED, house_style, panels
from bilevel_core.problems.valley import Valley

SECOND, FIRST, NONE = BLUE, RED, "#777777"  # second derivatives by products, gradients only, nothing about v*
FAMILIES = (
    # what is done about v*, and the methods: plain, with momentum or another way of averaging
    ("one step on v", [("SOBA", 0, SECOND), ("FSLA", 1, SECOND), ("FMBO", 2, SECOND), ("FdeHBO", 3, FIRST)]),
    ("several steps on v", [("AmIGO", 0, SECOND)]),
    ("a short series", [("stocBiO", 0, SECOND), ("MRBO", 1, SECOND), ("VRBO", 2, SECOND)]),
    ("a fixed-point loop", [("AID-FP", 0, SECOND)]),
    ("a random product", [("BSA", 0, SECOND), ("SUSTAIN", 1, SECOND)]),
    ("the loop, backwards", [("reverse", 0, SECOND)]),
    ("perturb x, solve again", [("PZOBO-S", 0, FIRST)]),
    ("a penalty instead", [("F2SA", 0, FIRST), ("F3SA", 1, FIRST)]),
    ("ignore it", [("alternating", 0, NONE)]),
)


def family_tree() -> Figure:
    """All methods by what they do about v*; to the right, how they average."""
    edges = {
        "SOBA": "average x", "FSLA": "all three,\nproject v", "FMBO": "finite\ndifferences",
        "stocBiO": "average\nx, y", "MRBO": "SPIDER", "BSA": "average\nx, y", "F2SA": "average\nall six",
    }  # fmt: skip
    with house_style():
        figure, axes = panels(width=6.2, height=6.4)
        for row, (family, methods) in enumerate(FAMILIES):
            axes.text(-0.62, -row, family, ha="right", va="center", fontsize=10)
            for name, column, colour in methods:
                box = {"boxstyle": "round,pad=0.35", "facecolor": colour, "edgecolor": "none"}
                axes.text(
                    column, -row, name, ha="center", va="center", color="white", weight="bold", fontsize=9.5, bbox=box
                )
                if name in edges and column + 1 < 4:
                    axes.annotate("", (column + 0.62, -row), (column + 0.38, -row), arrowprops={"arrowstyle": "->"})
                    axes.text(column + 0.5, -row + 0.16, edges[name], ha="center", va="bottom", fontsize=7.5)
        for text, colour, y in (
            ("products H v, J v", SECOND, -9),
            ("gradients only", FIRST, -9.5),
            ("neither", NONE, -10),
        ):
            axes.text(2.2, y + 1.9, "■ " + text, color=colour, fontsize=10)
        axes.set(xlim=(-2.3, 3.5), ylim=(-8.5, 0.8), title="What is done about v*, and how noise is averaged")
        axes.set_axis_off()
        return figure


Run = tuple[Sequence[int], Sequence[float]]  # oracle calls made after each step, and x there


def race(problem: Valley, runs: dict[str, list[Run]], calls: int) -> Figure:
    """Where each method is after a number of oracle calls: on Phi, and in its lane of |Phi'|."""
    with house_style():
        figure, (above, below) = panels(2, height=7.6, height_ratios=[2, 5])
        draw_objective(above, problem)
        above.set_title(f"After {calls} oracle calls")
        names = list(runs)[::-1]
        for lane, name in enumerate(names):
            colour = METHODS[name].color
            x = torch.tensor([position(run, calls) for run in runs[name]], dtype=torch.float64)
            slopes = problem.hypergradient(x).abs().clamp(min=1e-3)
            above.plot(x, problem.objective(x), "o", color=colour, markersize=5, alpha=0.6)
            below.plot(slopes, [lane] * len(x), "o", color=colour, markersize=4, alpha=0.5)
            below.plot(slopes.median(), lane, "D", color=colour, markersize=8)
        below.set_yticks(range(len(names)), names)
        below.grid(axis="y", alpha=0.3)
        below.set(xscale="log", xlim=(8e-4, 5), ylim=(-0.6, len(names) - 0.4), xlabel="|Φ′(x)|, further left is better")
        below.set_title("Diamond: median of the runs")
        return figure


def position(run: Run, calls: int) -> float:
    """x at the last step that was paid for."""
    made, x = run
    return x[np.searchsorted(made, calls, side="right") - 1]
