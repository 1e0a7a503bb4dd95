"""Settings that were taken, read from the experiments' files and from the methods.

Their names stand in the templates of choices.toml, `{setting: hyper-cleaning, FMBO, alpha, beta}`.
"""

from typing import Any

import pandas as pd

from bilevel_book.experiments import load, paper_settings, sweep
from bilevel_book.labels import CLEANING, select
from bilevel_book.ledger.counts import cost
from bilevel_book.methods import SOLVERS
from bilevel_book.mnist import hyper_cleaning
from bilevel_core.problems import Quadratic
from bilevel_core.schedules import Power, Steps, value_at
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
    return ", ".join(f"{name} = {number(experiment, method, name)}" for name in names)


def number(experiment: str, method: str, name: str) -> str:
    """The same without the name of the option."""
    return formula(paper_settings(experiment, method)[name])


def default(method: str, name: str) -> str:
    """An option of a method, unless said otherwise."""
    return formula(getattr(SOLVERS[method](), name))


def option(experiment: str, name: str) -> str:
    """An option of the problem."""
    return formula(load(experiment).options[name])


def seconds(experiment: str) -> str:
    """The budget of the main comparison, in calibrated seconds."""
    return formula(load(experiment).sizes["full"]["main"].time)


def batch(method: str) -> str:
    """Its batch in hyper-cleaning."""
    return f"batch {sweep(CLEANING, groups=['main'], labels=[method])[0].problem_options['batch_size']}"


def images(level: str) -> str:
    """How many training images a level of hyper-cleaning has."""
    return str(IMAGES[level].stop - IMAGES[level].start)


def image_numbers(level: str) -> str:
    """Which they are."""
    return f"{IMAGES[level].start} to {IMAGES[level].stop - 1}"


def norm_of_first_v() -> str:
    return f"{FMBO().init(Quadratic()).v.norm().item():g}"


def gradients(method: str, step: str) -> str:
    """How many a method takes in its first step, its second, ..."""
    return str(cost(method, int(step))[-1].gradients)


def products(method: str, length: str) -> str:
    """H v in a step in which the option `length` gives the linear system three iterations."""
    return f"{cost(method, inner=3, **{length: 3})[-1].Hv} H v"


def without_momentum(method: str, cleaning: pd.DataFrame) -> str:
    """How much of a method's main runs has eta = 1, which is no momentum."""
    steps = select(cleaning, CLEANING, "main", method).groupby("seed").step.max().mean()
    off = steps_without_momentum(method)
    return f"{method}: eta is 1, no momentum, in the first {min(off, steps):.0f} of {steps:.0f} steps"


def steps_without_momentum(method: str) -> int:
    """The t at which the eta of a method in hyper-cleaning first falls below 1."""
    eta = paper_settings(CLEANING, method)["eta"]
    return next(t for t in range(10**6) if value_at(eta, t) < 1)
