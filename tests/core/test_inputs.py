"""Bad inputs, one row each in `inputs/*.toml`: an error of a clear type, before any work, that says what is wrong.

A row has `given` (the input in words), `do` (Python that gives it), and `raises` (the type of the error, exactly) with
`says` (words of its message, one or a list), or `warns` (words of one sentence in the warnings of the result that `do`
ends with). `setup`, of a row or a file, is Python that runs before: small problems, say. `folder` is an empty folder.
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
ROWS = [
    pytest.param(table.get("setup", ""), row, id=f"{path.stem}: {row['given']}")
    for path in FILES
    for table in [tomllib.loads(path.read_text())]
    for row in table["row"]
]
AT_LEAST = 150


def outcome(source: str, names: dict):
    """Run statements; the value of the last one, if it is an expression."""
    *statements, last = ast.parse(source).body
    exec(compile(ast.Module(statements, []), "do", "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "do", "eval"), names)
    return exec(compile(ast.Module([last], []), "do", "exec"), names)


@pytest.mark.parametrize(("setup", "row"), ROWS)
def test_what_is_wrong_is_said(setup, row, tmp_path):
    names = {"__name__": "inputs", "folder": tmp_path}
    exec(NAMES + setup + "\n" + row.get("setup", ""), names)
    if "warns" in row:
        sentences = outcome(row["do"], names).warnings
        assert any(row["warns"] in sentence for sentence in sentences), sentences
        return
    words = [row["says"]] if isinstance(row["says"], str) else row["says"]
    with pytest.raises(Exception, match=r"(?s).*") as caught:  # any: a raw one is shown below
        outcome(row["do"], names)
    assert type(caught.value).__name__ == row["raises"], repr(caught.value)
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)


def test_the_rows_are_many_and_each_is_there_once():
    names = [parameters.id for parameters in ROWS]
    assert len(names) == len({*names})
    assert len(names) >= AT_LEAST
