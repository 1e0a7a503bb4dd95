"""Sentences of the paper about its figures, judged by the rules of the protocol, on each of its two tracks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bilevel_book.experiments.tables import sha256_of
from bilevel_book.ledger.claim import TUNED, Claim
from bilevel_book.verdicts import judging, paper
from bilevel_book.verdicts.comparison import Sentence
from bilevel_book.verdicts.deciding import MARGIN, Verdict
from bilevel_book.verdicts.measures import AXES
from bilevel_book.verdicts.sentences import Case

MEASURED = {
    "faster": "budget until the {} first meets each of a list of levels",
    "lower": "median {} over the last quarter of the budget",
    "stable": "largest rise of the {} above its lowest value so far, after the first tenth of the budget",
}
RULE = (
    f"Student's t on paired log ratios, 95 % for all rivals together (Holm's rule), margin {100 * MARGIN:g} %, at the "
    "end of the budget and at two thirds of it"
)
TWICE = 1.0  # the margin of "much"
AS_BEFORE = {
    judging.Verdict.SUPPORTED: Verdict.HOLDS, judging.Verdict.NO_DIFFERENCE: Verdict.ALIKE,
    judging.Verdict.UNDECIDED: Verdict.UNDECIDED, judging.Verdict.CONTRADICTED: Verdict.FAILS,
}  # fmt: skip
NOT_ALIKE = dict.fromkeys((Verdict.HOLDS, Verdict.FAILS), "differs")
WORDS: dict[str, dict[Verdict, str]] = {"ahead": {}, "alike": {}, "differs": NOT_ALIKE}  # on one of several rivals


def as_stated(case: Callable[[str], Any], sentence: str) -> Claim:
    found = case(sentence)
    return by_second_protocol(found, "stated") if isinstance(found, paper.Sentence) else ruling(found, "stated")


def tuned_alike(case: Callable[[str], Any], sentence: str) -> Claim:
    found = case(sentence)
    is_new = isinstance(found, paper.Sentence)
    return replace(by_second_protocol(found, "alike") if is_new else ruling(found, "tuned"), apart=TUNED)


def by_second_protocol(asked: paper.Sentence, track: str) -> Claim:
    """Its verdict; for every measure and rival the ratio with its interval."""
    command = f"python -m bilevel_book verdicts {asked.experiment}"
    if gone := asked.missing(track):
        to_come = f"not run yet: {', '.join(gone)}"
        return Claim(asked.says, "by the second protocol", to_come, Verdict.UNDECIDED, command=command)
    numbers = asked.numbers(track)
    told = [
        f"{row.measure}, {row.rival} {row.ratio:.2f} ({row.low:.2f} to {row.high:.2f}, {row.verdict})"
        for row in numbers.itertuples()
    ]
    told += [f"much: {judging.worst(numbers.much)}"] if asked.much else []
    told += [paper.MARKS[mark] for mark in asked.marks(track)]
    measures = " and ".join(f"{measure} in the {metric.replace('_', ' ')}" for measure, metric in asked.measures)
    unit = "steps" if asked.axis == "step" else "seconds of the calibrated clock"
    return Claim(
        asked.says,
        f"{measures.replace('upper', 'outer')}, at equal {unit}, {numbers.n.max()} seeds, by the second protocol",
        "; ".join(told),
        AS_BEFORE[asked.verdict(track)],
        runs=asked.runs_hash(track),
        command=command,
    )


def ruling(case: Case, track: str) -> Claim:
    """The verdict of the protocol; for every rival the ratio with its interval at the end of the budget."""
    found, chosen = case.numbers(track), case.tracks[track]
    end = found[found.horizon == "end"]
    numbers = [
        ("" if len(chosen.sentences) == 1 else f"{sentence.measure}: ")
        + ", ".join(_pair(row, sentence) for row in end[end.measure == sentence.measure].itertuples())
        for sentence in chosen.sentences
    ]
    numbers += [f"{rival}: {why}" for rival, why in chosen.sentences[0].untestable.items()]
    if gone := end.first_diverged.max():
        numbers.append(f"{case.first} diverged on {gone} of {end.n.max()} seeds")
    if "much faster" in case.says:
        numbers.append(f"with a margin of a factor of two: {case.verdict(track, margin=TWICE)}")
    stays, others = case.stays(track)
    numbers.append(f"the verdict stays under {stays} of {others} other rules that can be read")
    what = " and ".join(MEASURED[each.measure].format(each.metric.replace("_", " ")) for each in chosen.sentences)
    seeds = f"{end.n.max()} seeds, in {AXES[chosen.axis]}"
    measure = f"{what.replace('upper', 'outer')}, that of {case.first} over that of the other, {seeds}: {RULE}"
    runs = sha256_of(chosen.runs.to_csv(index=False))
    command = f"python -m bilevel_book verdicts {case.experiment}"
    return Claim(case.says, measure, "; ".join(numbers), case.verdict(track), runs=runs, command=command)


def _pair(row: Any, sentence: Sentence) -> str:
    word = "" if len(sentence.rivals) == 1 else f", {WORDS[sentence.means].get(row.verdict, row.verdict)}"
    told = f"{row.rival} {np.exp(row.mean):.2f} ({row.low:.2f} to {row.high:.2f}{word})"
    if np.isnan(row.mean):
        told = f"{row.rival} cannot be read"
    if row.rival_diverged:
        told += f" (diverged on {row.rival_diverged} of {row.n} seeds)"
    if row.rival in sentence.contains and row.low > 1 + MARGIN:
        told += f" (a special case of {sentence.first}, which was not tuned enough)"
    return told
