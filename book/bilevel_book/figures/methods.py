"""The family of the methods."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bilevel_book.style import BLUE, RED, panels

# What a method needs: words, a colour, and a frame, so that the colour is not needed to read the picture.
SECOND = {"text": "filled: a step needs Hv and Jv", "color": BLUE, "fill": True, "line": "-"}
FIRST = {"text": "framed: gradients are enough", "color": RED, "fill": False, "line": "-"}
NONE = {"text": "dotted: the control", "color": "#777777", "fill": False, "line": ":"}
FAMILIES = (
    # what is done about v*, and the methods: plain, then with momentum or another way of averaging
    ("one step on v", [("SOBA", SECOND), ("FSLA", SECOND), ("FMBO", SECOND), ("FdeHBO", FIRST)]),
    ("several steps on v", [("AmIGO", SECOND)]),
    ("a short series", [("stocBiO", SECOND), ("MRBO", SECOND), ("VRBO", SECOND)]),
    ("a fixed-point loop", [("AID-FP", SECOND)]),
    ("a random product", [("BSA", SECOND), ("SUSTAIN", SECOND)]),
    ("the loop, backwards", [("reverse", SECOND)]),
    ("perturb x, solve again", [("PZOBO-S", FIRST)]),
    ("a penalty instead", [("F2SA", FIRST), ("F3SA", FIRST)]),
    ("ignore it", [("alternating", NONE)]),
)
STEPS = {  # what turns a method into its neighbour on the right
    "SOBA": "average x", "FSLA": "all three,\nproject v", "FMBO": "finite\ndifferences",
    "stocBiO": "average\nx and y", "MRBO": "SPIDER", "BSA": "average\nx and y", "F2SA": "average\nall six",
}  # fmt: skip


def family_tree() -> Figure:
    """All methods by what they do about v*; to the right, how they average."""
    with panels(width=4.7, height=6.8) as (figure, axes):
        y = 0.0
        for family, methods in FAMILIES:
            axes.text(0, y, f"{family}:", fontsize=10.5, style="italic", va="center")
            for column, (name, needs) in enumerate(methods):
                _frame(axes, column + 0.06, y - 0.5, name, needs)
                if name in STEPS:
                    arrow = {"arrowstyle": "->", "color": "#555555"}
                    axes.annotate("", (column + 1, y - 0.5), (column + 0.7, y - 0.5), arrowprops=arrow)
                    axes.text(column + 0.85, y - 0.68, STEPS[name], ha="center", va="top", fontsize=8.5)
            y -= 1.3 if len(methods) > 1 else 1.05
        for row, needs in enumerate(
            (SECOND, FIRST, NONE)
        ):  # beside the last rows, as words: boxes would look like methods
            axes.text(
                3.7, y + 2.3 - 0.35 * row, needs["text"], color=needs["color"], weight="bold", fontsize=9, ha="right"
            )
        axes.set(xlim=(0, 3.75), ylim=(y + 0.4, 0.3), title="Eleven of the fifteen need Hv and Jv")
        axes.set_axis_off()
        return figure


def _frame(axes: Axes, x: float, y: float, text: str, needs: dict[str, Any]) -> None:
    ink, fill = ("white", needs["color"]) if needs["fill"] else (needs["color"], "none")
    box = {"boxstyle": "round,pad=0.35", "facecolor": fill, "edgecolor": needs["color"], "linestyle": needs["line"]}
    axes.text(x, y, text, va="center", color=ink, weight="bold", fontsize=9.5, bbox=box)
