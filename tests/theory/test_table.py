"""The list of the paper's statements is complete, and each has functions and tests."""

from importlib import import_module

import pytest

from bilevel_book import checks
from bilevel_book.theory.table import STATEMENTS, STATUS

LABELS = """prop:HFetf prop:hfetR prop:hessian_free_v th:hessianfree co:hftribo th:main Co:complexitytribo lm:boundofv
lm:boundofgradf lm:B lm:3ieq lm:boundofeJH lm:corefunction lm:yy lm:errorf lm:errorg lm:errorR lm:vv lm:mergeV
lm:corefunction_free lm:yy_free lm:errorf_free lm:errorg_free lm:errorR_free lm:vv_free lm:mergeV_free"""


def test_table_lists_every_numbered_statement_once():
    assert sorted(s.label for s in STATEMENTS) == sorted(LABELS.split())


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.label)
def test_statement_has_status_functions_and_tests(statement):
    assert statement.status in STATUS
    assert statement.tests
    assert statement.as_printed or statement.status != "false as printed"
    for name in (*statement.functions, *statement.as_printed):
        module, function = name.split(".")
        assert callable(getattr(import_module(f"bilevel_book.theory.{module}"), function))


def test_marks_with_a_label_of_the_paper_name_a_statement():
    kinds = tuple(f"{label.split(':')[0]}:" for label in LABELS.split())
    assert {label for label in checks.checked_by() if label.startswith(kinds)} == set(LABELS.split())
