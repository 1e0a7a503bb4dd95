"""How many calls a bilevel method needs to make ||grad Phi|| small, under which assumptions: `complexity.toml` as data.

Two conventions are in use. The norm: ||grad Phi|| <= eps. Its square, as in the paper: ||grad Phi||^2 <= eps. What
costs eps^-e in the first costs eps^-(e/2) in the second, since there eps stands for the square of an accuracy.
"""

import re
import tomllib
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

FILE = Path(__file__).with_suffix(".toml")


class Method(NamedTuple):
    """An upper bound: what a method is proved to need."""

    name: str
    upper: str
    source: str
    read: str


class Setting(NamedTuple):
    """What may be asked for and assumed, what no method can do without, and what methods need."""

    oracle: str
    assumes: str
    lower: str
    source: str
    read: str
    methods: tuple[Method, ...]


@cache
def settings() -> tuple[Setting, ...]:
    """Every setting of `complexity.toml`, in its order."""
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["setting"]
    return tuple(Setting(**row | {"methods": tuple(Method(**method) for method in row["methods"])}) for row in rows)


def exponent(words: str, p: int | None = None) -> float:
    """The number that "4 + 2/p" is at an order p."""
    whole, _, over = words.partition(" + ")
    if over and p is None:
        raise ValueError(f"{words!r} depends on the order p: give one")
    return float(whole) + (float(over.removesuffix("/p")) / p if over and p else 0.0)


def squared(words: str) -> str:
    """The exponent in the convention of the square, of one in that of the norm: half of every number."""
    return re.sub(r"\d+", lambda number: str(Fraction(int(number[0]), 2)), words)


def table() -> pd.DataFrame:
    """A row for each method, the bound that none can beat beside it, in both conventions."""
    rows = [
        {
            "may ask for": setting.oracle,
            "assumes": setting.assumes,
            "method": method.name,
            "‖∇Φ‖ ≤ ε": f"ε^-({method.upper})",
            "‖∇Φ‖² ≤ ε": f"ε^-({squared(method.upper)})",
            "lower bound": f"ε^-({setting.lower})",
        }
        for setting in settings()
        for method in setting.methods
    ]
    return pd.DataFrame(rows).set_index("method")
