"""What a changed setting does, beside the unchanged one on the same seeds, up to the budget that both have.

A run is read as the protocol reads "lower": the median over the last quarter of 24 marks; where some run of the two
has no row of its own at a mark, its last row before the end. The interval is by Student's t, of the mean log ratio.
"""

import numpy as np
import pandas as pd

from bilevel_book.experiments import sweep
from bilevel_book.experiments.report import mean_and_range
from bilevel_book.labels import CLEANING, REPRESENTATION, select
from bilevel_book.ledger.values import formula
from bilevel_book.released.stored import curve
from bilevel_book.verdicts.comparison import Pairs
from bilevel_book.verdicts.measures import curves, lower
from bilevel_book.verdicts.paired import against

Lines = tuple[str, ...]
METRICS = {REPRESENTATION: "upper_loss", CLEANING: "train_loss"}
UNITS = {"step": "steps", "seconds": "s"}


def compared(changed: pd.DataFrame, unchanged: pd.DataFrame, column: str, axis: str) -> str:
    """Two tables of one label each: their means, and the interval of their ratio."""
    tables = {"changed": changed, "unchanged": unchanged}
    runs = pd.concat([table.assign(label=name) for name, table in tables.items()])
    found = curves(runs, axis, column, tables)
    pairs = Pairs(found["changed"], found["unchanged"])
    read = pairs.each(lambda curve: curve.read(lower, pairs.marks))
    if np.isnan(read).any():
        read = pairs.each(lambda curve: curve.read(lower, pairs.marks[-1:]))
    return in_words(pd.DataFrame(read.T, index=list(tables)), f", {pairs.marks[-1]:.0f} {UNITS[axis]}")


def in_words(read: pd.DataFrame, budget: str = "") -> str:
    """A row with the changed setting, a row with the unchanged one, a column for each seed; inf: that run diverged."""
    n, numbers = read.shape[1], " instead of ".join(map(_mean, read.to_numpy()))
    seeds = "one seed" if n == 1 else f"{n} seeds"
    if n > 1 and np.isfinite(read.to_numpy()).all():
        row = against(read, read.index[1]).iloc[0]
        numbers += f": {row.low:.2f} to {row.high:.2f} times"
    return f"{numbers} ({seeds}{budget})"


def _mean(row: np.ndarray) -> str:
    gone = np.isinf(row).sum()
    return f"diverged on {gone} of {len(row)}" if gone else f"{row.mean():.3f}"


def changes(
    table: pd.DataFrame, experiment: str, base: tuple[str, str], others: dict[str, tuple[str, str]], axis: str
) -> Lines:
    """A line for each of the others, (group, label) by the name it is shown by, against the base."""
    column, unchanged = METRICS[experiment], select(table, experiment, *base)
    return tuple(
        f"{name}: {column.replace('_', ' ')} {compared(select(table, experiment, *other), unchanged, column, axis)}"
        for name, other in others.items()
    )


# Hyper-representation


def of_fdehbo(
    representation: pd.DataFrame, labels: list[str], group: str = "ablations", base: str = "as in the paper"
) -> Lines:
    """FdeHBO, at equal steps."""
    return changes(representation, REPRESENTATION, (group, base), {name: (group, name) for name in labels}, "step")


def of_rival(representation: pd.DataFrame, method: str, labels: list[str]) -> Lines:
    """Other readings of a rival, against the one in the main comparison, at the same second."""
    others = {name: ("rivals", name) for name in labels}
    return changes(representation, REPRESENTATION, ("main", method), others, "seconds")


def of_held_out(representation: pd.DataFrame) -> Lines:
    """FdeHBO when a part of the training file is held out."""
    base, split = ("main", "FdeHBO"), ("held_out", "FdeHBO")
    accuracy = select(representation, REPRESENTATION, *split).groupby("seed").test_accuracy.last()
    told = changes(representation, REPRESENTATION, base, {"split training file": split}, "seconds")
    return (*told, f"accuracy on images never used {mean_and_range(accuracy)}")


def seconds_a_gradient(representation: pd.DataFrame, methods: list[str]) -> Lines:
    last = select(representation, REPRESENTATION, "main", *methods).groupby("label").last()  # the same on every seed
    each = 1000 * last.seconds / last.gradients
    return tuple(f"{method}: {each[method]:.1f} seconds for a thousand gradients" for method in methods)


# Hyper-cleaning


def of_fmbo(cleaning: pd.DataFrame, labels: list[str], shown: str = "{}") -> Lines:
    """FMBO, at equal steps; `shown` puts a label into words."""
    others = {shown.format(name): ("momentum", name) for name in labels}
    return changes(cleaning, CLEANING, ("momentum", "main comparison"), others, "step")


def of_method(cleaning: pd.DataFrame, method: str, labels: list[str], group: str = "choices") -> Lines:
    """A method against itself in the main comparison, at the same second."""
    return changes(cleaning, CLEANING, ("main", method), {name: (group, name) for name in labels}, "seconds")


def decay_when_tuned(methods: list[str]) -> Lines:
    """The eta that the protocol's tuning chose."""
    runs = sweep(CLEANING, groups=["tuned"], labels=methods)
    chosen = {run.label: run.make_solver().eta for run in runs}  # the same on every seed
    return tuple(f"{method}, tuned alike: eta = {formula(eta)}" for method, eta in chosen.items())


def ends(cleaning: pd.DataFrame, group: str, name: str, column: str) -> pd.Series:
    """The last value of each run of a label."""
    return select(cleaning, CLEANING, group, name).groupby("seed")[column].last()


def of_the_draws(cleaning: pd.DataFrame) -> Lines:
    last = ends(cleaning, "main", "FMBO", "train_loss")
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
    steps = select(cleaning, CLEANING, "main", *methods).groupby(["label", "seed"]).step.max().groupby("label").mean()
    return tuple(f"{method}: {steps[method]:.0f} steps in that time" for method in methods)


def of_released(group: str, column: str, labels: list[str]) -> Lines:
    """stocBiO with one defect of released code switched on (Chapter 11).

    `group` is "published", the steps of the paper, or "cleaning", with an outer step that moves the weights.
    """
    ends = {name: curve(group, name, column).iloc[-1] for name in ("correct", *labels)}
    reads = {name: pd.DataFrame([ends[name], ends["correct"]], index=[name, "correct"]) for name in labels}
    return tuple(f"stocBiO, {name}: {column.replace('_', ' ')} {in_words(read)}" for name, read in reads.items())
