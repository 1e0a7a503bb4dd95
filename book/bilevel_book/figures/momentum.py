"""A plain sample, the exponential average and recursive momentum on a moving point: the slider of Chapter 6."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from bilevel_book.style import BLACK, GREY, METHODS, ORANGE, panels

Curves = Mapping[str, Sequence[float]]
LOOKS = {"plain": (GREY, "-"), "average": (ORANGE, "--"), "recursive": (METHODS["FMBO"].color, "-")}


def following(truth: Sequence[float], one_run: Curves, errors: Curves) -> Figure:
    """Above, one run of each estimator after a moving gradient; below, the root mean squared error over all runs."""
    with panels(2, height=5.6, height_ratios=[1, 1], sharex=True) as (figure, (above, below)):
        for name, (colour, style) in LOOKS.items():
            width = 0.8 if name == "plain" else 1.8
            above.plot(one_run[name], color=colour, linestyle=style, linewidth=width)
            below.semilogy(errors[name], color=colour, linestyle=style, label=name)
        above.plot(truth, color=BLACK, linewidth=1.3)
        above.set(ylim=(-2.9, 2.9), ylabel="first coordinate", title="One run; the thin smooth line has no noise")
        below.set(xlim=(0, len(truth) - 1), ylim=(0.04, 3), xlabel="t", ylabel="r.m.s. error")
        below.set_title("The error over all runs")
        below.legend(loc="lower left", ncols=3)
        return figure
