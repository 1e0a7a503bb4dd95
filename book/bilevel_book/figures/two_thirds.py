"""Where the exponent two thirds comes from: travel, noise and drift. Chapter 13."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from bilevel_book.style import BLACK, BLUE, GREEN, ORANGE, RED, panels


def exponents(
    T: Sequence[float], terms: Mapping[str, Sequence[float]], drift: Sequence[float], at: tuple[Fraction, Fraction]
) -> Figure:
    """Above, the terms against T for alpha = T^-p, eta = T^-q; below, the rate over the plane of (p, q)."""
    p, q = at
    with panels(2, height=6.6, height_ratios=[1.15, 1]) as (figure, (above, below)):
        for (name, values), colour, style in zip(terms.items(), (BLUE, ORANGE), "-s", strict=True):
            above.loglog(T, values, color=colour, marker=None if style == "-" else style, markersize=4, label=name)
        above.loglog(T, drift, color=GREEN if q <= 2 * p else RED, linestyle=":", label="drift factor α²/η")
        above.axhline(1, color=BLACK, linewidth=0.7)
        above.set(xlim=(T[0], T[-1]), ylim=(1e-9, 1e4), xlabel="number of steps T")
        above.yaxis.set_major_locator(FixedLocator([1e-8, 1e-4, 1, 1e4]))
        above.xaxis.set_major_locator(FixedLocator([1e2, 1e4, 1e6, 1e8]))
        above.minorticks_off()  # frames are drawn faster
        above.legend(loc="upper left", fontsize=9, ncols=3, columnspacing=0.9, handlelength=1.6)
        grid = np.linspace(0, 1.05, 127)
        P, Q = np.meshgrid(grid, grid)
        reach = np.where(2 * P >= Q, np.minimum(1 - P, Q), np.nan)
        below.contourf(P, Q, reach, levels=np.arange(5) / 6 + 1e-9, colors=["#eef4f8", "#cbdfec", "#97c0d9", "#5b9ac2"])
        for k, place in zip((1, 2, 3), (0.45, 0.45, 0.4), strict=True):
            below.text(place, k / 6, Fraction(k, 6), fontsize=9, ha="center", va="center")
        below.text(0.02, 0.86, "η too small: no bound", fontsize=9.5, color=RED)
        below.plot(1 / 3, 2 / 3, "*", color=ORANGE, markersize=15, markeredgecolor=BLACK)
        below.plot(float(p), float(q), "o", color=RED, markersize=10, markeredgecolor=BLACK)
        below.set(xlim=(0, 1), ylim=(0, 1.05), xlabel="p", ylabel="q", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        below.set_title("Rate exponent for all (p, q); the star is the theorem")
        return figure
