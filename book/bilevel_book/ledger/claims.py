"""The claims ledger: passages of the paper in its own words, in claims.toml, and what is found about each.

A passage names the judges of its claims. Each looks at the evidence and returns the measure, the numbers and the
verdict; nothing in the file says in advance what a verdict will be.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bilevel_book.checks import checked_by
from bilevel_book.experiments.report import CLEANING, REPRESENTATION
from bilevel_book.ledger import counts, experiments, lemmas, rates, sentences
from bilevel_book.ledger.claim import Claim, Printed
from bilevel_book.ledger.evidence import Evidence, call, read_entries
from bilevel_book.verdicts import Verdict
from bilevel_book.verdicts.paper import sentence

FILE = Path(__file__).with_name("claims.toml")
KNOWN = {
    name: each for module in (counts, experiments, lemmas, rates, sentences) for name, each in vars(module).items()
}
PLACES = {  # in the paper, of the passages of a section that say no other
    "Abstract": "Abstract", "Introduction": "Section 1", "Contributions": "Section 1.1", "Algorithms": "Section 2.2",
    "Table 1": "Table 1: samples | batch size | iterations | loops",
}  # fmt: skip
FIGURES = {REPRESENTATION: "experiments:figure-1", CLEANING: "experiments:figure-2"}  # the passages about them


@dataclass(frozen=True)
class Judge:
    """The function that judges a claim, its options in claims.toml, and the place of the claim in the paper."""

    function: Callable[..., Claim]
    options: dict[str, Any]
    where: str

    @property
    def name(self) -> str:
        """The sentence of the protocol, as in "F3", or the function with its options, but for a reason."""
        if self.function is sentences.as_stated:
            return str(self.options["sentence"])
        options = [str(value) for key, value in self.options.items() if key != "reason"]
        words = [self.function.__name__, *options]
        return " ".join(reversed(words) if "sentence" in self.options else words)


@dataclass(frozen=True)
class Passage:
    """A sentence of the paper, or the part of it that can be checked, and who checks it."""

    section: str
    id: str
    where: str  # in the paper
    quote: str
    judges: tuple[Judge, ...]
    chapters: tuple[int, ...] = ()

    @property
    def tests(self) -> tuple[str, ...]:
        """The names of the tests that are marked with its id."""
        return tuple(test.split("::")[1] for test in checked_by().get(self.id, ()))

    def claims(self, **tables: Any) -> list[Claim]:
        """What is found, from the fields of `Evidence` at which its judges look."""
        return [replace(call(each.function, tables, **each.options), where=each.where) for each in self.judges]


def load(path: Path = FILE) -> tuple[Passage, ...]:
    """The passages of a file, all of whose judges exist."""
    passages = []
    for entry in read_entries(path):
        entry.setdefault("where", PLACES.get(entry["section"], ""))
        judges = tuple(judge for given in entry["judges"] for judge in _judges(given, entry))
        passages.append(Passage(**entry | {"judges": judges, "chapters": tuple(entry.get("chapters", ()))}))
    return tuple(passages)


def _judges(given: str | dict[str, Any], entry: dict[str, Any]) -> Iterator[Judge]:
    """One by its name, or a table with the name and the options; or both tracks of several sentences."""
    options = {"where": entry["where"]} | ({"judge": given} if isinstance(given, str) else given)
    where = options.pop("where")
    for name in options.pop("both_tracks", ()):
        yield Judge(sentences.as_stated, {"sentence": name}, where)
        yield Judge(sentences.tuned_alike, {"sentence": name}, where)
    if name := options.pop("judge", None):
        if name not in KNOWN:
            raise ValueError(f"{FILE.name}, {entry['id']}: there is no judge {name!r}")
        yield Judge(KNOWN[name], options, where)


PASSAGES = load()


def judged(evidence: Evidence) -> list[tuple[Passage, list[Claim]]]:
    """Every passage with its claims, in the order of the paper."""
    return [(passage, passage.claims(**vars(evidence))) for passage in PASSAGES]


def of_experiment(experiment: str, case: sentences.Case = sentence) -> list[Claim]:
    """The claims of the paper about the figure of an experiment, from the protocol's sentences."""
    if experiment not in FIGURES:
        raise ValueError(f"the paper has no figure of {experiment!r}; it has those of {', '.join(FIGURES)}")
    passage = next(passage for passage in PASSAGES if passage.id == FIGURES[experiment])
    return passage.claims(case=case)


def tally(ledger: list[tuple[Passage, list[Claim]]]) -> dict[Verdict | Printed, int]:
    """How many different claims have each verdict, but for those that are shown apart."""
    verdicts = Counter(claim.verdict for claim in different(ledger) if not claim.apart)
    return {verdict: verdicts[verdict] for verdict in (*Verdict, *Printed)}


def different(ledger: list[tuple[Passage, list[Claim]]]) -> dict[Claim, tuple[Passage, int]]:
    """The claims, each once, though the paper may say it in several places: the first passage, and its number there."""
    first: dict[Claim, tuple[Passage, int]] = {}
    for passage, claims in ledger:
        for i, claim in enumerate(claims):
            first.setdefault(replace(claim, where=""), (passage, i))
    return first
