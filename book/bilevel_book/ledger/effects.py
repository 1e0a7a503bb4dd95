"""What a changed setting does, beside the unchanged one at the same second or step.

The yardstick is the range of the seeds of the unchanged setting.
"""

from dataclasses import dataclass

import pandas as pd

from bilevel_book.curves import at_marks, shared_end
from bilevel_book.labels import CLEANING, REPRESENTATION, label, select
from bilevel_book.ledger.registry import Registry
from bilevel_book.released.stored import runs_of
from bilevel_core.experiments.report import mean_and_range, tuning_scores

Lines = tuple[str, ...]
effect = Registry("effect")  # returns lines


@dataclass(frozen=True)
class Compared:
    """Means of the changed and the unchanged setting over the seeds they share, and the range of the latter's seeds."""

    changed: float
    unchanged: float
    low: float
    high: float
    seeds: int

    @property
    def beyond(self) -> bool:
        """Whether the changed mean lies outside the range of the seeds; a diverged run always does."""
        return not self.low <= self.changed <= self.high

    def __str__(self) -> str:
        if pd.isna(self.changed):
            return f"diverged, instead of {self.unchanged:.3f}"
        numbers = f"{self.changed:.3f} instead of {self.unchanged:.3f}"
        if self.seeds == 1:
            return f"{numbers} (one seed)"
        where = "outside" if self.beyond else "within"
        return f"{numbers}, {where} the range of {self.seeds} seeds, {self.low:.3f} to {self.high:.3f}"


def compare(changed: pd.DataFrame, unchanged: pd.DataFrame, column: str, axis: str, mark: float) -> Compared:
    """Two tables of one label each, at a mark on `axis`. A run that diverged before it leaves no mean."""
    values, base = (at_marks(t, axis, column, [mark])[mark].droplevel("label") for t in (changed, unchanged))
    shared = values.index.intersection(base.index)
    means = (part[shared].mean(skipna=False) for part in (values, base))
    return Compared(*means, base.min(), base.max(), len(base))


def against(unchanged: pd.DataFrame, others: dict[str, pd.DataFrame], column: str, axis: str) -> Lines:
    """Each of the others, by the name it is shown by, at the last mark that every run reached."""
    mark = shared_end(pd.concat((unchanged, *others.values())), axis)
    unit = "seconds" if axis == "cpu_seconds" else "steps"
    return tuple(
        f"{name}: {column.replace('_', ' ')} {compare(other, unchanged, column, axis, mark)}, after {mark:.0f} {unit}"
        for name, other in others.items()
    )


# Hyper-representation


@effect
def of_fdehbo(representation: pd.DataFrame, labels: list[str]) -> Lines:
    """FdeHBO, 200 steps."""
    base, *others = (select(representation, REPRESENTATION, "ablations", name) for name in ("as in the paper", *labels))
    return against(base, dict(zip(labels, others, strict=True)), "upper_loss", "step")


@effect
def of_pzobo(representation: pd.DataFrame, labels: list[str]) -> Lines:
    """Other readings of PZOBO-S."""
    first = "released code, PyTorch 2"
    base, *others = (select(representation, REPRESENTATION, "pzobo", name) for name in (first, *labels))
    return against(base, dict(zip(labels, others, strict=True)), "upper_loss", "step")


@effect
def of_held_out(representation: pd.DataFrame) -> Lines:
    """FdeHBO when a part of the training file is held out."""
    base, split = (select(representation, REPRESENTATION, group, "FdeHBO") for group in ("main", "held_out"))
    lines = against(base, {"split training file": split}, "upper_loss", "cpu_seconds")
    return (*lines, f"accuracy on images never used {split.test_accuracy.iloc[-1]:.3f}")


@effect
def of_grid(representation: pd.DataFrame, method: str) -> Lines:
    """The best and the worst setting of a method's grid."""
    scores = tuning_scores(select(representation, REPRESENTATION, "tuning"), "upper_loss")
    rows = scores[scores.solver == method]
    best, worst = rows.score.min(), rows.score.max()
    return (f"{method}, outer loss of {len(rows)} settings, 45 s: best {best:.2f}, worst {worst:.2f}",)


