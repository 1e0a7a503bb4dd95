"""What a changed setting does, beside the unchanged one at the same second or step; and settings in words.

The yardstick is the range of the seeds of the unchanged setting.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bilevel_book.curves import at_marks
from bilevel_book.ledger.evidence import Evidence
from bilevel_book.released.stored import runs_of
from bilevel_core.experiments import paper_settings, sweep
from bilevel_core.schedules import Power, Steps, at

REPRESENTATION, CLEANING = "hyper-representation", "hyper-cleaning"
Effect = Callable[[Evidence], tuple[str, ...]]  # one line for each comparison


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


def changed(
    experiment: str, group: str, labels: dict[str, str], base: tuple[str, str], column: str, axis: str
) -> Effect:
    """`labels` of a group, each with the name it is shown by, against one (group, label).

    They are compared at the last mark on `axis` that every run reached, those that diverged aside.
    """

    def effect(evidence: Evidence) -> tuple[str, ...]:
        table = evidence.representation if experiment == REPRESENTATION else evidence.cleaning
        unchanged = table[(table.group == base[0]) & (table.label == base[1])]
        others = {label: table[(table.group == group) & (table.label == label)] for label in labels}
        runs = pd.concat((unchanged, *others.values()))
        mark = runs[runs.stop != "diverged"].groupby(["group", "label", "seed"])[axis].max().min()
        unit = "seconds" if axis == "cpu_seconds" else "steps"
        return tuple(
            f"{labels[label]}: {column.replace('_', ' ')} {compare(other, unchanged, column, axis, mark)}, after "
            f"{mark:.0f} {unit}"
            for label, other in others.items()
        )

    return effect


def of_fdehbo(*labels: str) -> Effect:
    """FdeHBO in the first experiment, 200 steps."""
    base = ("ablations", "as in the paper")
    return changed(REPRESENTATION, "ablations", {label: label for label in labels}, base, "upper_loss", "step")


def of_fmbo(*labels: str) -> Effect:
    """FMBO in the second, 3000 steps."""
    base = ("momentum", "main comparison")
    return changed(CLEANING, "momentum", {label: label for label in labels}, base, "train_loss", "step")


def of_method(method: str, *labels: str, group: str = "choices") -> Effect:
    """A method in the second, against itself in the main comparison at the same second."""
    return changed(CLEANING, group, {label: label for label in labels}, ("main", method), "train_loss", "cpu_seconds")


def of_released(group: str, column: str, *labels: str) -> Effect:
    """stocBiO with one defect of released code switched on (Chapter 11), at the last step it shares with the correct.

    `group` is "published", the steps of the paper, or "cleaning", with an outer step that moves the weights.
    """

    def numbers(label: str) -> pd.Series:
        return runs_of(group, label).set_index("step")[column]

    def effect(evidence: Evidence) -> tuple[str, ...]:
        lines = []
        for label in labels:
            now, then = numbers(label), numbers("correct")
            step = min(now.index.max(), then.index.max())
            lines.append(
                f"{label}: {column.replace('_', ' ')} of stocBiO {now[step]:.3f} instead of {then[step]:.3f}, after "
                f"{step} outer steps (one seed)"
            )
        return tuple(lines)

    return effect


def together(*effects: Effect) -> Effect:
    """The lines of one after those of another."""
    return lambda evidence: tuple(line for effect in effects for line in effect(evidence))


# Values


def shown(value: Any) -> str:
    """A setting as a formula."""
    if isinstance(value, Power):
        power = f"{value.c:g} (t + {value.w:g})^(-{value.p:.3g})"
        return f"min({value.cap:g}, {power})" if value.cap != float("inf") else power
    if isinstance(value, Steps):
        return f"{', '.join(f'{v:g}' for v in value.values)}, cut at steps {', '.join(map(str, value.at))}"
    return f"{value:g}" if isinstance(value, float | int) and not isinstance(value, bool) else str(value)


def setting(experiment: str, method: str, *names: str) -> str:
    """Options of a method in the main comparison."""
    options = paper_settings(experiment, method)
    return ", ".join(f"{name} = {shown(options[name])}" for name in names)


def batch(method: str) -> str:
    """Its batch in hyper-cleaning."""
    run = sweep(CLEANING, "full", ["main"], [method])[0]
    return f"batch {run.problem_options['batch_size']}"


def without_momentum(method: str, evidence: Evidence) -> str:
    """How much of a method's main runs has eta = 1, which is no momentum."""
    eta = paper_settings(CLEANING, method)["eta"]
    main = evidence.cleaning[(evidence.cleaning.group == "main") & (evidence.cleaning.label == method)]
    steps = main.groupby("seed").step.max().mean()
    off = next(t for t in range(10**6) if at(eta, t) < 1)
    return f"{method}: eta is 1, no momentum, in the first {min(off, steps):.0f} of {steps:.0f} steps"
