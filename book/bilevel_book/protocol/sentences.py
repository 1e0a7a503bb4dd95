"""The sentences of the paper that runs decide: sentences.toml, with the runs of both tracks.

for case in cases("hyper-cleaning"):
    case.verdict("stated")             the word by the rule of the protocol
    case.numbers("stated")             the comparisons behind it
    case.rules()                       the word by every other rule, so that a reader can change one
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from bilevel_book.experiments import runs_of as runs_of_group
from bilevel_book.paths import RESULTS
from bilevel_book.protocol.comparison import Sentence, compare
from bilevel_book.protocol.robustness import robustness, stays
from bilevel_book.protocol.selection import LOSS, method_of
from bilevel_book.protocol.tuning import scores
from bilevel_book.protocol.verdict import MARGIN, Verdict, decide, overall, without_inclusions, worst

FILE = Path(__file__).with_name("sentences.toml")
TRACKS = {"stated": "as stated", "tuned": "tuned alike"}
HALF_AN_IMAGE = 1 / 6000  # errors are shares of 3000 images


@dataclass(frozen=True)
class Track:
    """What decides a sentence on one track: the runs, the home axis, and a sentence for each measure."""

    runs: pd.DataFrame
    axis: str
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True)
class Case:
    """One sentence of the paper about one method."""

    id: str
    says: str
    first: str
    tracks: Mapping[str, Track]
    _compared: dict[tuple[str, str], list[pd.DataFrame]] = field(default_factory=dict, repr=False, compare=False)

    def _decided(self, track: str, axis: str | None, margin: float) -> list[tuple[Sentence, pd.DataFrame]]:
        chosen = self.tracks[track]
        key = track, axis or chosen.axis
        if key not in self._compared:  # the same for every margin
            self._compared[key] = [compare(chosen.runs, sentence, key[1]) for sentence in chosen.sentences]
        return [
            (each, decide(table, margin)) for each, table in zip(chosen.sentences, self._compared[key], strict=True)
        ]

    def numbers(self, track: str, axis: str | None = None, margin: float = MARGIN) -> pd.DataFrame:
        """A row for each measure, rival and horizon, as `decide` gives them, but for rivals that `first` contains."""
        tables = [
            without_inclusions(table, each).assign(measure=each.measure, metric=each.metric, means=each.means)
            for each, table in self._decided(track, axis, margin)
        ]
        return pd.concat(tables, ignore_index=True)

    def verdict(self, track: str, axis: str | None = None, margin: float = MARGIN) -> Verdict:
        """The worst of its measures. With the margin 1 it is the word on "much", by a factor of two."""
        return worst(overall(table, sentence) for sentence, table in self._decided(track, axis, margin))

    def rules(self) -> pd.DataFrame:
        """A row for each track, axis, margin and level (nan: all levels), with its verdict."""
        return self._rules

    @cached_property
    def _rules(self) -> pd.DataFrame:  # which takes a second
        table = robustness({name: (track.runs, track.sentences) for name, track in self.tracks.items()})
        by_rule = table.groupby(["track", "axis", "margin", "level"], sort=False, dropna=False)
        return by_rule.agg({"verdict": worst, "read": "any"}).reset_index().assign(sentence=self.id)

    def stays(self, track: str) -> tuple[int, int]:
        """Under how many of the other rules the verdict of a track is the same, and of how many that can be read."""
        row = stays(self.rules(), track, self.tracks[track].axis).loc[self.id]
        return int(row.stays), int(row.of)


def entries() -> dict[str, dict[str, Any]]:
    """The sentences of the file by id, each with what it shares with the one that it is like."""
    content = tomllib.loads(FILE.read_text())
    found: dict[str, dict[str, Any]] = {}
    for entry in content["sentence"]:
        found[entry["id"]] = found.get(entry.pop("like", ""), {}) | entry
    levels = content["levels"]
    return {
        name: entry | {"measures": [(measure, metric, levels.get(metric, ())) for measure, metric in entry["measures"]]}
        for name, entry in found.items()
    }


def cases(experiment: str, folder: Path = RESULTS, tracks: Iterable[str] = tuple(TRACKS)) -> list[Case]:
    """The sentences about an experiment, one for each method that is praised, in the order of the file."""
    return [case(name, folder, tracks) for name, (entry, _) in _asked().items() if entry["experiment"] == experiment]


def case(identifier: str, folder: Path = RESULTS, tracks: Iterable[str] = tuple(TRACKS)) -> Case:
    """The sentence "C3", or "C1, FMBO" where several methods are praised."""
    if identifier not in (asked := _asked()):
        raise ValueError(f"no sentence {identifier!r}; there are {'; '.join(asked)}")
    entry, first = asked[identifier]
    entry = entry | {"says": entry["says"].format(first=first)}
    found = {track: _track(entry, track, first, folder) for track in tracks if track in entry}
    return Case(identifier, entry["says"], first, found)


def _asked() -> dict[str, tuple[dict[str, Any], str]]:
    """The entries, with one of the methods that each praises, by the names of the cases."""
    return {
        name if len(entry["first"]) == 1 else f"{name}, {first}": (entry, first)
        for name, entry in entries().items()
        for first in entry["first"]
    }


def _track(entry: dict[str, Any], track: str, first: str, folder: Path) -> Track:
    own, rivals = entry[track], tuple(entry["rivals"])
    untestable, group = own.get("untestable", {}), own.get("groups", {}).get(first, own["group"])
    runs = [
        runs_of(entry["experiment"], own.get("names", {}).get(name, [f"{group}.{name}"]), folder, name)
        for name in (first, *rivals)
        if name not in untestable
    ]
    sentences = tuple(
        Sentence(
            entry["says"],
            first,
            rivals,
            measure,
            metric,
            levels=tuple(levels) if measure == "faster" else (),
            means=entry.get("means", "ahead"),
            untestable=untestable,
            contains=tuple(own.get("contains", ())),
            resolution=HALF_AN_IMAGE if metric.endswith("error") else 1e-6,
        )
        for measure, metric, levels in entry["measures"]
    )
    return Track(pd.concat(runs, ignore_index=True), own["axis"], sentences)


def runs_of(experiment: str, readings: list[str], folder: Path, name: str) -> pd.DataFrame:
    """The runs "group.label" under a name; of several readings of a method, those of the better one."""
    group, label = (readings[0] if len(readings) == 1 else _better(experiment, readings, folder)).split(".", 1)
    table = complete(experiment, group, folder)
    return table[table.label == label].assign(label=name)


def _better(experiment: str, readings: list[str], folder: Path) -> str:
    """The reading with the lower score on the selection loss in the finals."""
    trials = pd.concat([complete(experiment, group, folder) for group in ("tuning", "finals")])
    score = scores(trials, LOSS)
    lowest = score.groupby(score.index.map(method_of)).min()
    return min(readings, key=lambda reading: float(lowest[reading.split(".", 1)[1]]))


@cache
def complete(experiment: str, group: str, folder: Path = RESULTS) -> pd.DataFrame:
    """All runs of a group, read once."""
    return runs_of_group(experiment, group, folder)