@effect
def seconds_a_gradient(representation: pd.DataFrame, methods: list[str]) -> Lines:
    runs = select(representation, REPRESENTATION, "main", *methods).groupby(["label", "seed"])
    total = runs[["cpu_seconds", "gradients"]].max().groupby("label").mean()
    each = total.cpu_seconds / total.gradients
    return tuple(f"{method}: {1000 * each[method]:.0f} seconds for a thousand gradients" for method in methods)


# Hyper-cleaning


@effect
def of_fmbo(cleaning: pd.DataFrame, labels: list[str], shown: str = "{}") -> Lines:
    """FMBO, 3000 steps; `shown` puts a label into words."""
    base, *others = (select(cleaning, CLEANING, "momentum", name) for name in ("main comparison", *labels))
    names = [shown.format(name) for name in labels]
    return against(base, dict(zip(names, others, strict=True)), "train_loss", "step")


@effect
def of_method(cleaning: pd.DataFrame, method: str, labels: list[str], group: str = "choices") -> Lines:
    """A method against itself in the main comparison, at the same second."""
    base = select(cleaning, CLEANING, "main", method)
    others = {name: select(cleaning, CLEANING, group, name) for name in labels}
    return against(base, others, "train_loss", "cpu_seconds")


@effect
def of_decay_in_tuning(cleaning: pd.DataFrame, method: str) -> Lines:
    """The factor c in eta = min(1, c (t + 1)^-2/3)."""
    scores = tuning_scores(select(cleaning, CLEANING, "tuning"), "train_loss").set_index("label").score
    tried = (f"{scores[label(CLEANING, 'tuning', f'{method}, c {c}')]:.3f} with c = {c}" for c in (1, 10, 100))
    return (f"{method}: training loss in the tuning {', '.join(tried)}",)


def ends(cleaning: pd.DataFrame, group: str, name: str, column: str) -> pd.Series:
    """The last value of each run of a label."""
    return select(cleaning, CLEANING, group, name).groupby("seed")[column].last()


@effect
def of_the_draws(cleaning: pd.DataFrame) -> Lines:
    last = ends(cleaning, "main", "FMBO", "train_loss")
    return (f"training loss of FMBO over {len(last)} draws of labels, batches and start: {mean_and_range(last)}",)


@effect
def how_well_cleaned(cleaning: pd.DataFrame, group: str, label: str, shown: str) -> Lines:
    auc, accuracy = (ends(cleaning, group, label, column) for column in ("auc", "test_accuracy"))
    wrong = f"AUC of telling wrong labels {mean_and_range(auc)}"
    return (f"{shown}: {wrong}, test accuracy {mean_and_range(accuracy)}",)


@effect
def without_cleaning(cleaning: pd.DataFrame, label: str, shown: str) -> Lines:
    """A classifier fitted to weights that do not move."""
    accuracy = ends(cleaning, "bounds", label, "test_accuracy")
    return (f"a classifier fitted with {shown}: test accuracy {mean_and_range(accuracy)}",)


@effect
def steps_in_that_time(cleaning: pd.DataFrame, methods: list[str]) -> Lines:
    steps = select(cleaning, CLEANING, "main", *methods).groupby(["label", "seed"]).step.max().groupby("label").mean()
    return tuple(f"{method}: {steps[method]:.0f} steps in that time" for method in methods)


@effect
def of_released(group: str, column: str, labels: list[str]) -> Lines:
    """stocBiO with one defect of released code switched on (Chapter 11).

    `group` is "published", the steps of the paper, or "cleaning", with an outer step that moves the weights.
    """
    base, *others = (runs_of(group, name) for name in ("correct", *labels))
    names = [f"stocBiO, {name}" for name in labels]
    return against(base, dict(zip(names, others, strict=True)), column, "step")
