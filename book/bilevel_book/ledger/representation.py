"""Claims about hyper-representation, Figure 1 of the paper: FdeHBO and its rivals on a LeNet."""

import pandas as pd

from bilevel_book.curves import at_marks, band, largest_rise, shared_end
from bilevel_book.labels import REPRESENTATION, select
from bilevel_book.ledger.registry import CONSTRUCTION, apart, judge
from bilevel_book.verdicts import Claim, Verdict, ahead, decided, thirty_marks
from bilevel_core.experiments.report import mean_and_range
from bilevel_core.problems.hyper_representation import lenet

OURS, RIVALS = "FdeHBO", ("PZOBO-S", "F2SA", "F3SA")


def main_runs(representation: pd.DataFrame) -> pd.DataFrame:
    return select(representation, REPRESENTATION, "main")


@judge
def fdehbo_faster(representation: pd.DataFrame, rival: str) -> Claim:
    pair = select(representation, REPRESENTATION, "main", OURS, rival)
    budget = shared_end(main_runs(representation), "cpu_seconds")
    shown = [int(part * budget) for part in (1 / 15, 0.2, 0.5, 1)]
    means = band(at_marks(pair, "cpu_seconds", "upper_loss", shown))["mean"]
    return Claim(
        f"{OURS} converges much faster than {rival}",
        "mean outer loss of the two, at 30 marks over the budget",
        "; ".join(f"{means.loc[OURS, s]:.2f} and {means.loc[rival, s]:.2f} at {s} s" for s in shown),
        ahead(pair, OURS, rival, "upper_loss", thirty_marks(budget)),
    )


@judge
def fdehbo_more_stable(representation: pd.DataFrame) -> Claim:
    rises = largest_rise(main_runs(representation), "upper_loss").groupby("label").mean()
    return Claim(
        f"{OURS} converges more stably than PZOBO-S, F2SA and F3SA",
        "largest climb of the outer loss above its lowest value so far, mean of the seeds",
        "; ".join(f"{label} {rises[label]:.2f}" for label in (OURS, *RIVALS)),
        decided(all(rises[OURS] < rises[rival] for rival in RIVALS)),
    )


@judge
def fdehbo_more_accurate(representation: pd.DataFrame) -> Claim:
    main = main_runs(representation)
    last = main.groupby(["label", "seed"]).upper_accuracy.last()
    return Claim(
        f"{OURS} achieves a higher training accuracy",
        f"outer accuracy at {shared_end(main, 'cpu_seconds'):.0f} s",
        "; ".join(f"{label} {mean_and_range(last[label])}" for label in (OURS, *RIVALS)),
        decided(all(last[OURS].mean() > last[rival].mean() for rival in RIVALS)),
    )


def ends_of_ablations(representation: pd.DataFrame, *labels: str) -> list[pd.Series]:
    """The outer loss of FdeHBO after 200 steps, over the seeds, of each label."""
    runs = select(representation, REPRESENTATION, "ablations", *labels)
    last = runs.groupby(["label", "seed"]).upper_loss.last()
    return [last[label] for label in labels]


@judge
def momentum_lowers_variance(representation: pd.DataFrame) -> Claim:
    on, off = ends_of_ablations(representation, "as in the paper", "eta 1, momentum off")
    return Claim(
        "the experiment validates momentum in reducing the variance",
        "outer loss after 200 steps with eta = 0.9, as in the paper, and with eta = 1, which is no momentum",
        f"{mean_and_range(on)} with, {mean_and_range(off)} without",
        decided(on.max() < off.min()),
    )


@judge
def consistent_with_theory() -> Claim:
    """Softmax does not see what is added to all ten scores, so H has a null vector for each input of the last layer."""
    _, head = lenet()
    return Claim(
        "the experiment is consistent with the theoretical results",
        "the lower level is not strongly convex, so that the theorems say nothing about it",
        f"{head.in_features} + 1 flat directions of the lower level",
        Verdict.UNTESTABLE,
    )


@judge
def sensitive_to_delta(representation: pd.DataFrame) -> Claim:
    runs = ends_of_ablations(representation, "delta 0.001", "as in the paper", "delta 10")
    ends = [each.mean() for each in runs]
    return Claim(
        "differences are sensitive to delta",
        "outer loss of FdeHBO on LeNet after 200 steps, delta = 0.001, 0.1 and 10: is the largest a tenth above "
        "the smallest?",
        ", ".join(f"{end:.3f}" for end in ends),
        decided(max(ends) > 1.1 * min(ends)),
    )


@judge
@apart(CONSTRUCTION)
def dimensions() -> Claim:
    upper, lower = (sum(p.numel() for p in part.parameters()) for part in lenet())
    return Claim(
        "the dimensions are 850 and 60856",
        "parameters of LeNet-5: last layer, and the rest",
        f"{lower} and {upper}",
        decided((lower, upper) == (850, 60856)),
    )


@judge
def last_two_layers() -> Claim:
    features, head = lenet()
    layers = [sum(p.numel() for p in layer.parameters()) for layer in (*features, head)]
    last_two = sum([size for size in layers if size][-2:])
    return Claim(
        "the lower level holds the last two layers",
        "parameters of the last two layers; the lower level has 850",
        f"{last_two}",
        decided(last_two == 850),
    )
