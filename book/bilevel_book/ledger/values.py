"""Settings that were taken, read from the experiments' files and from the methods.

Their names stand in the templates of choices.toml, `{setting: hyper-cleaning, FMBO, alpha, beta}`.
"""

import pandas as pd

from bilevel_book.experiments import load, paper_settings, sweep
from bilevel_book.labels import CLEANING, select
from bilevel_book.ledger.counts import cost
from bilevel_book.ledger.registry import Registry
from bilevel_book.ledger.words import shown
from bilevel_book.methods import SOLVERS
from bilevel_book.mnist import hyper_cleaning
from bilevel_core.problems import Quadratic
from bilevel_core.schedules import at
from bilevel_core.solvers import FMBO

value = Registry("value")  # returns text
IMAGES = {"lower": hyper_cleaning.LOWER, "upper": hyper_cleaning.UPPER}


@value
def setting(experiment: str, method: str, *names: str) -> str:
    """Options of a method in the main comparison."""
    options = paper_settings(experiment, method)
    return ", ".join(f"{name} = {shown(options[name])}" for name in names)


@value
def number(experiment: str, method: str, name: str) -> str:
    """The same without the name of the option."""
    return shown(paper_settings(experiment, method)[name])


@value
def default(method: str, name: str) -> str:
    """An option of a method, unless said otherwise."""
    return shown(getattr(SOLVERS[method](), name))


@value
def option(experiment: str, name: str) -> str:
    """An option of the problem."""
    return shown(load(experiment).options[name])


@value
def seconds(experiment: str) -> str:
    """The budget of the main comparison, in calibrated seconds."""
    return shown(load(experiment).sizes["full"]["main"].time)


@value
def batch(method: str) -> str:
    """Its batch in hyper-cleaning."""
    run = next(run for run in sweep(CLEANING, groups=["main"], labels=[method]))
    return f"batch {run.problem_options['batch_size']}"


@value
def images(level: str) -> str:
    """How many training images a level of hyper-cleaning has."""
    return str(IMAGES[level].stop - IMAGES[level].start)


@value
def image_numbers(level: str) -> str:
    """Which they are."""
    return f"{IMAGES[level].start} to {IMAGES[level].stop - 1}"


@value
def norm_of_first_v() -> str:
    return f"{FMBO().init(Quadratic()).v.norm().item():g}"


@value
def gradients(method: str, step: str) -> str:
    """How many a method takes in its first step, its second, ..."""
    return str(cost(method, int(step))[-1].gradients)


@value
def products(method: str, length: str) -> str:
    """H v in a step in which the option `length` gives the linear system three iterations."""
    return f"{cost(method, inner=3, **{length: 3})[-1].Hv} H v"


@value
def without_momentum(method: str, cleaning: pd.DataFrame) -> str:
    """How much of a method's main runs has eta = 1, which is no momentum."""
    steps = select(cleaning, CLEANING, "main", method).groupby("seed").step.max().mean()
    off = steps_without_momentum(method)
    return f"{method}: eta is 1, no momentum, in the first {min(off, steps):.0f} of {steps:.0f} steps"


def steps_without_momentum(method: str) -> int:
    """The t at which the eta of a method in hyper-cleaning first falls below 1."""
    eta = paper_settings(CLEANING, method)["eta"]
    return next(t for t in range(10**6) if at(eta, t) < 1)
