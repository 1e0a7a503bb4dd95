"""Pictures of gradient estimators with a memory: plain samples, exponential averages, recursive momentum."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from bilevel_book.style import BLACK, GREY, METHODS, ORANGE, RED, name_lines, panels

Curves = Mapping[str, Sequence[float]]
LOOKS = {"plain": (GREY, "-"), "average": (ORANGE, "--"), "recursive": (METHODS["FMBO"].color, "-")}


def same_sample(curve_eta: Sequence[float], curves: Curves, eta: Sequence[float], measured: Curves) -> Figure:
    """Variance at rest against eta: predicted (lines) and measured (dots), for one sample and for two."""
    with panels(height=3.5) as (figure, axes):
        for (name, curve), colour, marker in zip(curves.items(), (LOOKS["recursive"][0], RED), "os", strict=True):
            axes.loglog(curve_eta, curve, color=colour, label=name)
            axes.loglog(eta, measured[name], marker, color=colour, markersize=7)
        axes.axhline(1, color=BLACK, linewidth=1, linestyle=":")
        axes.text(0.021, 1.12, "a plain sample", fontsize=9.5)
        axes.set(xlabel="η", ylabel="variance / σ²", title="The same sample averages, two samples pile up")
        axes.legend(loc="upper right")
        return figure


def following(truth: Sequence[float], one_run: Curves, errors: Curves) -> Figure:
    """Above, one run of each estimator after a moving gradient; below, the root mean squared error over all runs."""
    with panels(2, height=5.6, height_ratios=[1, 1], sharex=True) as (figure, (above, below)):
        for name, (colour, style) in LOOKS.items():
            width = 0.8 if name == "plain" else 1.8
            above.plot(one_run[name], color=colour, linestyle=style, linewidth=width)
            below.semilogy(errors[name], color=colour, linestyle=style, label=name)
        above.plot(truth, color=BLACK, linewidth=1.3)
        above.set(ylim=(-2.9, 2.9), ylabel="first coordinate", title="One run, and the truth as a thin smooth line")
        below.set(xlim=(0, len(truth) - 1), ylim=(0.04, 3), xlabel="t", ylabel="r.m.s. error")
        below.set_title("The error over all runs")
        below.legend(loc="lower left", ncols=3)
        return figure


def best_weights(
    eta: np.ndarray, errors: Mapping[str, np.ndarray], steps: np.ndarray, best: Mapping[str, np.ndarray], shown: float
) -> Figure:
    """Above, mean squared error against eta for one step length; below, the best eta against the step length."""
    with panels(2, height=6.2) as (figure, (above, below)):
        for name, (colour, style) in LOOKS.items():
            above.loglog(eta, errors[name], color=colour, linestyle=style, label=name)
            if name in best:
                lowest = np.argmin(errors[name])
                above.plot(eta[lowest], errors[name][lowest], "o", color=colour, markersize=8)
                below.loglog(steps, best[name], "o", color=colour, linestyle=style, markersize=5, label=name)
        above.set(xlabel="η", ylabel="mean squared error", ylim=(8e-3, 4))
        above.set_title(f"Steps of s = {shown}: each average has its best η")
        above.legend(loc="upper right")
        below.set(xlabel="length s of a step", ylabel="best η", title="Shorter steps, longer memory")
        below.legend(loc="lower right")
        return figure


def error_against_time(curves: Mapping[float, np.ndarray], eta: float) -> Figure:
    """The error of FMBO over time for one eta; the others stay in the background."""
    with panels(height=3.9) as (figure, axes):
        for curve in curves.values():
            axes.loglog(np.arange(1, len(curve)), curve[1:], color=GREY, alpha=0.3, linewidth=1, zorder=1)
        plain = curves[1.0]
        steps, strong = np.arange(1, len(plain)), {"color": METHODS["FMBO"].color, "linewidth": 2.4}
        axes.loglog(steps, plain[1:], label="η = 1, which is SOBA", **METHODS["SOBA"].line)
        axes.loglog(steps, curves[eta][1:], label=f"FMBO, η = {eta}", **strong)
        axes.set(xlabel="steps t", ylabel="mean of ‖∇Φ(x)‖²", xlim=(1, len(plain) - 1), ylim=(0.01, 30))
        axes.set_title(f"After {len(plain) - 1} steps: {curves[eta][-1]:.3f}, SOBA {plain[-1]:.2f}")
        axes.legend(loc="lower left")
        return figure


def race_of_schedules(runs: Mapping[str, tuple[np.ndarray, np.ndarray]], title: str) -> Figure:
    """Running averages of the squared hypergradient against oracle calls, for several schedules."""
    with panels(height=4.2) as (figure, axes):
        for (name, (calls, average)), style in zip(runs.items(), ("-", "--", "-.", ":"), strict=True):
            axes.loglog(calls, average, color=METHODS[name.split(",")[0]].color, linestyle=style, label=name)
        axes.set(xlabel="oracle calls", ylabel="running mean of ‖∇Φ(x)‖²", title=title)
        name_lines(axes)
        return figure
