"""The sentences of the paper about its two figures, and the runs that decide them by experiments/protocol.md.

F1 = sentence("F1");   F1.verdict("stated");   F1.numbers("alike", clock="recorded", margin=0.1)
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pandas as pd

from bilevel_book.experiments import Plan, load
from bilevel_book.experiments.files import JUDGING
from bilevel_book.experiments.plan import with_ends
from bilevel_book.experiments.report import CLEANING, REPRESENTATION
from bilevel_book.experiments.tables import sha256_of, stored_runs
from bilevel_book.experiments.ticks import seconds_at, steps_within
from bilevel_book.paths import RESULTS
from bilevel_book.verdicts.judging import (
    MARGIN,
    NO_LEVELS,
    Curve,
    Curves,
    Pair,
    Verdict,
    compare,
    decide,
    levels_of,
    worst,
)

SIZE = "next"
TRACKS = {"stated": "as stated", "alike": "tuned alike"}
CLOCKS = (JUDGING, "busy", "recorded")  # of which the first judges
MARGINS = (0.02, 0.05, 0.1)
OFF, AGAIN, PAPER_DELTA = "eta = 1", "other seeds", "delta 0.1"
FEWEST_SEEDS = 2  # for an interval
HALF_AN_IMAGE = 1 / 6000  # no error is taken as lower, so that it has a logarithm
ELSEWHERE = {  # the group of a method that is not in that of its track
    ("stated", "F2SA"): "stated_read", ("stated", "F3SA"): "stated_five", ("alike", "F3SA"): "alike_five",
}  # fmt: skip
CHANGED = ("same_steps", "unstated")  # the groups of methods with another value of one setting
READ = {  # the methods whose settings as stated need a reading of ours that can matter
    REPRESENTATION: {"F2SA", "F3SA"},
    CLEANING: {"FMBO", "reverse", "SUSTAIN", "MRBO", "VRBO", "BSA", "FSLA", "SOBA"},
}
MEASURES = ("faster", "lower", "stable")
TO_COME = "not run yet"
MARKS = {"r": "needs our reading of a setting", "c": "another clock differs", "m": "a run misses a level"}


@dataclass(frozen=True)
class Sentence:
    """In each (measure, metric), `first` is ahead of every rival; or, about delta, delta = 0.1 of the others."""

    id: str
    says: str
    experiment: str
    first: str
    rivals: tuple[str, ...]
    measures: tuple[tuple[str, str], ...]
    much: bool = False
    axis: str = "seconds"  # or "step": momentum on and off are compared at equal steps
    tracks: tuple[str, ...] = tuple(TRACKS)
    results: Path = RESULTS

    @property
    def plan(self) -> Plan:
        return _plan(self.experiment, self.results)

    def group(self, track: str, name: str) -> tuple[str, str]:
        """The group that has a method on a track, and its label there."""
        if name in (OFF, AGAIN):
            return f"{track}_{'off' if name == OFF else 'again'}", self.first
        if name.startswith("delta"):
            return ("stated", "FdeHBO") if name == PAPER_DELTA else ("delta", name)
        if ", " in name:  # one setting of a method changed
            return next(group for group in CHANGED if name in self.plan.groups[group].only), name
        return ELSEWHERE.get((track, name), track), name

    def numbers(self, track: str, clock: str = JUDGING, margin: float = MARGIN) -> pd.DataFrame:
        """A row for each measure and rival, as `decide` gives them."""
        tables = [
            decide(pairs(self, track, *each, clock), margin).reset_index().assign(measure=each[0])
            for each in self.measures
        ]
        return pd.concat(tables, ignore_index=True)

    def missing(self, track: str) -> list[str]:
        """The groups of a track with too few seeds for an interval, without which there is no verdict."""
        groups = dict.fromkeys(self.group(track, name)[0] for name in (self.first, *self.rivals))
        return [group for group in groups if len(stored_seeds(self.plan, group)) < FEWEST_SEEDS]

    def verdict(self, track: str, clock: str = JUDGING, margin: float = MARGIN, word: str = "verdict") -> Verdict:
        """The worst of its rivals and measures; with the word "much", that on a factor of two."""
        return worst(self.numbers(track, clock, margin)[word])

    def clocks(self) -> list[str]:
        """The readings of the clock that are there; the runs have always recorded their own."""
        return [clock for clock in CLOCKS if clock in self.plan.file.clock or clock == CLOCKS[-1]]

    def marks(self, track: str, word: str = "verdict") -> str:
        """What has to be said beside a verdict, in the letters of MARKS."""
        said = {
            "r": track == "stated" and bool({self.first, *self.rivals} & READ[self.experiment]),
            "c": len({self.verdict(track, clock, word=word) for clock in self.clocks()}) > 1,
            "m": bool(self.numbers(track)[["missed", "rival_missed"]].to_numpy().any()),
        }
        return "".join(mark for mark, holds in said.items() if holds)

    def runs_hash(self, track: str) -> str:
        """What names the runs behind a verdict: the hash of their own hashes."""
        hashes = []
        for group, label in (self.group(track, name) for name in (self.first, *self.rivals)):
            stored = stored_runs(self.experiment, group, self.results).values()
            hashes += [run.facts["sha256"] for run in stored if run.key[0] == label]
        return sha256_of("".join(hashes))

    def rules(self, track: str) -> pd.DataFrame:
        """The verdict by every clock (rows) and every margin (columns)."""
        rows = {clock: [self.verdict(track, clock, margin) for margin in MARGINS] for clock in self.clocks()}
        return pd.DataFrame.from_dict(rows, orient="index", columns=[f"{margin:.0%}" for margin in MARGINS])


RIVALS = "PZOBO-S", "F2SA", "F3SA"
SLOWER = "reverse", "SUSTAIN", "MRBO", "VRBO", "BSA"
DELTAS = "delta 0.001", "delta 0.01", "delta 1", "delta 10"
LEADERS = "FMBO", "stocBiO", "AID-FP"


def _written() -> Iterable[Sentence]:
    lenet, fdehbo = (REPRESENTATION, "FdeHBO"), "FdeHBO converges {} than PZOBO-S, F2SA and F3SA"
    yield Sentence("F1", fdehbo.format("faster"), *lenet, RIVALS, (("faster", "upper_loss"),), much=True)
    yield Sentence("F2", fdehbo.format("more stably"), *lenet, RIVALS, (("stable", "upper_loss"),))
    says = "FdeHBO has a higher training accuracy than PZOBO-S, F2SA and F3SA"
    yield Sentence("F3", says, *lenet, RIVALS, (("lower", "upper_error"),))
    both = ("lower", "upper_loss"), ("stable", "upper_loss")
    yield Sentence("F4", "momentum reduces the variance of FdeHBO", *lenet, (OFF,), both, axis="step")
    says, one = "finite differences can be sensitive to delta", (("lower", "upper_loss"),)
    yield Sentence("D1", says, REPRESENTATION, PAPER_DELTA, DELTAS, one, tracks=("stated",))
    for leader in LEADERS:
        for name, how, measure in (("C1", "faster", "faster"), ("C2", "more stably", "stable")):
            says, loss = f"{leader} converges {how} than five others", ((measure, "test_loss"),)
            yield Sentence(f"{name}, {leader}", says, CLEANING, leader, SLOWER, loss, much=name == "C1")
    fmbo, lower = (CLEANING, "FMBO"), ("lower", "train_loss")
    yield Sentence("C3", "FMBO has a lower training loss than stocBiO and AID-FP", *fmbo, LEADERS[1:], (lower,))
    yield Sentence("C4", "momentum makes FMBO effective", *fmbo, (OFF,), (lower,), axis="step")
    says, both = "FMBO is faster and ends lower than FSLA and SOBA", (("faster", "train_loss"), lower)
    yield Sentence("C5", says, *fmbo, ("FSLA", "SOBA"), both)


SENTENCES = {each.id: each for each in _written()}


def sentence(identifier: str, results: Path = RESULTS) -> Sentence:
    """The sentence "C3", or "C1, FMBO" where several methods are praised."""
    if identifier not in SENTENCES:
        raise ValueError(f"no sentence {identifier!r}; there are {'; '.join(SENTENCES)}")
    return replace(SENTENCES[identifier], results=results)


def against_itself(identifier: str, track: str, results: Path = RESULTS) -> pd.DataFrame:
    """What `decide` says of the first method of a sentence and itself with other seeds, on every measure."""
    asked = sentence(identifier, results)
    measures = tuple((measure, asked.measures[0][1]) for measure in MEASURES)
    return replace(asked, rivals=(AGAIN,), measures=measures).numbers(track)


@cache
def _plan(experiment: str, results: Path) -> Plan:
    return Plan(load(experiment), SIZE, results)


@cache
def pairs(asked: Sentence, track: str, measure: str, metric: str, clock: str = JUDGING) -> dict[str, Pair]:
    """The first method of a sentence against each rival."""
    levels = levels_of(metric) if measure == "faster" else NO_LEVELS
    found = {}
    for rival in asked.rivals:
        places = [asked.group(track, name) for name in (asked.first, rival)]
        tables = (timed_runs(asked.plan, group, clock).query("label == @label") for group, label in places)
        first, other = (curves(table, metric, asked.axis) for table in tables)
        if rival == AGAIN:  # nothing but the order pairs them, and one of the groups may have fewer seeds so far
            other = dict(zip(first, other.values(), strict=False))
        ends = (curve.at[-1] for own in (first, other) for curve in own.values() if not curve.diverged)
        budget = min([*(_limit(asked.plan, *place, asked.axis) for place in places), *ends])
        found[rival] = compare(first, other, measure, budget, levels)
    return found


def _limit(plan: Plan, group: str, label: str, axis: str) -> float:
    """The budget of a group in seconds, or in the steps that the judging clock gives for them."""
    seconds = plan.groups[group].seconds
    costs = plan.file.clock[JUDGING]["costs"][plan.groups[group].priced_as(label)]
    return float(steps_within(costs, seconds) if axis == "step" else seconds)


def stored_seeds(plan: Plan, group: str) -> list[int]:
    """The seeds of a group on which the runs of all its methods are stored."""
    missing = {run.seed for run in plan.missing(group)}
    return [seed for seed in plan.groups[group].seeds if seed not in missing]


def seeds_to_come(experiment: str, groups: Iterable[str], results: Path = RESULTS) -> str:
    """What has to be said of groups of which not all seeds are stored; nothing if there are none."""
    plan = _plan(experiment, results)
    counts = {name: (len(stored_seeds(plan, name)), len(plan.groups[name].seeds)) for name in groups}
    told = [f"`{name}` {stored} of {planned}" for name, (stored, planned) in counts.items() if stored < planned]
    return f"Not all planned runs have been made. Seeds so far: {', '.join(told)}." if told else ""


@cache
def timed_runs(plan: Plan, group: str, clock: str = JUDGING) -> pd.DataFrame:
    """The runs of a group with the column seconds by a reading of the clock; "recorded": what each run took itself."""
    if len(seeds := stored_seeds(plan, group)) < FEWEST_SEEDS:
        raise FileNotFoundError(plan.told(group, plan.missing(group)))
    table = with_ends(plan.file.name, group, plan.results)
    table = table[table.seed.isin(seeds)]
    if clock == CLOCKS[-1]:
        facts = stored_runs(plan.file.name, group, plan.results)
        cost = {key: run.facts["cpu_seconds"] / run.facts["steps"] for key, run in facts.items()}
        keys = zip(table.label, table.seed, strict=True)
        seconds = [step * cost[key] for step, key in zip(table.step, keys, strict=True)]
        return table.assign(seconds=seconds)
    costs, priced_as = plan.file.clock[clock]["costs"], plan.groups[group].priced_as
    parts = [own.assign(seconds=seconds_at(costs[priced_as(label)], own.step)) for label, own in table.groupby("label")]
    return pd.concat(parts).sort_index()


def runs_on(experiment: str, track: str, results: Path = RESULTS) -> pd.DataFrame:
    """The runs of all methods on a track, in the order of the groups."""
    plan = _plan(experiment, results)
    groups = [track, *(group for (own, _), group in ELSEWHERE.items() if own == track and group in plan.groups)]
    return pd.concat([timed_runs(plan, group) for group in groups], ignore_index=True)


def curves(runs: pd.DataFrame, metric: str, axis: str = "seconds") -> Curves:
    """The runs of one method by seed; an error is 1 - accuracy."""
    if metric.endswith("error"):
        runs = runs.assign(**{metric: (1 - runs[metric.replace("error", "accuracy")]).clip(lower=HALF_AN_IMAGE)})
    return {
        int(str(seed)): Curve(run[axis].to_numpy(float), run[metric].to_numpy(float), run.stop.iloc[0] == "diverged")
        for seed, run in runs.dropna(subset=[metric]).groupby("seed")
    }


def scoreboard(identifiers: Iterable[str], results: Path = RESULTS) -> pd.DataFrame:
    """A row for each sentence: its verdicts with their marks, and the ratio to the rival that decides, as stated."""
    rows = {}
    for asked in (sentence(name, results) for name in identifiers):
        number = ""
        if not asked.missing("stated"):
            last = deciding(asked.numbers("stated"))
            number = f"{last.ratio:.2f} ({last.low:.2f} to {last.high:.2f}), {last.measure}, {last.rival}"
        claim = asked.says.split(" than ")[0].rstrip(",")  # the rivals stand in the paper's sentence
        rows[asked.id] = {"claim": claim} | _words(asked, "verdict") | {"number": number}
        if asked.much:
            rows[f"{asked.id}, much"] = {"claim": "... by a factor of two"} | _words(asked, "much") | {"number": ""}
    return pd.DataFrame.from_dict(rows, orient="index")


def _words(asked: Sentence, word: str) -> dict[str, str]:
    """The verdict and its marks on each track, or that its runs are still to come."""
    words = dict.fromkeys(TRACKS.values(), "")
    for track in asked.tracks:
        if asked.missing(track):
            words[TRACKS[track]] = TO_COME
        else:
            verdict, marks = asked.verdict(track, word=word), asked.marks(track, word)
            words[TRACKS[track]] = f"{verdict} [{marks}]" if marks else str(verdict)
    return words


def deciding(numbers: pd.DataFrame) -> pd.Series:
    """Of the rivals with the last verdict in the order of the protocol the one that is furthest ahead."""
    return numbers[numbers.verdict == worst(numbers.verdict)].sort_values("ratio").iloc[-1]
