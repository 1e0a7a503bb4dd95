"""Complexities: exponents that the paper states, against slopes that were measured."""

import pandas as pd

from bilevel_book import rates
from bilevel_book.ledger.registry import judge
from bilevel_book.verdicts import Claim, Verdict, decided

OURS, RIVALS = "FdeHBO", ("F2SA", "F3SA")  # PZOBO-S is of its kind too, but no rate of it is measured


@judge
def has_rate(slopes: pd.DataFrame, fair: pd.DataFrame, method: str, exponent: float, what: str) -> Claim:
    """epsilon^-exponent means that the mean squared slope falls like T^(-1 / exponent), or faster: it is a bound."""
    claimed, text = -1 / exponent, f"{method}: about $\\epsilon^{{-{exponent:g}}}$ {what}"
    if method not in set(slopes.method):
        return Claim(text, "no rate of this method is measured in the book", "no number", Verdict.UNTESTABLE)
    free = ", without the ball," if getattr(rates.solver(method), "r_v", 0) == float("inf") else ""
    row, constant = (table.set_index("method").loc[method] for table in (slopes, fair))
    return Claim(
        text,
        f"slope of the mean squared hypergradient against steps on logarithmic axes, on one problem{free} "
        f"with the schedule of the theory: its interval must reach {claimed:.2f}, or be steeper. A slope can "
        "contradict a bound, not prove it. Beside it, for comparison, constant steps, the best for each length",
        f"{interval(row)}; constant steps {interval(constant)}",
        decided(row.low <= claimed),
    )


def interval(row: pd.Series) -> str:
    return f"{row.slope:.2f} ({row.low:.2f} to {row.high:.2f})"


@judge
def better_rate(fair: pd.DataFrame) -> Claim:
    rows = fair.set_index("method")
    return Claim(
        "FdeHBO has a better rate than the methods of its kind",
        "slopes with constant steps that are best for each length of the run; the intervals must not touch",
        "; ".join(f"{name} {interval(rows.loc[name])}" for name in (OURS, *RIVALS)),
        decided(all(rows.high[OURS] < rows.low[rival] for rival in RIVALS)),
    )


@judge
def ahead_of_its_kind(far: pd.DataFrame) -> Claim:
    rows = far.set_index("method")
    return Claim(
        "FdeHBO is ahead of the methods of its kind",
        "mean squared hypergradient over 100000 steps from a far start, with the schedules of the theories; the "
        "intervals must not touch",
        "; ".join(
            f"{name} {rows['mean'][name]:.2g} ({rows.low[name]:.2g} to {rows.high[name]:.2g})"
            for name in (OURS, *RIVALS)
        ),
        decided(all(rows.high[OURS] < rows.low[rival] for rival in RIVALS)),
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
