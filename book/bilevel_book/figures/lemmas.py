"""The contraction factor of the linear system, true and printed. Chapter 12."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from bilevel_book.style import BLACK, BLUE, GREEN, ORANGE, RED, panels


def factors(units: np.ndarray, curves: Mapping[str, np.ndarray], limit: float) -> Figure:
    """Factors on the squared distance against lam, in units of 2 / (mu + L), where the contraction ends.

    `curves` holds the truth, the bound that the proofs use and the printed factor; `limit` is the printed one on lam.
    """
    looks = ({"color": BLUE, "linewidth": 3}, {"color": GREEN, "linestyle": "--"}, {"color": RED, "linestyle": "-."})
    with panels(height=4.4) as (figure, axes):
        figure.set_layout_engine("none")  # a fixed place, with room for a legend below: frames do not jump
        axes.set_position((0.12, 0.2, 0.85, 0.777))
        axes.axhspan(-2, 0, color=RED, alpha=0.07, linewidth=0)
        axes.axhline(0, color=BLACK, linewidth=0.8)
        axes.axvline(1, color=BLACK, linewidth=0.8, linestyle=":")
        for (name, values), look in zip(curves.items(), looks, strict=True):
            axes.plot(units, values, label=name, **look)
        if limit < units[-1]:
            axes.axvline(limit, color=ORANGE, linewidth=1.4)
            axes.text(limit, 1.66, " printed limit", color=BLACK, fontsize=9.5, ha="left" if limit < 0.7 else "right")
        axes.text(0.02, -1.9, "a squared norm cannot be here", fontsize=9.5, color=RED)
        axes.set(xlim=(0, units[-1]), ylim=(-2, 1.9), ylabel="factor on ‖v − v*‖²")
        axes.set(xlabel="λ, in units of 2 / (μ + L)", xticks=[0, 0.5, 1], yticks=[-2, -1, 0, 1])
        figure.legend(loc="lower center", ncols=3, fontsize=9.5, handlelength=1.8, columnspacing=1.2)
        return figure
