"""Pictures of the chapter on problems of one's own: penalties, learned images, what sizes cost."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from bilevel_book.style import BLACK, BLUE, GREEN, GREY, look, name_lines, panels


def penalties(found: Sequence[float], best: Sequence[float], matter: int) -> Figure:
    """The logarithm of the penalty of every feature, as found and as it is best; the first `matter` features matter."""
    with panels(height=3.2) as (figure, axes):
        places = np.arange(1, len(found) + 1)
        axes.axvspan(0.4, matter + 0.5, color=GREEN, alpha=0.1, linewidth=0)
        axes.axhline(0, color=GREY, linewidth=0.8)
        axes.plot(places, best, "x", color=BLACK, markersize=8, markeredgewidth=1.8, label="L-BFGS on Φ")
        axes.plot(places, found, "o", color=BLUE, label="FdeHBO")
        axes.text(0.6, 0.93, "matter", transform=axes.get_xaxis_transform(), color=GREEN, fontsize=10)
        axes.set(xlabel="feature", ylabel="log penalty", xlim=(0.4, len(found) + 0.6), xticks=[1, 5, 10, 15, 20])
        axes.set_title("Features that matter are freed of their penalty")
        figure.legend(loc="outside lower center", ncols=2)
        return figure


def pictures(rows: Mapping[str, np.ndarray]) -> Figure:
    """A row of small images for each name."""
    with panels(rows=len(rows), height=0.95 * len(rows) + 0.1) as (figure, axes):
        for one, (name, images) in zip(axes, rows.items(), strict=True):
            strip = np.concatenate([np.pad(image, 1, constant_values=np.nan) for image in images], 1)
            low, high = np.nanpercentile(strip, [1, 99])
            one.imshow(strip, cmap="gray_r", vmin=low, vmax=high)
            one.set_axis_off()
            one.set_title(name, fontsize=10.5)
        return figure


def by_size(sizes: Sequence[int], costs: Mapping[str, Sequence[float]]) -> Figure:
    """What each method spends over the number of examples, in gradients on one example; nan where it fails."""
    with panels(height=3.6) as (figure, axes):
        figure.set_layout_engine("none")
        axes.set_position((0.14, 0.15, 0.62, 0.8))
        for name, values in costs.items():
            how = look(name)
            axes.plot(sizes, values, marker=how.marker, label=name, **how.line)
        axes.set(xscale="log", yscale="log", ylim=(8e3, 8e6))
        axes.set(xlabel="examples at each level", ylabel="gradients on one example")
        name_lines(axes)
        return figure
