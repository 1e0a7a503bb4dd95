"""Claims about data hyper-cleaning, Figure 2 of the paper, that are shown apart: ours, or true by construction."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd

from bilevel_book.experiments import paper_settings
from bilevel_book.experiments.report import mean_and_range
from bilevel_book.labels import CLEANING, select
from bilevel_book.ledger.claim import Claim, decided
from bilevel_book.ledger.registry import CONSTRUCTION, OWN_QUESTION, apart, judge
from bilevel_book.ledger.sentences import ruling
from bilevel_book.verdicts.sentences import Case


@judge
@apart(OWN_QUESTION)
def fmbo_at_equal_steps(cleaning: pd.DataFrame, case: Callable[[str], Case], step: float) -> Claim:
    """C5 again, with the runs of that step: those of the main comparison, if the paper gives it to the method."""
    asked = case("C5")
    track = asked.tracks["stated"]

    def runs_of(method: str) -> pd.DataFrame:
        if paper_settings(CLEANING, method)["beta"] == step:
            return select(cleaning, CLEANING, "main", method)
        return select(cleaning, CLEANING, "equal_steps", f"{method}, steps {step:g}").assign(label=method)

    runs = pd.concat([runs_of(method) for method in track.runs.label.unique()], ignore_index=True)
    says = f"{asked.says}, if all have steps of {step:g}"
    return ruling(Case(asked.id, says, asked.first, {"stated": replace(track, runs=runs)}), "stated")


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
@apart(CONSTRUCTION)
def ball_does_no_harm(cleaning: pd.DataFrame) -> Claim:
    runs = select(cleaning, CLEANING, "momentum", "main comparison", "no ball")
    last = runs.groupby(["label", "seed"]).train_loss.last()
    ball, free, steps = last["main comparison"], last["no ball"], runs.step.max()
    return Claim(
        "the projection does no harm to the convergence",
        f"training loss of FMBO on hyper-cleaning after {steps:.0f} steps with the ball and without: is the mean with "
        "it at most the largest without it?",
        f"{mean_and_range(ball)} with, {mean_and_range(free)} without",
        decided(ball.mean() <= free.max()),
    )
