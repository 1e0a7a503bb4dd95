"""The assumptions ledger: every choice that the paper leaves open, the value taken here, and what another one changes.

The choices stand in choices.toml. Values are templates, `text {name: argument, argument} text`, filled in by VALUES;
effects are measured by functions of effects.py on the stored runs in which one thing was changed.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from bilevel_book.ledger import effects
from bilevel_book.ledger.evidence import Evidence, call, read_entries
from bilevel_book.ledger.values import VALUES

FILE = Path(__file__).with_name("choices.toml")


@dataclass(frozen=True)
class Choice:
    """What is left open, the value taken, why, and the measured effect of other values, in lines."""

    section: str
    what: str
    value: str
    why: str
    effects: tuple[str, ...] = ()
    chapters: tuple[int, ...] = ()


def taken(evidence: Evidence) -> list[Choice]:
    """Every choice with its value and its effect."""
    tables = vars(evidence)

    def value(template: re.Match[str]) -> str:
        name, _, arguments = template[1].partition(":")
        return call(VALUES[name], tables, *(given.strip() for given in arguments.split(",") if given))

    def lines(given: str | dict[str, str]) -> tuple[str, ...]:
        """Of an effect, given by its name or by a table with the name and the arguments."""
        options = {"effect": given} if isinstance(given, str) else dict(given)
        return call(vars(effects)[options.pop("effect")], tables, **options)

    choices = []
    for entry in read_entries(FILE):
        told = tuple(line for effect in entry.get("effects", ()) for line in lines(effect))
        filled = {"value": re.sub(r"\{([^}]*)\}", value, entry["value"]), "effects": told}
        choices.append(Choice(**entry | filled | {"chapters": tuple(entry.get("chapters", ()))}))
    return choices
