"""Bad inputs, one row each in `inputs/*.toml`: an error of a clear type, before any work, that says what is wrong.

[raises] has rows  given = [do, words, ...]:  the input in words, Python that gives it, and words of its ValueError. A
[[row]] has these by name, `says` for the words, perhaps with `raises` for another type, or `warns` for words of one
sentence in the warnings of the result. `setup`, of a row or a file, is Python that runs before.
"""

import ast
import tomllib
from pathlib import Path

import pytest

NAMES = """
import math
import numpy as np
import pandas as pd
import torch
from bilevel_core import *
from bilevel_core.counting import *
from bilevel_book.mnist.data import *
from bilevel_book.mnist import *
from bilevel_core.directions import *
from bilevel_core.problems import *
from bilevel_core.schedules import *
from bilevel_core.problem import *
from bilevel_book.methods import *
"""
FILES = sorted((Path(__file__).parent / "inputs").glob("*.toml"))
TABLES = {path.stem: tomllib.loads(path.read_text()) for path in FILES}
ROWS = [
    pytest.param(table.get("setup", ""), row, id=f"{name}: {row['given']}")
    for name, table in TABLES.items()
    for row in (
        *({"given": given, "do": do, "says": says} for given, (do, *says) in table.get("raises", {}).items()),
        *table.get("row", []),
    )
]


def outcome(source: str, names: dict):
    """Run statements; the value of the last one, if it is an expression."""
    *statements, last = ast.parse(source).body
    exec(compile(ast.Module(statements, []), "do", "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "do", "eval"), names)
    return exec(compile(ast.Module([last], []), "do", "exec"), names)


@pytest.mark.parametrize(("setup", "row"), ROWS)
def test_invalid_input_raises(setup, row, tmp_path):
    names = {"__name__": "inputs", "folder": tmp_path}
    exec(NAMES + setup + "\n" + row.get("setup", ""), names)
    if "warns" in row:
        assert any(row["warns"] in sentence for sentence in outcome(row["do"], names).warnings)
        return
    with pytest.raises(Exception, match=r"(?s).*") as caught:  # any: a raw one is shown below
        outcome(row["do"], names)
    assert type(caught.value).__name__ == row.get("raises", "ValueError"), repr(caught.value)
    words = [row["says"]] if isinstance(row["says"], str) else row["says"]
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)
