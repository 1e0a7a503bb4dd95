"""Claims about data hyper-cleaning, Figure 2 of the paper: FMBO and the methods it is compared with."""

import numpy as np
import pandas as pd

from bilevel_book.curves import at_marks, band, largest_rise, shared_end
from bilevel_book.labels import CLEANING, select
from bilevel_book.ledger.registry import CONSTRUCTION, OWN_QUESTION, apart, judge
from bilevel_book.ledger.values import steps_without_momentum
from bilevel_book.verdicts import Claim, ahead, decided, thirty_marks, worst
from bilevel_core.experiments import paper_settings
from bilevel_core.experiments.report import last_quarter_median, mean_and_range

OTHERS = ("reverse", "SUSTAIN", "MRBO", "VRBO", "BSA")
THE_OTHERS = f"{', '.join(OTHERS[:-1])} and {OTHERS[-1]}"


def marks_of(cleaning: pd.DataFrame) -> np.ndarray:
    """Thirty marks over the budget of the main comparison."""
    return thirty_marks(shared_end(select(cleaning, CLEANING, "main"), "cpu_seconds"))


@judge
def faster_than_the_others(cleaning: pd.DataFrame, leader: str) -> Claim:
    runs, marks = select(cleaning, CLEANING, "main", leader, *OTHERS), marks_of(cleaning)
    last = runs.groupby(["label", "seed"]).test_loss.last()
    return Claim(
        f"{leader} converges much faster than {THE_OTHERS}",
        f"mean test loss against each, at 30 marks over the budget; its value at {marks[-1]:.0f} s",
        "; ".join(f"{label} {mean_and_range(last[label])}" for label in (leader, *OTHERS)),
        worst([ahead(runs, leader, other, "test_loss", marks) for other in OTHERS]),
    )


@judge
def more_stable_than_the_others(cleaning: pd.DataFrame, leader: str) -> Claim:
    runs = select(cleaning, CLEANING, "main", leader, *OTHERS)
    started = runs[runs.cpu_seconds > 0.1 * marks_of(cleaning)[-1]]
    rises = largest_rise(started, "test_loss").groupby("label").mean()
    return Claim(
        f"{leader} converges more stably than {THE_OTHERS}",
        "largest climb of the test loss above its lowest value so far, after the first tenth of the budget",
        "; ".join(f"{label} {rises[label]:.3f}" for label in (leader, *OTHERS)),
        decided(all(rises[leader] < rises[other] for other in OTHERS)),
    )


@judge
def fmbo_lower(cleaning: pd.DataFrame, rival: str) -> Claim:
    pair = select(cleaning, CLEANING, "main", "FMBO", rival)
    settled = last_quarter_median(pair, "cpu_seconds", "train_loss")
    return Claim(
        f"FMBO achieves a lower training loss than {rival}",
        "median train loss over the last quarter of the budget",
        f"{mean_and_range(settled['FMBO'])} and {mean_and_range(settled[rival])}",
        decided(settled["FMBO"].mean() < settled[rival].mean()),
    )


def _faster_and_lower(ours: pd.DataFrame, theirs: pd.DataFrame, marks: np.ndarray, rival: str, measure: str) -> Claim:
    """The train loss of two labels over the seeds that both have, at all marks; four of them are shown."""
    pair = pd.concat([ours[ours.seed.isin(theirs.seed)], theirs[theirs.seed.isin(ours.seed)]])
    first, second = pair.label.unique()
    shown = [marks[1], marks[5], marks[14], marks[-1]]
    means = band(at_marks(pair, "cpu_seconds", "train_loss", shown))["mean"]
    return Claim(
        f"FMBO converges faster than {rival}, with a lower training loss",
        measure,
        "; ".join(f"{means.loc[first, s]:.3f} and {means.loc[second, s]:.3f} at {s:.0f} s" for s in shown),
        ahead(pair, first, second, "train_loss", marks),
    )


@judge
def fmbo_faster(cleaning: pd.DataFrame, rival: str) -> Claim:
    ours, theirs = (select(cleaning, CLEANING, "main", method) for method in ("FMBO", rival))
    measure = "mean train loss of the two, at 30 marks over the budget, with the steps of the paper: 0.3 and 0.1"
    return _faster_and_lower(ours, theirs, marks_of(cleaning), rival, measure)


