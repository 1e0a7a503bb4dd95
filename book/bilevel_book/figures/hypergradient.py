"""Two tangents: of the lower-level solution, and of the objective."""

import torch
from matplotlib.figure import Figure

from bilevel_book.figures.valley import XS, draw_objective
from bilevel_book.style import BLACK, BLUE, GREEN, ORANGE, RED, panels
from bilevel_core.problems import Valley

REACH = 0.55  # half the width of a tangent, in x


def tangents(problem: Valley, x: float, sensitivity: float, slope: float, direct: float) -> Figure:
    """Above: y* with its tangent. Below: Phi with its true slope, and with the direct term as its slope."""
    at = torch.tensor(x, dtype=torch.float64)
    near = torch.tensor([-REACH, REACH], dtype=torch.float64)
    y, phi = problem.y_star(at), problem.objective(at)
    with panels(2, height=5.8, sharex=True) as (figure, (above, below)):
        above.plot(XS, problem.y_star(XS), color=BLACK)
        above.plot(x + near, y + sensitivity * near, color=BLUE, linewidth=3)
        above.plot(x, y, "o", color=BLUE, markersize=9)
        above.axhline(problem.a, color=GREEN, linewidth=1, linestyle="--")
        above.text(-1.6, problem.a + 0.09, "f prefers y = 1", color=GREEN, fontsize=10)
        above.set(ylabel="y*(x)", ylim=(-2.3, 2.3), title=f"The solution moves at dy*/dx = {sensitivity:+.2f}")
        draw_objective(below, problem)
        below.plot(x + near, phi + slope * near, color=RED, linewidth=4.5, label="hypergradient")
        below.plot(x + near, phi + direct * near, "--", color=ORANGE, linewidth=2.5, label="direct term alone")
        below.plot(x, phi, "o", color=RED, markersize=9)
        below.set(ylim=(-0.4, 3.9), title="The slope of Φ, true and direct")
        below.legend(loc="upper right")
        return figure
