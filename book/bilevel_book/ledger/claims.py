"""The claims ledger: passages of the paper in its own words, in claims.toml, and what is found about each.

A passage names the judges of its claims. Each looks at the evidence and returns the measure, the numbers and the
verdict; nothing in the file says in advance what a verdict will be.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from bilevel_book.checks import checked_by
from bilevel_book.experiments.files import at
from bilevel_book.labels import CLEANING, REPRESENTATION
from bilevel_book.ledger import cleaning, counts, files, lemmas, rates, representation, sentences, undecidable
from bilevel_book.ledger.claim import Claim, Verdict
from bilevel_book.ledger.evidence import Evidence
from bilevel_book.ledger.registry import Call, judge
from bilevel_book.verdicts.sentences import Case, case

FILE = Path(__file__).with_name("claims.toml")
KEYS = {"id": str, "section": str, "where": str, "quote": str, "judges": list}
OPTIONAL = {"chapters": list}
# Imported, so that their judges are known.
JUDGED_IN = (cleaning, counts, lemmas, rates, representation, sentences, undecidable)


@dataclass(frozen=True)
class Passage:
    """A sentence of the paper, or the part of it that can be checked, and who checks it."""

    id: str
    section: str
    where: str  # in the paper
    quote: str
    judges: tuple[tuple[Call, str], ...]  # each with the place of its claim
    chapters: tuple[int, ...] = ()

    @property
    def tests(self) -> tuple[str, ...]:
        """The names of the tests that are marked with its id."""
        return tuple(test.split("::")[1] for test in checked_by().get(self.id, ()))

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each of its claims, of what claims.toml says about it alone: it stays when others come or go."""
        return tuple(_name(call) for call, _ in self.judges)

    def claims(self, **tables: Any) -> list[Claim]:
        """What is found, from the fields of `Evidence` at which its judges look."""
        return [
            replace(call(tables), where=where, apart=getattr(call.function, "apart", "")) for call, where in self.judges
        ]


def load(path: Path = FILE) -> tuple[tuple[str, ...], tuple[Passage, ...]]:
    """The sections of a file and its passages, all of whose judges exist; and no judge is left over."""
    sections, entries = files.read(path, "passage", KEYS, OPTIONAL)
    passages = tuple(_passage(path, entry) for entry in entries)
    with at(path.name):
        judge.refuse_unused([call for passage in passages for call, _ in passage.judges])
    return sections, passages


def _passage(path: Path, entry: dict[str, Any]) -> Passage:
    if not re.fullmatch(r"[a-z0-9-]+:[a-z0-9-]+", entry["id"]):
        raise ValueError(f"{path.name}, {entry['id']}, id: must be two words of small letters, digits and hyphens, a:b")
    with at(f"{path.name}, {entry['id']}, judges"):
        calls = tuple(_call(given, entry["where"]) for given in entry["judges"])
    return Passage(**entry | {"judges": calls, "chapters": tuple(entry.get("chapters", ()))})


def _call(given: str | dict[str, Any], where: str) -> tuple[Call, str]:
    """A judge, and the place of its claim where that is more precise than the place of the passage."""
    entry = dict(given) if isinstance(given, dict) else {"judge": given}
    where = entry.pop("where", where)
    return judge.call(entry), where


def _name(call: Call) -> str:
    """The sentence of the protocol, as in "F3", or the judge, with what it is given but for its reasons."""
    if call.function is sentences.as_stated:
        return str(call.options["sentence"])
    given = [str(value) for key, value in call.options.items() if key != "reason"]
    words = [call.function.__name__, *given]
    return " ".join(reversed(words) if "sentence" in call.options else words)


SECTIONS, PASSAGES = load()
FIGURES = {  # the passage about the figure of an experiment, and the field of `Evidence` with its runs
    REPRESENTATION: ("experiments:figure-1", "representation"),
    CLEANING: ("experiments:figure-2", "cleaning"),
}


def judged(evidence: Evidence) -> list[tuple[Passage, list[Claim]]]:
    """Every passage with its claims, in the order of the paper."""
    return [(passage, passage.claims(**vars(evidence))) for passage in PASSAGES]


def of_experiment(experiment: str, table: pd.DataFrame, case: Callable[[str], Case] = case) -> list[Claim]:
    """The claims of the paper about the figure of an experiment, from its runs and the protocol's sentences."""
    if experiment not in FIGURES:
        raise ValueError(f"the paper has no figure of {experiment!r}; it has those of {', '.join(FIGURES)}")
    identifier, name = FIGURES[experiment]
    passage = next(passage for passage in PASSAGES if passage.id == identifier)
    return passage.claims(**{name: table, "case": case})


def tally(ledger: list[tuple[Passage, list[Claim]]]) -> dict[Verdict, int]:
    """How many different claims have each verdict, but for those that are shown apart."""
    verdicts = Counter(claim.verdict for claim in different(ledger) if not claim.apart)
    return {verdict: verdicts[verdict] for verdict in Verdict}


def different(ledger: list[tuple[Passage, list[Claim]]]) -> dict[Claim, tuple[Passage, int]]:
    """The claims, each once, though the paper may say it in several places: the first passage, and its number there."""
    first: dict[Claim, tuple[Passage, int]] = {}
    for passage, claims in ledger:
        for i, claim in enumerate(claims):
            first.setdefault(replace(claim, where=""), (passage, i))
    return first