@judge
@apart(OWN_QUESTION)
def fmbo_at_equal_steps(cleaning: pd.DataFrame, rival: str, step: float) -> Claim:
    def runs_of(method: str) -> pd.DataFrame:
        """Those of the main comparison, if the paper gives it this step."""
        if paper_settings(CLEANING, method)["beta"] == step:
            return select(cleaning, CLEANING, "main", method)
        return select(cleaning, CLEANING, "equal_steps", f"{method}, steps {step:g}")

    measure = f"the same with steps of {step:g} for both"
    return _faster_and_lower(runs_of("FMBO"), runs_of(rival), marks_of(cleaning), rival, measure)


@judge
def momentum_is_effective(cleaning: pd.DataFrame) -> Claim:
    with_it, without = "main comparison", "eta 1, momentum off"
    loss = last_quarter_median(select(cleaning, CLEANING, "momentum", with_it, without), "step", "train_loss")
    on, off = loss[with_it], loss[without]
    return Claim(
        "this demonstrates the effectiveness of momentum-based variance reduction",
        "median train loss of FMBO over the last quarter of 3000 steps of 0.3, with the decaying eta (which is 1 "
        f"for the first {steps_without_momentum('FMBO')} steps) and with eta = 1 throughout, which is no momentum",
        f"{mean_and_range(on)} with, {mean_and_range(off)} without",
        decided(on.max() < off.min()),
    )


@judge
def amigo_like_stocbio(cleaning: pd.DataFrame) -> Claim:
    pair = select(cleaning, CLEANING, "main", "AmIGO", "stocBiO")
    means = band(at_marks(pair, "cpu_seconds", "train_loss", marks_of(cleaning)))["mean"]
    apart = (means.loc["AmIGO"] / means.loc["stocBiO"] - 1).abs()
    return Claim(
        "AmIGO performs similarly to stocBiO",
        "mean train loss of one over that of the other, at 30 marks over the budget: within a tenth?",
        f"largest difference {100 * apart.max():.1f} %, at the end {100 * apart.iloc[-1]:.1f} %",
        decided(apart.max() < 0.1),
    )


@judge
@apart(CONSTRUCTION)
def without_second_order_nothing_moves(cleaning: pd.DataFrame) -> Claim:
    control = select(cleaning, CLEANING, "main", "alternating")
    moved = (control[["sigma_noisy", "sigma_clean"]] - 0.5).abs().to_numpy().max()
    return Claim(
        "without second-order terms the hypergradient vanishes when $f$ depends on $y$ alone",
        "how far the weights of hyper-cleaning ever move from 1/2 under the control without second-order term",
        f"{moved:.1g} in {control.step.max():.0f} steps",
        decided(moved < 1e-6),
    )


@judge
@apart(CONSTRUCTION)
def v_needs_no_assumption(cleaning: pd.DataFrame) -> Claim:
    r_v = paper_settings(CLEANING, "FMBO")["r_v"]
    names = ("FMBO", "SOBA", "FSLA")
    largest = {name: select(cleaning, CLEANING, "main", name).norm_v.max() for name in names}
    return Claim(
        "FMBO keeps $v$ bounded by itself, SOBA and FSLA must assume it",
        f"largest norm of v in the main comparison on hyper-cleaning; FMBO has radius {r_v:g}, the others none",
        "; ".join(f"{name} {value:.3g}" for name, value in largest.items()),
        decided(largest["FMBO"] <= r_v * (1 + 1e-5)),
    )


@judge
def decay_is_stable(cleaning: pd.DataFrame) -> Claim:
    ours, constant = "main comparison", ("eta 0.9", "eta 0.5", "eta 0.1")
    runs = select(cleaning, CLEANING, "momentum", ours, *constant)
    rises = largest_rise(runs, "train_loss").groupby("label").mean()
    return Claim(
        "a decaying eta makes the training more stable",
        "largest climb of the training loss of FMBO above its lowest value so far, in 3000 steps, with the decay "
        "of the main comparison and with three constant values. The form of the paper's decay is not stated",
        "; ".join(f"{label} {rises[label]:.3f}" for label in (ours, *constant)),
        decided(all(rises[ours] < rises[label] for label in constant)),
    )


@judge
@apart(CONSTRUCTION)
def ball_does_no_harm(cleaning: pd.DataFrame) -> Claim:
    runs = select(cleaning, CLEANING, "momentum", "main comparison", "no ball")
    last = runs.groupby(["label", "seed"]).train_loss.last()
    ball, free = last["main comparison"], last["no ball"]
    return Claim(
        "the projection does no harm to the convergence",
        "training loss of FMBO on hyper-cleaning after 3000 steps with the ball and without: is the mean with it "
        "at most the largest without it?",
        f"{mean_and_range(ball)} with, {mean_and_range(free)} without",
        decided(ball.mean() <= free.max()),
    )
