"""Pictures of data hyper-cleaning: the images that the weights reject, and all the weights."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor
from torch.nn.functional import pad

from bilevel_book.style import BLACK, BLUE, RED, panels

COLUMNS, SIDE, PADDING = 6, 28, 20  # of the gallery, in pixels of an image: the padding has room for two lines of words


def rejected(images: Tensor, given: Tensor, true: Tensor, weights: Tensor, rows: int = 3) -> Figure:
    """The images of lowest weight with their labels and weights; below, the weights of all images.

    `images` (n, 28, 28) from 0 to 255, `weights` in [0, 1]. A frame is red where the given label is wrong.
    """
    least = weights.sort(stable=True).indices[: rows * COLUMNS]  # stable: equal weights in the order of the data
    with panels(2, height=0.9 * rows + 3.0, height_ratios=[0.9 * rows + 0.4, 2.0]) as (figure, (top, bottom)):
        tiles = pad(1 - images[least] / 255, (PADDING, 0, PADDING, 0), value=1.0).unflatten(0, (rows, COLUMNS))
        grid = pad(tiles.transpose(1, 2).flatten(0, 1).flatten(1), (0, PADDING, 0, PADDING), value=1.0)
        top.imshow(grid.numpy(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        top.set_xlim(PADDING - 8, grid.shape[1] - PADDING + 8)
        top.set_ylim(grid.shape[0], PADDING - 3)
        top.set_axis_off()
        for k, i in enumerate(least.tolist()):
            _caption(top, *divmod(k, COLUMNS), given[i].item(), true[i].item(), weights[i].item())
        _histogram(bottom, weights, given != true)
        return figure


def _caption(axes: Axes, row: int, column: int, given: int, true: int, weight: float) -> None:
    left, upper = (PADDING + place * (SIDE + PADDING) for place in (column, row))
    colour = BLACK if given == true else RED
    axes.add_patch(Rectangle((left - 1, upper - 1), SIDE + 1, SIDE + 1, fill=False, edgecolor=colour, linewidth=1.5))
    words = f"label {given}, " + ("right" if given == true else f"is {true}") + f"\nweight {weight:.2f}"
    axes.text(left + SIDE / 2, upper + SIDE + 1.5, words, ha="center", va="top", fontsize=8, color=colour)


def _histogram(axes: Axes, weights: Tensor, wrong: Tensor) -> None:
    bins = np.linspace(0, 1, 26)
    for part, colour, name in ((~wrong, BLUE, "label right"), (wrong, RED, "label wrong")):
        share = np.full(int(part.sum()), 1 / int(part.sum()))
        axes.hist(weights[part].numpy(), bins, weights=share, histtype="step", color=colour, linewidth=2, label=name)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel=r"weight $\sigma(x_i)$", ylabel="share of images")
    axes.legend(loc="upper left")
