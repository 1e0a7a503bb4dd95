"""The one style of all plots: legible on a phone, in dark mode, in print and to colour-blind readers.

Figures are narrow and stacked, drawn on white; a dark page turns their lightness round and keeps their hues
(`custom.css`, `sliders.css`). So every colour here is legible as a line and as text on both grounds, and the words
around a figure name hues, never "black", "white" or "darker". `METHODS` is the one table of how each method looks;
a label such as "FdeHBO, tuned" is a variant and has its method's colour and mark, with a dash that no method has.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.figure
import matplotlib.pyplot as plt
import numpy as np
from IPython.core.pylabtools import print_figure
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BROWN, GREY, BLACK, YELLOW = (
    "#2A61BD", "#B45E00", "#1F8165", "#C94A40", "#B34595", "#0E7A9B", "#7A4A3A", "#707070", "#222222", "#F0E442",
)  # fmt: skip
DEPTH = LinearSegmentedColormap.from_list("depth", ["#2b5d87", "#79a8c9", "#cfe2ec", "#f7f9fa"])
STYLE = {
    "figure.facecolor": "white",
    "figure.dpi": 160,
    "figure.constrained_layout.use": True,
    "axes.facecolor": "white",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.labelsize": 11,
    "font.size": 11,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "savefig.facecolor": "white",
}


class Look(NamedTuple):
    """How one method is drawn."""

    color: str
    linestyle: Any  # a name of matplotlib, or (0, lengths)
    marker: str

    @property
    def line(self) -> dict[str, Any]:
        return {"color": self.color, "linestyle": self.linestyle}


# No two methods share a colour, nor both dash and mark: whoever sees no colours has those, and the names at the curves.
METHODS = {
    "FdeHBO": Look(BLUE, "-", "o"), "FMBO": Look("#7A3FE0", "--", "o"),
    "SOBA": Look(SKY, "-", "s"), "FSLA": Look(PURPLE, ":", "s"), "AmIGO": Look("#6A7F00", "--", "s"),
    "stocBiO": Look(ORANGE, "-", "^"), "MRBO": Look(RED, "--", "^"), "VRBO": Look("#7F0035", ":", "^"),
    "AID-FP": Look("#2F5D0A", "--", "D"), "AID-CG": Look("#06525F", "-", "D"), "reverse": Look("#17108C", ":", "D"),
    "BSA": Look(GREY, ":", "v"), "SUSTAIN": Look("#B00FC8", "--", "v"),
    "PZOBO-S": Look(BROWN, "-", "P"), "F2SA": Look(GREEN, "-", "X"), "F3SA": Look("#DB1362", "--", "X"),
    "alternating": Look(BLACK, "-", "d"),
    "BOME": Look("#9E637D", "--", "h"), "MEHA": Look("#434C29", "-", "h"), "F2SA-p": Look("#0A01FB", ":", "X"),
    "SRBA": Look("#745803", "-", "p"), "SPABA": Look("#078701", "--", "p"),
    "MA-SOBA": Look("#573366", ":", "o"), "SGHA": Look("#EB0902", "-", "*"),
    "S-TFBO": Look("#00625A", "--", "*"),
}  # fmt: skip
VARIANTS: tuple[Any, ...] = ("-.", (0, (8, 2)), (0, (1, 1)))  # dashes of the variants of one method in one picture


def look(label: str, method: str | None = None, number: int = 0) -> Look:
    """The look of a method, or of a variant of it, the first, second, ...: `look("FdeHBO, tuned")`."""
    found = METHODS.get(method or label.split(",")[0], Look(BLACK, "-", "."))
    return found if label in METHODS else found._replace(linestyle=VARIANTS[number % len(VARIANTS)])


class Figure(matplotlib.figure.Figure):
    """A figure that notebooks show 110 pixels an inch, with the finer dots of its picture."""

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        picture = print_figure(self, "png", bbox_inches="tight")
        width = round(110 / self.dpi * int.from_bytes(picture[16:20], "big"))  # where a PNG says how wide it is
        return {"image/png": picture}, {"image/png": {"width": width}}


@contextmanager
def panels(
    rows: int = 1, width: float = 5.4, height: float = 3.4, columns: int = 1, **options: Any
) -> Iterator[tuple[Figure, Any]]:
    """`with panels(2) as (figure, (above, below)): ...`, stacked axes; the figure only shows when it is returned."""
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(rows, columns, figsize=(width, height), FigureClass=Figure, **options)
        plt.close(figure)  # or the notebook would show it a second time
        yield figure, axes


def name_lines(axes: Axes, size: float = 9) -> None:
    """Each labelled line's name beside the axes, as high as the line ends, instead of a legend; when all is drawn."""
    axes.autoscale_view()
    lines = [line for line in axes.get_lines() if not line.get_label().startswith("_")]
    ends, names = [_end(axes, line) for line in lines], [fill(line.get_label(), 14) for line in lines]
    gap = 1.35 * size * max(name.count("\n") + 1 for name in names)
    points = 72 * axes.get_figure().get_figheight() * axes.get_position().height  # the layout changes it a little
    for line, name, end, place in zip(lines, names, ends, spread([y for _, y in ends], gap / points), strict=True):
        leader = {"arrowstyle": "-", "color": line.get_color(), "linewidth": 0.7, "shrinkB": 0, "relpos": (0, 0.5)}
        axes.annotate(
            name, end, (1.05, place), "axes fraction", "axes fraction",
            va="center", size=size, color=line.get_color(), arrowprops=leader,
        )  # fmt: skip


def _end(axes: Axes, line: Line2D) -> tuple[float, float]:
    """The last point of a line inside the axes, in fractions of them."""
    points = (axes.transData - axes.transAxes).transform(line.get_xydata())
    inside = points[np.isfinite(points).all(axis=1) & (points[:, 0] <= 1 + 1e-9)]
    return inside[-1, 0], float(np.clip(inside[-1, 1], 0, 1))


def spread(wanted: Sequence[float], gap: float) -> np.ndarray:
    """The places in [0, 1] nearest to `wanted`, in its order and at least `gap` apart (isotonic regression)."""
    order, n = np.argsort(wanted, kind="stable"), len(wanted)
    free = np.asarray(wanted)[order] - gap * np.arange(n)
    level = [max(min(free[j : k + 1].mean() for k in range(i, n)) for j in range(i + 1)) for i in range(n)]
    places = np.empty(n)
    places[order] = np.clip(level, 0, 1 - gap * (n - 1)) + gap * np.arange(n)
    return places
