"""The family of the methods."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from bilevel_book.style import BLUE, RED, panels

# What a method needs: words, a colour, and a frame, so that the colour is not needed to read the picture.
SECOND = {"text": "products Hv, Jv", "color": BLUE, "fill": True, "line": "-"}
FIRST = {"text": "gradients only", "color": RED, "fill": False, "line": "-"}
NONE = {"text": "nothing about v*", "color": "#777777", "fill": False, "line": ":"}
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
    "stocBiO": "average\nx, y", "MRBO": "SPIDER", "BSA": "average\nx, y", "F2SA": "average\nall six",
}  # fmt: skip


def family_tree() -> Figure:
    """All methods by what they do about v*; to the right, how they average."""
    with panels(width=4.7, height=8.2) as (figure, axes):
        for row, (family, methods) in enumerate(FAMILIES):
            axes.text(-0.42, 0.29 - row, family + ":", fontsize=11, style="italic")
            for column, (name, needs) in enumerate(methods):
                _frame(axes, column, -row, name, needs)
                if name in STEPS:
                    axes.annotate("", (column + 0.66, -row), (column + 0.36, -row), arrowprops={"arrowstyle": "->"})
                    axes.text(column + 0.5, -row - 0.14, STEPS[name], ha="center", va="top", fontsize=8.5)
        keys = [Patch(**_box(needs), label=needs["text"]) for needs in (SECOND, FIRST, NONE)]
        axes.legend(handles=keys, loc="lower right", title="a step needs", alignment="left")
        axes.set(xlim=(-0.5, 3.5), ylim=(-8.4, 0.8), title="Nine ways to deal with v*")
        axes.set_axis_off()
        return figure


def _frame(axes: Axes, x: float, y: float, text: str, needs: dict[str, Any]) -> None:
    ink, box = "white" if needs["fill"] else needs["color"], {"boxstyle": "round,pad=0.35"} | _box(needs)
    axes.text(x, y, text, ha="center", va="center", color=ink, weight="bold", fontsize=9.5, bbox=box)


def _box(needs: dict[str, Any]) -> dict[str, Any]:
    fill = needs["color"] if needs["fill"] else "none"
    return {"facecolor": fill, "edgecolor": needs["color"], "linestyle": needs["line"]}
