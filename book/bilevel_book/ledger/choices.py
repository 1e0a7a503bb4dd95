"""The assumptions ledger: every choice that the paper leaves open, the value taken here, and what another one changes.

The choices stand in choices.toml. Values are templates, `text {name: argument, argument} text`, filled in by functions
of values.py; effects are measured by functions of effects.py on the stored runs in which one thing was changed.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bilevel_book.ledger import effects, values
from bilevel_book.ledger.evidence import Evidence
from bilevel_book.ledger.files import call, read_entries

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


def taken(evidence: Evidence, path: Path = FILE) -> list[Choice]:
    """Every choice with its value and its effect."""
    return [_taken(entry, vars(evidence)) for entry in read_entries(path)]


def _taken(entry: dict[str, Any], tables: dict[str, Any]) -> Choice:
    lines = tuple(line for effect in entry.get("effects", ()) for line in _effect(effect, tables))
    value = re.sub(r"\{([^}]*)\}", lambda found: _value(found[1], tables), entry["value"])
    return Choice(**entry | {"value": value, "effects": lines, "chapters": tuple(entry.get("chapters", ()))})


def _value(template: str, tables: dict[str, Any]) -> str:
    """What stands for `name: argument, argument`."""
    name, _, arguments = template.partition(":")
    return call(vars(values)[name], tables, *(given.strip() for given in arguments.split(",") if given))


def _effect(given: str | dict[str, Any], tables: dict[str, Any]) -> tuple[str, ...]:
    """The lines of an effect, given by its name or by a table with the name and the arguments."""
    options = {"effect": given} if isinstance(given, str) else dict(given)
    return call(vars(effects)[options.pop("effect")], tables, **options)
