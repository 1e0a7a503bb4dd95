"""Claims about data hyper-cleaning, Figure 2 of the paper, that are shown apart: ours, or true by construction."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd

from bilevel_book.experiments import paper_settings
from bilevel_book.experiments.report import mean_and_range
from bilevel_book.labels import CLEANING, select
from bilevel_book.ledger.claim import CONSTRUCTION, OWN_QUESTION, Claim, holds_if
from bilevel_book.ledger.sentences import ruling
from bilevel_book.verdicts.sentences import Case


def fmbo_at_equal_steps(cleaning: pd.DataFrame, case: Callable[[str], Case], step: float) -> Claim:
    """C5 again, with the runs of that step: those of the main comparison, if the paper gives it to the method."""
    asked = case("C5")
    track = asked.tracks["stated"]

    def with_step(method: str) -> pd.DataFrame:
        if paper_settings(CLEANING, method)["beta"] == step:
            return select(cleaning, CLEANING, "main", method)
        return select(cleaning, CLEANING, "equal_steps", f"{method}, steps {step:g}").assign(label=method)

    runs = pd.concat([with_step(method) for method in track.runs.label.unique()], ignore_index=True)
    says = f"{asked.says}, if all have steps of {step:g}"
    same_steps = Case(asked.id, says, asked.first, {"stated": replace(track, runs=runs)})
    return replace(ruling(same_steps, "stated"), apart=OWN_QUESTION)


def without_second_order_nothing_moves(cleaning: pd.DataFrame) -> Claim:
    text = "without second-order terms the hypergradient vanishes when $f$ depends on $y$ alone"
    measure = "how far the weights of hyper-cleaning ever move from 1/2 under the control without second-order term"
    control = select(cleaning, CLEANING, "main", "alternating")
    moved = (control[["sigma_noisy", "sigma_clean"]] - 0.5).abs().to_numpy().max()
    numbers = f"{moved:.1g} in {control.step.max():.0f} steps"
    return Claim(text, measure, numbers, holds_if(moved < 1e-6), CONSTRUCTION)


def v_needs_no_assumption(cleaning: pd.DataFrame) -> Claim:
    text = "FMBO keeps $v$ bounded by itself, SOBA and FSLA must assume it"
    r_v = paper_settings(CLEANING, "FMBO")["r_v"]
    measure = f"largest norm of v in the main comparison on hyper-cleaning; FMBO has radius {r_v:g}, the others none"
    names = ("FMBO", "SOBA", "FSLA")
    largest = {name: select(cleaning, CLEANING, "main", name).norm_v.max() for name in names}
    numbers = "; ".join(f"{name} {value:.3g}" for name, value in largest.items())
    return Claim(text, measure, numbers, holds_if(largest["FMBO"] <= r_v * (1 + 1e-5)), CONSTRUCTION)


def ball_does_no_harm(cleaning: pd.DataFrame) -> Claim:
    runs = select(cleaning, CLEANING, "momentum", "main comparison", "no ball")
    measure = (
        f"training loss of FMBO on hyper-cleaning after {runs.step.max():.0f} steps with the ball and without: is the "
        "mean with it at most the largest without it?"
    )
    last = runs.groupby(["label", "seed"]).train_loss.last()
    ball, free = last["main comparison"], last["no ball"]
    numbers = f"{mean_and_range(ball)} with, {mean_and_range(free)} without"
    holds = holds_if(ball.mean() <= free.max())
    return Claim("the projection does no harm to the convergence", measure, numbers, holds, CONSTRUCTION)
