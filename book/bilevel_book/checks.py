"""Which tests check a sentence of the ledger or a statement of the theory: said by marks on the tests, read here.

    @pytest.mark.checks("lm:yy", "contributions:one-product")
    def test_...

The files are parsed, not imported, so that the book can be built without running a test.
"""

import ast
from collections import defaultdict
from functools import cache

from bilevel_book.paths import TESTS


@cache
def checked_by() -> dict[str, tuple[str, ...]]:
    """For each label in a mark, the tests that carry it: `theory/test_lemmas.py::test_name`, in the order of files."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                calls = (mark for mark in node.decorator_list if isinstance(mark, ast.Call))
                marks = (mark for mark in calls if ast.unparse(mark.func) == "pytest.mark.checks")
                for label in (ast.literal_eval(argument) for mark in marks for argument in mark.args):
                    found[label].append(f"{path.relative_to(TESTS).as_posix()}::{node.name}")
    return {label: tuple(names) for label, names in found.items()}
