"""Complexities: exponents that the paper states, against slopes that were measured; and the rows of its Table 1."""

from dataclasses import dataclass

import pandas as pd

from bilevel_book import rates
from bilevel_book.ledger.counts import cost, needs_second_derivatives
from bilevel_book.ledger.evidence import Evidence, Judge, found, listed, several
from bilevel_book.verdicts import Claim, Verdict
from bilevel_core.experiments import paper_settings


@dataclass(frozen=True)
class Row:
    """A row of Table 1: exponents of 1/epsilon in samples, batch and iterations, and the loops."""

    samples: float
    batch: float
    iterations: float
    loops: int


TABLE = {
    "PZOBO-S": Row(3, 1, 2, 2),
    "F2SA": Row(3.5, 0, 3.5, 1),
    "F3SA": Row(2.5, 0, 2.5, 1),
    "FdeHBO": Row(1.5, 0, 1.5, 1),
}


def has_rate(method: str, exponent: float, what: str = "samples") -> Judge:
    """epsilon^-exponent means that the mean squared slope falls like T^(-1 / exponent), or faster: it is a bound."""

    def judge_it(evidence: Evidence) -> list[Claim]:
        claimed, text = -1 / exponent, f"{method}: about $\\epsilon^{{-{exponent:g}}}$ {what}"
        if method not in set(evidence.slopes.method):
            return [found(text, "no rate of this method is measured in the book", "no number", Verdict.UNTESTABLE)]
        free = ", without the ball," if getattr(rates.solver(method), "r_v", 0) == float("inf") else ""
        row, fair = (table.set_index("method").loc[method] for table in (evidence.slopes, evidence.fair))
        return [
            found(
                text,
                f"slope of the mean squared hypergradient against steps on logarithmic axes, on one problem{free} "
                f"with the schedule of the theory: its interval must reach {claimed:.2f}, or be steeper. A slope can "
                "contradict a bound, not prove it. Beside it, for comparison, constant steps, the best for each length",
                f"{interval(row)}; constant steps {interval(fair)}",
                bool(row.low <= claimed),
            )
        ]

    return judge_it


def interval(row: pd.Series) -> str:
    return f"{row.slope:.2f} ({row.low:.2f} to {row.high:.2f})"


def margin(evidence: Evidence) -> list[Claim]:
    fair, far = (table.set_index("method") for table in (evidence.fair, evidence.far))
    ours, rivals = "FdeHBO", [name for name in TABLE if name != "FdeHBO" and name in fair.index]
    return [
        found(
            "FdeHBO has a better rate than the methods of its kind",
            "slopes with constant steps that are best for each length of the run; the intervals must not touch",
            "; ".join(f"{name} {interval(fair.loc[name])}" for name in (ours, *rivals)),
            all(bool(fair.high[ours] < fair.low[rival]) for rival in rivals),
        ),
        found(
            "FdeHBO is ahead of the methods of its kind",
            "mean squared hypergradient over 100000 steps from a far start, with the schedules of the theories; the "
            "intervals must not touch",
            "; ".join(
                f"{name} {far['mean'][name]:.2g} ({far.low[name]:.2g} to {far.high[name]:.2g})"
                for name in (ours, *rivals)
            ),
            all(bool(far.high[ours] < far.low[rival]) for rival in rivals),
        ),
    ]


def loops(name: str) -> int:
    """As run in the first experiment: 2 where y gets several steps for one of x."""
    return 1 if paper_settings("hyper-representation", name).get("inner", 1) == 1 else 2


def row_of_table(name: str) -> Judge:
    row = TABLE[name]

    def structure(evidence: Evidence) -> list[Claim]:
        calls = cost(name)[-1]
        drawn = [each.samples for each in cost(name, 4)[1:]]
        batch = (
            found(
                f"{name}: batch of order one",
                "batches drawn in steps two to four",
                listed(drawn),
                len(set(drawn)) == 1,
            )
            if row.batch == 0
            else found(
                f"{name}: batch of order $\\epsilon^{{-{row.batch:g}}}$",
                "what an analysis asks for, not what a run shows: the runs here have one batch size",
                "no number",
                Verdict.UNTESTABLE,
            )
        )
        inner = paper_settings("hyper-representation", name).get("inner", 1)
        return [
            found(
                f"{name}: free of Hessians and Jacobians",
                "products counted in a step, and a run on a loss that raises an error when differentiated twice",
                f"{calls.Hv} H v and {calls.Jv} J v",
                calls.Hv == calls.Jv == 0 and not needs_second_derivatives(name),
            ),
            batch,
            found(
                f"{name}: loops per iteration {row.loops}",
                "steps of the lower level for one of the upper, as run in the first experiment",
                f"{inner}",
                loops(name) == row.loops,
            ),
        ]

    return several(has_rate(name, row.iterations, "iterations"), structure)


def contradicts_table(evidence: Evidence) -> list[Claim]:
    row, said = TABLE["PZOBO-S"], 2
    return [
        found(
            "PZOBO-S: $p^2\\epsilon^{-2}$ samples",
            "compared with Table 1 of the same paper: iterations times batch",
            f"exponent {row.iterations} + {row.batch} = {row.iterations + row.batch}, said {said}",
            row.iterations + row.batch == said,
        )
    ]
