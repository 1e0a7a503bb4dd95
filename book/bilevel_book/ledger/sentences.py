"""Sentences of the paper about its figures, judged by the rules of the protocol, on each of its two tracks."""

from collections.abc import Callable
from dataclasses import replace

from bilevel_book.ledger.claim import CONSTRUCTION, TUNED, Claim
from bilevel_book.verdicts import Verdict
from bilevel_book.verdicts.paper import MARKS, Sentence, deciding, worst

Case = Callable[[str], Sentence]  # the sentence of the protocol with this name


def as_stated(case: Case, sentence: str) -> Claim:
    return on_track(case(sentence), "stated")


def tuned_alike(case: Case, sentence: str) -> Claim:
    return replace(on_track(case(sentence), "alike"), apart=TUNED)


def on_track(asked: Sentence, track: str) -> Claim:
    """Its verdict; for every measure and rival the ratio with its interval, first of the rival that decides."""
    command = f"python -m bilevel_book verdicts {asked.experiment}"
    if gone := asked.missing(track):
        to_come = f"not run yet: {', '.join(gone)}"
        return Claim(asked.says, "by the protocol", to_come, Verdict.UNDECIDED, command=command)
    numbers = asked.numbers(track)
    last = deciding(numbers).name
    told = [
        f"{row.measure}, {row.rival} {row.ratio:.2f} ({row.low:.2f} to {row.high:.2f}, {row.verdict})"
        for row in numbers.loc[[last, *numbers.index.drop(last)]].itertuples()
    ]
    told += [f"much: {worst(numbers.much)}"] if asked.much else []
    told += [MARKS[mark] for mark in asked.marks(track)]
    measures = " and ".join(f"{measure} in the {metric.replace('_', ' ')}" for measure, metric in asked.measures)
    unit = "steps" if asked.axis == "step" else "seconds of the calibrated clock"
    return Claim(
        asked.says,
        f"{measures.replace('upper', 'outer')}, at equal {unit}, {numbers.n.max()} seeds",
        "; ".join(told),
        asked.verdict(track),
        runs=asked.runs_hash(track),
        command=command,
    )


def amigo_is_like_stocbio(case: Case) -> Claim:
    """C6, which is shown and not counted: AmIGO was given the loop and the batch of stocBiO."""
    says = "AmIGO performs similarly to stocBiO"
    claim = on_track(replace(case("C3"), id="C6", says=says, first="AmIGO", rivals=("stocBiO",)), "stated")
    is_alike = {Verdict.NO_DIFFERENCE: Verdict.SUPPORTED, Verdict.UNDECIDED: Verdict.UNDECIDED}
    return replace(claim, verdict=is_alike.get(Verdict(claim.verdict), Verdict.CONTRADICTED), apart=CONSTRUCTION)
