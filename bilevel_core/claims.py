"""Claims of the paper and their verdicts, computed from stored runs; of a claim that no run can decide it says why."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd

from bilevel_core.curves import at_marks, band, largest_rise


class Verdict(StrEnum):
    HOLDS = "holds"
    LATE = "holds late"
    FAILS = "does not hold"
    UNTESTABLE = "not testable"


@dataclass(frozen=True)
class Claim:
    """What the paper says and where, what was measured, the numbers, the verdict."""

    where: str
    text: str
    measure: str
    numbers: str
    verdict: Verdict


def ahead(
    table: pd.DataFrame, first: str, second: str, column: str, marks: Sequence[float], axis: str = "cpu_seconds"
) -> Verdict:
    """Is the mean of `first` below that of `second` at all marks, at the last ones only, or not at the last?

    A mean that is missing (a seed diverged) loses against one that is there.
    """
    means = band(at_marks(table[table.label.isin((first, second))], axis, column, marks))["mean"].fillna(np.inf)
    lower = means.loc[first].to_numpy() < means.loc[second].to_numpy()
    if lower.all():
        return Verdict.HOLDS
    return Verdict.LATE if lower[-1] else Verdict.FAILS


def spread(values: pd.Series, digits: int = 3) -> str:
    """mean (min to max), of the seeds."""
    return f"{values.mean():.{digits}f} ({values.min():.{digits}f} to {values.max():.{digits}f})"


def of(experiment: str, table: pd.DataFrame) -> list[Claim]:
    """The claims of the paper about an experiment, judged from its stored runs."""
    return {"hyper-representation": hyper_representation}[experiment](table)


def hyper_representation(table: pd.DataFrame) -> list[Claim]:
    """Figure 1 and the paragraph about it."""
    main, rivals = table[table.group == "main"], ("PZOBO-S", "F2SA", "F3SA")
    budget = main.groupby(["label", "seed"]).cpu_seconds.max().min()
    marks = np.linspace(1 / 30, 1, 30) * budget
    shown = [int(part * budget) for part in (1 / 15, 0.2, 0.5, 1)]
    means = band(at_marks(main, "cpu_seconds", "upper_loss", shown))["mean"]
    where, found = "Section 5.1, Figure 1", []
    for rival in rivals:
        numbers = "; ".join(f"{means.loc['FdeHBO', s]:.2f} and {means.loc[rival, s]:.2f} at {s} s" for s in shown)
        found.append(
            Claim(
                where,
                f"FdeHBO converges much faster than {rival}",
                "mean outer loss of the two, at 30 marks over the budget",
                numbers,
                ahead(main, "FdeHBO", rival, "upper_loss", marks),
            )
        )
    rises = largest_rise(main, "upper_loss").groupby("label").mean()
    found.append(
        Claim(
            where,
            "FdeHBO converges more stably than PZOBO-S, F2SA and F3SA",
            "largest climb of the outer loss above its lowest value so far, mean of the seeds",
            "; ".join(f"{label} {rises[label]:.2f}" for label in ("FdeHBO", *rivals)),
            Verdict.HOLDS if all(rises["FdeHBO"] < rises[rival] for rival in rivals) else Verdict.FAILS,
        )
    )
    last = main.groupby(["label", "seed"]).upper_accuracy.last()
    found.append(
        Claim(
            where,
            "FdeHBO achieves a higher training accuracy",
            f"outer accuracy at {budget:.0f} s",
            "; ".join(f"{label} {spread(last[label])}" for label in ("FdeHBO", *rivals)),
            Verdict.HOLDS if all(last["FdeHBO"].mean() > last[r].mean() for r in rivals) else Verdict.FAILS,
        )
    )
    loss = table[table.group == "ablations"].groupby(["label", "seed"]).upper_loss.last()
    on, off = loss["as in the paper"], loss["eta 1, momentum off"]
    found += [
        Claim(
            where,
            "the experiment validates momentum in reducing the variance",
            "outer loss after 200 steps with eta = 0.9, as in the paper, and with eta = 1, which is no momentum",
            f"{spread(on)} with, {spread(off)} without",
            Verdict.HOLDS if on.max() < off.min() else Verdict.FAILS,
        ),
        Claim(
            where,
            "the experiment is consistent with the theoretical results",
            "the lower level is not strongly convex, so that the theorems say nothing about it",
            "84 + 1 flat directions of the lower level",
            Verdict.UNTESTABLE,
        ),
    ]
    return found
