"""The one style of all plots: legible on a phone, in dark mode, in print and to colour-blind readers.

Figures are narrow and stacked, on an opaque white ground, with the colours of Okabe and Ito. `METHODS` is the one table
of how each method looks; a label such as "FdeHBO, tuned" is a variant and has its method's colour and mark, dashed.
"""

from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#222222",
)  # fmt: skip
DEPTH = LinearSegmentedColormap.from_list("depth", ["#2b5d87", "#79a8c9", "#cfe2ec", "#f7f9fa"])


class Look(NamedTuple):
    """How one method is drawn."""

    color: str
    linestyle: str
    marker: str

    @property
    def line(self) -> dict[str, str]:
        return {"color": self.color, "linestyle": self.linestyle}


# No two methods share a colour, nor both dash and mark: whoever sees no colours has those, and the labels.
METHODS = {
    "FdeHBO": Look(BLUE, "-", "o"), "FMBO": Look("#6A3D9A", "--", "o"),
    "SOBA": Look(SKY, "-", "s"), "FSLA": Look(PURPLE, ":", "s"), "AmIGO": Look("#8A7B00", "--", "s"),
    "stocBiO": Look(ORANGE, "-", "^"), "MRBO": Look(RED, "--", "^"), "VRBO": Look("#B5123E", ":", "^"),
    "AID-FP": Look("#3D6B00", "--", "D"), "AID-CG": Look("#00B3C4", "-", "D"), "reverse": Look("#3F51C5", ":", "D"),
    "BSA": Look("#777777", ":", "v"), "SUSTAIN": Look("#B48AF0", "--", "v"),
    "PZOBO-S": Look("#8C564B", "-", "P"), "F2SA": Look(GREEN, "-", "X"), "F3SA": Look("#E0218A", "--", "X"),
    "alternating": Look(BLACK, "-", "d"),
}  # fmt: skip


def look(label: str, method: str | None = None) -> Look:
    """The look of a method, or of a variant of it: `look("FdeHBO, tuned")`."""
    found = METHODS.get(method or label.split(",")[0], Look(BLACK, "-", "."))
    return found if label in METHODS else found._replace(linestyle="--" if found.linestyle == "-" else "-.")


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


@contextmanager
def house_style():
    """`with house_style(): ...` for plots that are made in a notebook."""
    with mpl.rc_context(STYLE):
        yield


def panels(rows: int = 1, width: float = 5.4, height: float = 3.4, **options: Any) -> tuple[Figure, Any]:
    """A figure with stacked axes that only shows when it is returned."""
    figure, axes = plt.subplots(rows, 1, figsize=(width, height), **options)
    plt.close(figure)  # or the notebook would show it a second time
    return figure, axes
