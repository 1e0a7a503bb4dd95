"""The assumptions ledger: every choice that the paper leaves open, the value taken here, and what another one changes.

The choices stand in choices.toml. Values are templates, filled from the experiments' files and from the methods;
effects are measured on the stored runs in which one thing was changed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from bilevel_book.experiments.files import at
from bilevel_book.ledger import files
from bilevel_book.ledger.effects import effect
from bilevel_book.ledger.evidence import Evidence
from bilevel_book.ledger.registry import Call
from bilevel_book.ledger.values import value

FILE = Path(__file__).with_name("choices.toml")
KEYS = {"what": str, "section": str, "value": str, "why": str}
OPTIONAL = {"effects": list, "chapters": list}


@dataclass(frozen=True)
class Choice:
    """What is left open, the value taken, why, and the measured effect of other values, in lines."""

    section: str
    what: str
    value: str
    why: str
    effect: tuple[str, ...]
    chapters: tuple[int, ...] = ()


@dataclass(frozen=True)
class OpenChoice:
    """A choice whose value and effect are not filled in yet."""

    section: str
    what: str
    value: tuple[str | Call, ...]  # text and what is put between
    why: str
    effects: tuple[Call, ...]
    chapters: tuple[int, ...] = ()

    def taken(self, evidence: Evidence) -> Choice:
        tables = vars(evidence)
        text = "".join(part if isinstance(part, str) else part(tables) for part in self.value)
        lines = tuple(line for call in self.effects for line in call(tables))
        return Choice(self.section, self.what, text, self.why, lines, self.chapters)


def load(path: Path = FILE) -> tuple[tuple[str, ...], tuple[OpenChoice, ...]]:
    """The sections of a file and its choices; every function that it names exists, and none is left over."""
    sections, entries = files.read(path, "choice", KEYS, OPTIONAL)
    found = tuple(_choice(path, entry) for entry in entries)
    with at(path.name):
        value.refuse_unused([part for choice in found for part in choice.value if isinstance(part, Call)])
        effect.refuse_unused([call for choice in found for call in choice.effects])
    return sections, found


def _choice(path: Path, entry: dict[str, Any]) -> OpenChoice:
    with at(f"{path.name}, {entry['what']}, value"):
        parts = tuple(_parts(entry["value"]))
    with at(f"{path.name}, {entry['what']}, effects"):
        calls = tuple(effect.call(given) for given in entry.get("effects", ()))
    chapters = tuple(entry.get("chapters", ()))
    return OpenChoice(entry["section"], entry["what"], parts, entry["why"], calls, chapters)


def _parts(template: str) -> Iterator[str | Call]:
    """`text {name: argument, argument} text`: the texts, and a call of each name."""
    for text, name, arguments, _ in Formatter().parse(template):
        yield text
        if name is not None:
            yield value.call(name, *(given.strip() for given in arguments.split(",") if given))


SECTIONS, OPEN = load()


def taken(evidence: Evidence) -> list[Choice]:
    """Every choice with its value and its effect."""
    return [choice.taken(evidence) for choice in OPEN]
