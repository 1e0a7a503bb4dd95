"""What a changed setting does, beside the unchanged one on the same seeds, up to the budget that both have.

A run is read as the protocol reads "lower": the median over the rows of the last quarter of the budget. The interval is
by Student's t, of the mean log ratio.
"""

import numpy as np
import pandas as pd

from bilevel_book.experiments import Plan, load
from bilevel_book.experiments.files import with_schedules
from bilevel_book.experiments.report import CLEANING, REPRESENTATION, mean_and_range, select
from bilevel_book.ledger.values import formula
from bilevel_book.released.stored import curve
from bilevel_book.verdicts.judging import Curve, against, lower
from bilevel_book.verdicts.paper import SIZE, curves

Lines = tuple[str, ...]
METRICS = {REPRESENTATION: "upper_loss", CLEANING: "train_loss"}
UNITS = {"step": "steps", "seconds": "s"}


def compared(changed: pd.DataFrame, unchanged: pd.DataFrame, column: str, axis: str) -> str:
    """Two tables of one label each: their means, and the interval of their ratio."""
    found = {name: curves(table, column, axis) for name, table in (("changed", changed), ("unchanged", unchanged))}
    seeds = sorted(set.intersection(*(set(own) for own in found.values())))
    shared = [own[seed] for own in found.values() for seed in seeds]
    budget = min(curve.at[-1] for curve in shared if not curve.diverged)

    def end(run: Curve) -> float:
        return np.inf if run.diverged else lower(run, budget)

    read = pd.DataFrame([[end(own[seed]) for seed in seeds] for own in found.values()], index=list(found))
    return in_words(read, f", {budget:.0f} {UNITS[axis]}")


def in_words(read: pd.DataFrame, budget: str = "") -> str:
    """A row with the changed setting, a row with the unchanged one, a column for each seed; inf: that run diverged."""
    n, gone = read.shape[1], np.isinf(read).sum(axis=1)
    rows = zip(gone, read.mean(axis=1), strict=True)
    numbers = " instead of ".join(f"diverged on {k} of {n}" if k else f"{mean:.3f}" for k, mean in rows)
    seeds = "one seed" if n == 1 else f"{n} seeds"
    if n > 1 and not gone.any():
        row = against(read, read.index[1]).iloc[0]
        numbers += f": {row.low:.2f} to {row.high:.2f} times"
    return f"{numbers} ({seeds}{budget})"


def changes(
    table: pd.DataFrame, experiment: str, base: tuple[str, str], group: str, labels: list[str], axis: str, shown: str
) -> Lines:
    """A line for each of the labels of a group, put into words by `shown`, against the base: a group and a label."""
    column, unchanged = METRICS[experiment], select(table, experiment, *base)
    found = {name: compared(select(table, experiment, group, name), unchanged, column, axis) for name in labels}
    return tuple(f"{shown.format(name)}: {column.replace('_', ' ')} {told}" for name, told in found.items())


def of_fdehbo(
    representation: pd.DataFrame, labels: list[str], group: str = "ablations", base: str = "as in the paper"
) -> Lines:
    """FdeHBO on hyper-representation, at equal steps."""
    return changes(representation, REPRESENTATION, (group, base), group, labels, "step", "{}")


def of_rival(representation: pd.DataFrame, method: str, labels: list[str]) -> Lines:
    """Other readings of a rival, against the one in the main comparison, at the same second."""
    return changes(representation, REPRESENTATION, ("main", method), "rivals", labels, "seconds", "{}")


def of_fmbo(cleaning: pd.DataFrame, labels: list[str], shown: str = "{}") -> Lines:
    """FMBO on hyper-cleaning, at equal steps."""
    return changes(cleaning, CLEANING, ("momentum", "main comparison"), "momentum", labels, "step", shown)


def of_method(
    cleaning: pd.DataFrame, method: str, labels: list[str], group: str = "choices", base: str = "main"
) -> Lines:
    """A method on hyper-cleaning against itself at the paper's settings, at the same second."""
    return changes(cleaning, CLEANING, (base, method), group, labels, "seconds", "{}")


def of_held_out(representation: pd.DataFrame) -> Lines:
    """FdeHBO when a part of the training file is held out."""
    base, shown = ("main", "FdeHBO"), "split training file"
    told = changes(representation, REPRESENTATION, base, "held_out", ["FdeHBO"], "seconds", shown)
    accuracy = select(representation, REPRESENTATION, "held_out", "FdeHBO").groupby("seed").test_accuracy.last()
    return (*told, f"accuracy on images never used {mean_and_range(accuracy)}")


def seconds_a_gradient(representation: pd.DataFrame, methods: list[str]) -> Lines:
    last = select(representation, REPRESENTATION, "main", *methods).groupby("label").last()  # the same on every seed
    each = 1000 * last.seconds / last.gradients
    return tuple(f"{method}: {each[method]:.1f} seconds for a thousand gradients" for method in methods)


def decay_when_tuned(methods: list[str]) -> Lines:
    """The eta that the protocol's tuning chose."""
    tuned = Plan(load(CLEANING), SIZE).methods("tuned")
    chosen = {method: with_schedules(tuned[method].options)["eta"] for method in methods}
    return tuple(f"{method}, tuned alike: eta = {formula(eta)}" for method, eta in chosen.items())


def ends(cleaning: pd.DataFrame, group: str, name: str, column: str) -> pd.Series:
    """The last value of each run of a label."""
    return select(cleaning, CLEANING, group, name).groupby("seed")[column].last()


def of_the_draws(cleaning: pd.DataFrame) -> Lines:
    last = ends(cleaning, "stated", "FMBO", "train_loss")
    return (f"training loss of FMBO over {len(last)} draws of labels, batches and start: {mean_and_range(last)}",)


def how_well_cleaned(cleaning: pd.DataFrame, group: str, label: str, shown: str) -> Lines:
    auc, accuracy = (ends(cleaning, group, label, column) for column in ("auc", "test_accuracy"))
    wrong = f"AUC of telling wrong labels {mean_and_range(auc)}"
    return (f"{shown}: {wrong}, test accuracy {mean_and_range(accuracy)}",)


def without_cleaning(cleaning: pd.DataFrame, label: str, shown: str) -> Lines:
    """A classifier fitted to weights that do not move."""
    accuracy = ends(cleaning, "bounds", label, "test_accuracy")
    return (f"a classifier fitted with {shown}: test accuracy {mean_and_range(accuracy)}",)


def steps_in_that_time(cleaning: pd.DataFrame, methods: list[str]) -> Lines:
    steps = select(cleaning, CLEANING, "stated", *methods).groupby(["label", "seed"]).step.max().groupby("label").mean()
    return tuple(f"{method}: {steps[method]:.0f} steps in that time" for method in methods)


def of_released(group: str, column: str, labels: list[str]) -> Lines:
    """stocBiO with one defect of released code, at the paper's steps, "published", or larger ones, "cleaning"."""
    ends = {name: curve(group, name, column).iloc[-1] for name in ("correct", *labels)}
    reads = {name: pd.DataFrame([ends[name], ends["correct"]], index=[name, "correct"]) for name in labels}
    return tuple(f"stocBiO, {name}: {column.replace('_', ' ')} {in_words(read)}" for name, read in reads.items())
