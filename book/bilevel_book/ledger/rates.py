"""Complexities: exponents that the paper states, against slopes that were measured."""

import pandas as pd

from bilevel_book.ledger.claim import Claim, Verdict, decided
from bilevel_book.ledger.registry import CONSTRUCTION, apart, judge
from bilevel_book.rates import CLAIMED, EARLIER
from bilevel_book.verdicts.cells import Word, together

OURS, RIVALS = "FdeHBO", ("F2SA", "F3SA")


@judge
def has_rate(cells: pd.DataFrame, method: str, exponent: float) -> Claim:
    """epsilon^-exponent means that the mean squared slope falls like T^(-1 / exponent), or faster: it is a bound."""
    text, rows = f"{method}: about $\\epsilon^{{-{exponent:g}}}$ iterations and samples", cells[cells.method == method]
    if rows.empty:
        return Claim(text, "no rate of this method is measured in the book", "no number", Verdict.UNTESTABLE)
    said, verdict, earlier = rows.word.value_counts(), together(rows.word), together(rows.earlier)
    robust = "the verdict stays" if earlier == verdict else f"the verdict would be “{earlier}”"
    return Claim(
        text,
        "slopes of the mean squared hypergradient against steps, on two problems with three noises, four starts and "
        "eight seeds, beside a negative control, SOBA with the same steps of x and of the lower level, which no theory "
        "promises this rate; by the rule of the protocol",
        f"of {len(rows)} cells "
        + ", ".join(f"{said.get(word, 0)} {_plural(word)}" for word in Word)
        + f"; with slopes from T = {EARLIER} on {robust}",
        verdict,
    )


def _plural(word: Word) -> str:
    verb, rest = f"{word} ".split(" ", 1)
    return f"{verb.removesuffix('s')} {rest}".strip()


@judge
@apart(CONSTRUCTION)
def bound_below_its_kind() -> Claim:
    return Claim(
        "the bound of FdeHBO is below those of the methods of its kind by a large margin",
        "exponents of 1 / epsilon in Table 1 of the paper; what runs say about each stands with its row",
        f"{-1 / CLAIMED[OURS]:g} against " + " and ".join(f"{-1 / CLAIMED[rival]:g}" for rival in RIVALS),
        decided(all(CLAIMED[OURS] < CLAIMED[rival] for rival in RIVALS)),
    )


@judge
def samples_as_in_table(method: str, iterations: int, batch: int, said: int) -> Claim:
    """Exponents of 1 / epsilon: samples are iterations times batch."""
    return Claim(
        f"{method}: $p^2\\epsilon^{{-{said}}}$ samples",
        "compared with Table 1 of the same paper: iterations times batch",
        f"exponent {iterations} + {batch} = {iterations + batch}, said {said}",
        decided(iterations + batch == said),
    )
