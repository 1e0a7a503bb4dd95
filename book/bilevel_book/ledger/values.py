"""Settings that were taken, as choices.toml asks for them: `{setting: hyper-cleaning, FMBO, alpha, beta}`."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from bilevel_book.experiments import load, paper_settings, sweep
from bilevel_book.experiments.files import Steps
from bilevel_book.experiments.report import CLEANING, select
from bilevel_book.ledger.counts import cost
from bilevel_book.methods import SOLVERS
from bilevel_book.mnist import hyper_cleaning
from bilevel_book.theorem_schedules import value_at
from bilevel_core.problems import Quadratic
from bilevel_core.schedules import Power
from bilevel_core.solvers import FMBO

IMAGES = {"lower": hyper_cleaning.LOWER, "upper": hyper_cleaning.UPPER}


def formula(setting: Any) -> str:
    """A number or a schedule as a formula."""
    if isinstance(setting, Power):
        power = f"{setting.c:g} (t + {setting.w:g})^(-{setting.p:.3g})"
        return f"min({setting.cap:g}, {power})" if setting.cap != float("inf") else power
    if isinstance(setting, Steps):
        return f"{', '.join(f'{v:g}' for v in setting.values)}, cut at steps {', '.join(map(str, setting.at))}"
    return f"{setting:g}" if isinstance(setting, float | int) and not isinstance(setting, bool) else str(setting)


def setting(experiment: str, method: str, *names: str) -> str:
    """Options of a method in the main comparison."""
    given = paper_settings(experiment, method)
    return ", ".join(f"{name} = {formula(given[name])}" for name in names)


def without_momentum(method: str, cleaning: pd.DataFrame) -> str:
    """How much of a method's runs on hyper-cleaning, as stated, has eta = 1, which is no momentum."""
    steps = select(cleaning, CLEANING, "stated", method).groupby("seed").step.max().mean()
    eta = paper_settings(CLEANING, method)["eta"]
    off = next(t for t in range(10**6) if value_at(eta, t) < 1)
    return f"{method}: eta is 1, no momentum, in the first {min(off, steps):.0f} of {steps:.0f} steps"


VALUES: dict[str, Callable[..., str]] = {
    "setting": setting,
    "without_momentum": without_momentum,
    "number": lambda experiment, method, name: formula(paper_settings(experiment, method)[name]),
    "default": lambda method, name: formula(getattr(SOLVERS[method](), name)),
    "option": lambda experiment, name: formula(load(experiment).options[name]),  # of the problem
    "seconds": lambda experiment: formula(load(experiment).sizes["next"]["stated"].seconds),
    "batch": lambda method: (
        f"batch {sweep(CLEANING, groups=['main'], labels=[method])[0].problem_options['batch_size']}"
    ),
    "images": lambda level: str(IMAGES[level].stop - IMAGES[level].start),  # how many, and which
    "image_numbers": lambda level: f"{IMAGES[level].start} to {IMAGES[level].stop - 1}",
    "norm_of_first_v": lambda: f"{FMBO().init(Quadratic()).v.norm().item():g}",
    "gradients": lambda method, step: str(cost(method, int(step))[-1].gradients),  # in its first step, its second, ...
    "products": lambda method, length: f"{cost(method, inner=3, **{length: 3})[-1].Hv} H v",  # for three iterations
}
