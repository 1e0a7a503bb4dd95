"""The rows of the table of costs, how they are printed and where they are kept."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd

from bilevel_core.checkpoint import write_atomically
from clock import ROOT

FOLDER = ROOT / "results" / "cost"


@dataclass(frozen=True)
class Row:
    """One measured number. `value` is what the goal is about: a ratio ("x"), or seconds, megabytes, microseconds."""

    part: str
    case: str
    against: str
    value: float
    unit: str = "x"
    at_most: float | None = None  # the goal, where there is one
    ms: float = math.nan  # CPU milliseconds of ours, and of what it is compared with
    against_ms: float = math.nan
    difference: float = math.nan  # of the two answers, relative
    note: str = ""
    work: Mapping[str, float] = field(default_factory=dict)  # what is in it: calls and passes

    @classmethod
    def ratio(
        cls, part: str, case: str, ours: float, against: str, other: float, at_most: float | None = None, **rest: Any
    ) -> "Row":
        """The quotient of two times in seconds."""
        return cls(part, case, against, ours / other, "x", at_most, 1e3 * ours, 1e3 * other, **rest)

    @classmethod
    def missing(cls, part: str, case: str, against: str) -> "Row":
        return cls(part, case, against, math.nan, note="not installed: pip install -r benchmarks/requirements.txt")

    @property
    def met(self) -> str:
        if self.at_most is None or math.isnan(self.value):
            return ""
        return "yes" if self.value <= self.at_most else "NO"


HEADER = "{:27s} {:24s} {:29s} {:>8s} {:3s} {:>5s} {:3s} {:>8s} {:>8s} {:>8s}  {}".format(
    "", "", "against", "value", "", "goal", "met", "ms", "ms", "differ", ""
)


def line(row: Row) -> str:
    words = f"{row.part:27s} {row.case:24s} {row.against:29s} {number(row.value):>8s} {row.unit:3s}"
    goal = f"{number(math.nan if row.at_most is None else row.at_most):>5s} {row.met:3s}"
    times = f"{number(row.ms):>8s} {number(row.against_ms):>8s} {number(row.difference):>8s}"
    return f"{words} {goal} {times}  {row.note}".rstrip()


def number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"


def store(rows: Iterable[Row], name: str, about: dict[str, Any]) -> None:
    flat = ({"met": row.met} | asdict(row) for row in rows)
    keep({name: pd.DataFrame([row | row.pop("work") for row in flat])}, name, about)


def keep(tables: dict[str, pd.DataFrame], name: str, about: dict[str, Any]) -> None:
    """Tables in results/cost, each by its name, and NAME.json that says where and how they were measured."""
    for its_name, table in tables.items():
        write_atomically(FOLDER / f"{its_name}.csv", table.to_csv(index=False, float_format="%.4g").encode())
    write_atomically(FOLDER / f"{name}.json", (json.dumps(about, indent=1) + "\n").encode())
