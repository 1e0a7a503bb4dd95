"""Claims about hyper-representation that need no run: its network and its lower level."""

from bilevel_book.ledger.claim import Claim, Verdict, decided
from bilevel_book.ledger.registry import CONSTRUCTION, apart, judge
from bilevel_book.mnist.hyper_representation import lenet


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
