"""Claims about hyper-representation that need no run: its network and its lower level."""

from bilevel_book.ledger.claim import CONSTRUCTION, Claim, holds_if
from bilevel_book.mnist.hyper_representation import lenet
from bilevel_book.verdicts import Verdict


def consistent_with_theory() -> Claim:
    """Softmax does not see what is added to all ten scores, so H has a null vector for each input of the last layer."""
    text = "the experiment is consistent with the theoretical results"
    measure = "the lower level is not strongly convex, so that the theorems say nothing about it"
    _, head = lenet()
    return Claim(text, measure, f"{head.in_features} + 1 flat directions of the lower level", Verdict.UNTESTABLE)


def dimensions() -> Claim:
    measure = "parameters of LeNet-5: last layer, and the rest"
    upper, lower = (sum(p.numel() for p in part.parameters()) for part in lenet())
    holds = holds_if((lower, upper) == (850, 60856))
    return Claim("the dimensions are 850 and 60856", measure, f"{lower} and {upper}", holds, CONSTRUCTION)


def last_two_layers() -> Claim:
    measure = "parameters of the last two layers; the lower level has 850"
    features, head = lenet()
    layers = [sum(p.numel() for p in layer.parameters()) for layer in (*features, head)]
    last_two = sum([size for size in layers if size][-2:])
    return Claim("the lower level holds the last two layers", measure, f"{last_two}", holds_if(last_two == 850))
