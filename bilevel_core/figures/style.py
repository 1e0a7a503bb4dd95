"""The one style of all plots."""

from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#222222",
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
