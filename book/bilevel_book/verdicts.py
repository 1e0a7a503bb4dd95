"""Claims of the paper and their verdicts, computed from stored runs; of a claim that no run can decide it says why."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd

from bilevel_book.curves import at_marks, band, largest_rise
from bilevel_core.experiments.report import last_quarter_median, spread


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


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a claim made of several."""
    order = [Verdict.HOLDS, Verdict.LATE, Verdict.FAILS]
    return max(verdicts, key=order.index)


def of(experiment: str, table: pd.DataFrame) -> list[Claim]:
    """The claims of the paper about an experiment, judged from its stored runs."""
    return {"hyper-representation": hyper_representation, "hyper-cleaning": hyper_cleaning}[experiment](table)


def hyper_representation(table: pd.DataFrame) -> list[Claim]:
    """Figure 1 and the paragraph about it."""
    main, rivals = table[table.group == "main"], ("PZOBO-S", "F2SA", "F3SA")
    budget = main.groupby(["label", "seed"]).cpu_seconds.max().min()
    marks = np.linspace(1 / 30, 1, 30) * budget
    shown = [int(part * budget) for part in (1 / 15, 0.2, 0.5, 1)]
    means = band(at_marks(main, "cpu_seconds", "upper_loss", shown))["mean"]
    where, found = "Section 4.1, Figure 1", []
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


def hyper_cleaning(table: pd.DataFrame) -> list[Claim]:
    """Figure 2 and the paragraph about it."""
    main, leaders = table[table.group == "main"], ("FMBO", "stocBiO", "AID-FP")
    others = ("reverse", "SUSTAIN", "MRBO", "VRBO", "BSA")
    budget = main[main.stop == "seconds"].groupby(["label", "seed"]).cpu_seconds.max().min()
    marks = np.linspace(1 / 30, 1, 30) * budget
    last = main.groupby(["label", "seed"])[["test_loss", "train_loss"]].last()
    a, b = "Section 4.2, Figure 2 (a)", "Section 4.2, Figure 2 (b)"

    def ends(labels: Sequence[str], column: str) -> str:
        return "; ".join(f"{label} {spread(last[column][label])}" for label in labels)

    found = [
        Claim(
            a,
            f"{leader} converges much faster than {', '.join(others[:-1])} and {others[-1]}",
            f"mean test loss against each, at 30 marks over the budget; its value at {budget:.0f} s",
            ends([leader, *others], "test_loss"),
            worst([ahead(main, leader, other, "test_loss", marks) for other in others]),
        )
        for leader in leaders
    ]
    rises = largest_rise(main[main.cpu_seconds > 0.1 * budget], "test_loss").groupby("label").mean()
    found += [
        Claim(
            a,
            f"{leader} converges more stably than {', '.join(others[:-1])} and {others[-1]}",
            "largest climb of the test loss above its lowest value so far, after the first tenth of the budget",
            "; ".join(f"{label} {rises[label]:.3f}" for label in (leader, *others)),
            Verdict.HOLDS if all(rises[leader] < rises[other] for other in others) else Verdict.FAILS,
        )
        for leader in leaders
    ]
    settled = last_quarter_median(main, "cpu_seconds", "train_loss")
    found += [
        Claim(
            a,
            f"FMBO achieves a lower training loss than {rival}",
            "median train loss over the last quarter of the budget",
            f"{spread(settled['FMBO'])} and {spread(settled[rival])}",
            Verdict.HOLDS if settled["FMBO"].mean() < settled[rival].mean() else Verdict.FAILS,
        )
        for rival in ("stocBiO", "AID-FP")
    ]
    found += [
        Claim(
            b,
            f"FMBO converges faster than {rival}, with a lower training loss",
            "mean train loss of the two, at 30 marks over the budget, with the steps of the paper: 0.3 and 0.1",
            _course(main, ("FMBO", rival), "train_loss", marks),
            ahead(main, "FMBO", rival, "train_loss", marks),
        )
        for rival in ("FSLA", "SOBA")
    ]
    equal = table[table.group == "equal_steps"]
    equal = pd.concat([equal, main[main.seed.isin(equal.seed)]])
    found += [
        Claim(
            f"{b}, at equal steps",
            f"FMBO converges faster than {rival}, with a lower training loss",
            f"the same with steps of {step} for both",
            _course(equal, (ours, theirs), "train_loss", marks),
            ahead(equal, ours, theirs, "train_loss", marks),
        )
        for rival in ("FSLA", "SOBA")
        for step, ours, theirs in (("0.1", "FMBO, steps 0.1", rival), ("0.3", "FMBO", f"{rival}, steps 0.3"))
    ]
    loss = last_quarter_median(table[table.group == "momentum"], "step", "train_loss")
    on, off = loss["main comparison"], loss["eta 1, momentum off"]
    means = band(at_marks(main, "cpu_seconds", "train_loss", marks))["mean"]
    apart = (means.loc["AmIGO"] / means.loc["stocBiO"] - 1).abs()
    found += [
        Claim(
            a,
            "this demonstrates the effectiveness of momentum-based variance reduction",
            "median train loss of FMBO over the last quarter of 3000 steps of 0.3, with the decaying eta (which is 1 "
            "for the first 999 steps) and with eta = 1 throughout, which is no momentum",
            f"{spread(on)} with, {spread(off)} without",
            Verdict.HOLDS if on.max() < off.min() else Verdict.FAILS,
        ),
        Claim(
            "Section 4.2",
            "AmIGO performs similarly to stocBiO",
            "mean train loss of one over that of the other, at 30 marks over the budget: within a tenth?",
            f"largest difference {100 * apart.max():.1f} %, at the end {100 * apart.iloc[-1]:.1f} %",
            Verdict.HOLDS if apart.max() < 0.1 else Verdict.FAILS,
        ),
    ]
    return found


def _course(table: pd.DataFrame, labels: tuple[str, str], column: str, marks: np.ndarray) -> str:
    """The means of two methods at four of the marks."""
    shown = [marks[1], marks[5], marks[14], marks[-1]]
    means = band(at_marks(table[table.label.isin(labels)], "cpu_seconds", column, shown))["mean"]
    return "; ".join(f"{means.loc[labels[0], s]:.3f} and {means.loc[labels[1], s]:.3f} at {s:.0f} s" for s in shown)
