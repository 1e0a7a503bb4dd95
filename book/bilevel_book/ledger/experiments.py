"""Claims about the experiments beside the sentences of the protocol, most of them true by construction or ours."""

import pandas as pd

from bilevel_book.experiments import paper_settings
from bilevel_book.experiments.report import CLEANING, mean_and_range, select
from bilevel_book.ledger.claim import CONSTRUCTION, Claim, supported_if
from bilevel_book.mnist.hyper_representation import lenet
from bilevel_book.verdicts import Verdict


def without_second_order_nothing_moves(cleaning: pd.DataFrame) -> Claim:
    text = "without second-order terms the hypergradient vanishes when $f$ depends on $y$ alone"
    measure = "how far the weights of hyper-cleaning ever move from 1/2 under the control without second-order term"
    control = select(cleaning, CLEANING, "stated", "alternating")
    moved = (control[["sigma_noisy", "sigma_clean"]] - 0.5).abs().to_numpy().max()
    numbers = f"{moved:.1g} in {control.step.max():.0f} steps"
    return Claim(text, measure, numbers, supported_if(moved < 1e-6), CONSTRUCTION)


def v_needs_no_assumption(cleaning: pd.DataFrame) -> Claim:
    text = "FMBO keeps $v$ bounded by itself, SOBA and FSLA must assume it"
    r_v = paper_settings(CLEANING, "FMBO")["r_v"]
    measure = f"largest norm of v on hyper-cleaning, as stated; FMBO has radius {r_v:g}, the others none"
    names = ("FMBO", "SOBA", "FSLA")
    largest = {name: select(cleaning, CLEANING, "stated", name).norm_v.max() for name in names}
    numbers = "; ".join(f"{name} {value:.3g}" for name, value in largest.items())
    return Claim(text, measure, numbers, supported_if(largest["FMBO"] <= r_v * (1 + 1e-5)), CONSTRUCTION)


def ball_does_no_harm(cleaning: pd.DataFrame) -> Claim:
    runs = select(cleaning, CLEANING, "momentum", "main comparison", "no ball")
    measure = (
        f"training loss of FMBO on hyper-cleaning after {runs.step.max():.0f} steps with the ball and without: is the "
        "mean with it at most the largest without it?"
    )
    last = runs.groupby(["label", "seed"]).train_loss.last()
    ball, free = last["main comparison"], last["no ball"]
    numbers = f"{mean_and_range(ball)} with, {mean_and_range(free)} without"
    verdict = supported_if(ball.mean() <= free.max())
    return Claim("the projection does no harm to the convergence", measure, numbers, verdict, CONSTRUCTION)


def consistent_with_theory() -> Claim:
    """Softmax does not see what is added to all ten scores, so H has a null vector for each input of the last layer."""
    text = "the experiment is consistent with the theoretical results"
    measure = "the lower level is not strongly convex, so that the theorems say nothing about it"
    _, head = lenet()
    return Claim(text, measure, f"{head.in_features} + 1 flat directions of the lower level", Verdict.UNTESTABLE)


def dimensions() -> Claim:
    measure = "parameters of LeNet-5: last layer, and the rest"
    upper, lower = (sum(p.numel() for p in part.parameters()) for part in lenet())
    verdict = supported_if((lower, upper) == (850, 60856))
    return Claim("the dimensions are 850 and 60856", measure, f"{lower} and {upper}", verdict, CONSTRUCTION)


def last_two_layers() -> Claim:
    measure = "parameters of the last two layers; the lower level has 850"
    features, head = lenet()
    layers = [sum(p.numel() for p in layer.parameters()) for layer in (*features, head)]
    last_two = sum([size for size in layers if size][-2:])
    return Claim("the lower level holds the last two layers", measure, f"{last_two}", supported_if(last_two == 850))


def no_run_decides(text: str, reason: str) -> Claim:
    return Claim(text, reason, "no number", Verdict.UNTESTABLE)


def came_first(text: str) -> Claim:
    return no_run_decides(text, "a statement about what others had done by 2023, which no run decides")
