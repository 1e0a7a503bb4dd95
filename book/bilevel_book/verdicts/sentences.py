"""The sentences of the paper that runs decide: sentences.toml, with the runs of both tracks.

A case of `cases("hyper-cleaning")` has the verdict by the rule of the protocol, the numbers behind it, and the verdict
by every other rule, so that a reader can change one.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import product
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd

from bilevel_book.experiments import runs_of
from bilevel_book.experiments.report import REPRESENTATION
from bilevel_book.paths import RESULTS
from bilevel_book.verdicts import paper
from bilevel_book.verdicts.comparison import Sentence, compare
from bilevel_book.verdicts.deciding import MARGIN, Verdict, decide, overall, without_inclusions, worst
from bilevel_book.verdicts.measures import AXES
from bilevel_book.verdicts.selection import LOSS, method_of, scores

FILE = Path(__file__).with_name("sentences.toml")
ON_LENET = [name for name, each in paper.SENTENCES.items() if each.experiment == REPRESENTATION]
TRACKS = {"stated": "as stated", "tuned": "tuned alike"}
MARGINS = (0.02, 0.05, 0.1)
ON_CLEANING = (4.0, 2.0, 1.0, 0.7, 0.5, 0.45, 0.4, 0.35)
LEVELS = {  # for the measure faster
    "test_loss": ON_CLEANING,
    "train_loss": ON_CLEANING,
}
# A method to be compared with itself on an experiment, the metric, and a sentence about both, for its axis; its twins.
ITSELF = {"hyper-cleaning": ("FMBO", "train_loss", "C3")}
TWINS = {"stated": ("main", "again"), "tuned": ("tuned", "again_tuned")}
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
    experiment: str = ""
    _compared: dict[tuple[str, str], list[pd.DataFrame]] = field(default_factory=dict, repr=False, compare=False)

    def _decided(self, track: str, axis: str | None, margin: float) -> list[tuple[Sentence, pd.DataFrame]]:
        chosen = self.tracks[track]
        key = track, axis or chosen.axis
        if key not in self._compared:  # the same for every margin
            self._compared[key] = [compare(chosen.runs, sentence, key[1]) for sentence in chosen.sentences]
        tables = zip(chosen.sentences, self._compared[key], strict=True)
        return [(sentence, decide(table, margin)) for sentence, table in tables]

    def numbers(self, track: str, axis: str | None = None, margin: float = MARGIN) -> pd.DataFrame:
        """A row for each measure, rival and horizon, as `decide` gives them, but for rivals that `first` contains."""
        tables = [
            without_inclusions(table, each).assign(measure=each.measure, metric=each.metric, means=each.means)
            for each, table in self._decided(track, axis, margin)
        ]
        return pd.concat(tables, ignore_index=True)

    def verdict(self, track: str, axis: str | None = None, margin: float = MARGIN) -> Verdict:
        """The worst of its measures. With the margin 1 it is the verdict on "much", by a factor of two."""
        return worst(overall(table, sentence) for sentence, table in self._decided(track, axis, margin))

    @cached_property  # it takes a second
    def rules(self) -> pd.DataFrame:
        """The verdict under every reasonable rule: a row for each track, axis, margin and level (nan: all levels).

        `read` says whether any rival could be read; where none can, for want of rows or of levels, a rule says nothing.
        """
        rows = []
        for name, track in self.tracks.items():
            for sentence, axis in product(track.sentences, AXES):
                for level in (nan, *sentence.levels):
                    chosen = replace(sentence, levels=(level,)) if level in sentence.levels else sentence
                    compared = compare(track.runs, chosen, axis)
                    read = not compared.empty and bool(compared["mean"].notna().any())
                    for margin in MARGINS:
                        rule = {"track": name, "axis": axis, "margin": margin, "level": level}
                        rows.append(rule | {"verdict": overall(decide(compared, margin), sentence), "read": read})
        by_rule = pd.DataFrame(rows).groupby(["track", "axis", "margin", "level"], sort=False, dropna=False)
        return by_rule.agg({"verdict": worst, "read": "any"}).reset_index()

    def stays(self, track: str) -> tuple[int, int]:
        """Under how many of the other rules the verdict of a track is the same, and of how many that can be read."""
        rules, axis = self.rules, self.tracks[track].axis
        own = (rules.track == track) & (rules.axis == axis) & rules.level.isna() & (rules.margin == MARGIN)
        others = rules[~own & rules.read]
        return int((others.verdict == rules.verdict[own].item()).sum()), len(others)


def entries() -> dict[str, dict[str, Any]]:
    """The sentences of the file by id, each with what it shares with the one that it is like."""
    found: dict[str, dict[str, Any]] = {}
    for entry in tomllib.loads(FILE.read_text(encoding="utf-8"))["sentence"]:
        found[entry["id"]] = found.get(entry.pop("like", ""), {}) | entry
    return found


def cases(experiment: str, folder: Path = RESULTS) -> list[Case]:
    """The sentences about an experiment, one for each method that is praised, in the order of the file."""
    return [case(name, folder) for name, (entry, _) in _asked().items() if entry["experiment"] == experiment]


def case(identifier: str, folder: Path = RESULTS) -> Any:
    """The sentence "C3", or "C1, FMBO" where several methods are praised; of those on LeNet, as `paper` has it."""
    if identifier in ON_LENET:
        return paper.sentence(identifier, folder)
    if identifier not in (asked := _asked()):
        raise ValueError(f"no sentence {identifier!r}; there are {'; '.join([*ON_LENET, *asked])}")
    entry, first = asked[identifier]
    entry = entry | {"says": entry["says"].format(first=first)}
    found = {track: _track(entry, track, first, folder) for track in TRACKS if track in entry}
    return Case(identifier, entry["says"], first, found, entry["experiment"])


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
        _runs(entry["experiment"], own.get("names", {}).get(name, [f"{group}.{name}"]), folder, name)
        for name in (first, *rivals)
        if name not in untestable
    ]
    means, contains = entry.get("means", "ahead"), tuple(own.get("contains", ()))
    sentences = []
    for measure, metric in entry["measures"]:
        levels = LEVELS[metric] if measure == "faster" else ()
        resolution = HALF_AN_IMAGE if metric.endswith("error") else 1e-6
        asked = entry["says"], first, rivals, measure, metric, levels, means, untestable, contains, resolution
        sentences.append(Sentence(*asked))
    return Track(pd.concat(runs, ignore_index=True), own["axis"], tuple(sentences))


def _runs(experiment: str, readings: list[str], folder: Path, name: str) -> pd.DataFrame:
    """The runs "group.label" under a name; of several readings of a method, those with the lower selection loss."""
    if len(readings) > 1:
        trials = pd.concat([complete(experiment, group, folder) for group in ("tuning", "finals")])
        score = scores(trials, LOSS)
        lowest = score.groupby(score.index.map(method_of)).min()
        readings = sorted(readings, key=lambda reading: float(lowest[reading.split(".", 1)[1]]))
    group, label = readings[0].split(".", 1)
    table = complete(experiment, group, folder)
    return table[table.label == label].assign(label=name)


@cache
def complete(experiment: str, group: str, folder: Path = RESULTS) -> pd.DataFrame:
    """All runs of a group, read once."""
    return runs_of(experiment, group, folder)


def against_itself(experiment: str, track: str) -> pd.DataFrame:
    """What `decide` says of a method and the same method with other seeds, data and starts, on every measure."""
    (method, metric, sentence), (group, twin) = ITSELF[experiment], TWINS[track]
    ours, theirs = complete(experiment, group).query("label == @method"), complete(experiment, twin)
    pairs = dict(zip(sorted(set(theirs.seed)), sorted(set(ours.seed)), strict=True))  # nothing but the order pairs them
    runs = pd.concat([ours, theirs.assign(label="itself", seed=theirs.seed.map(pairs))], ignore_index=True)
    found = []
    for measure in ("faster", "lower", "stable"):
        levels = LEVELS[metric] if measure == "faster" else ()
        asked = Sentence("A/A", method, ("itself",), measure, metric, levels)
        found.append(decide(compare(runs, asked, entries()[sentence][track]["axis"])).assign(measure=measure))
    return pd.concat(found, ignore_index=True)
