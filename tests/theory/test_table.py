"""The list of the paper's statements: complete, with tests for each, and strict about what may stand in it."""

import pytest

from bilevel_book import checks
from bilevel_book.theory.table import STATEMENTS, read

LABELS = """prop:HFetf prop:hfetR prop:hessian_free_v th:hessianfree co:hftribo th:main Co:complexitytribo lm:boundofv
lm:boundofgradf lm:B lm:3ieq lm:boundofeJH lm:corefunction lm:yy lm:errorf lm:errorg lm:errorR lm:vv lm:mergeV
lm:corefunction_free lm:yy_free lm:errorf_free lm:errorg_free lm:errorR_free lm:vv_free lm:mergeV_free"""


def test_the_table_lists_every_numbered_statement_of_the_paper_once():
    assert sorted(s.label for s in STATEMENTS) == sorted(LABELS.split())


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.label)
def test_every_statement_has_a_test_and_a_corrected_one_its_printed_form(statement):
    assert statement.tests
    assert statement.as_printed or statement.status != "corrected"


def test_a_mark_with_a_label_of_the_paper_names_a_statement():
    kinds = tuple(f"{label.split(':')[0]}:" for label in LABELS.split())
    assert {label for label in checks.checked_by() if label.startswith(kinds)} == set(LABELS.split())


GOOD = """
[[statement]]
label = "lm:one"
name = "One"
status = "typo"
purpose = "To be read."
idea = "None."
finding = "None."
functions = ["descent.contraction", "constants.bound"]
"""


def written(folder, text):
    path = folder / "some.toml"
    path.write_text(text)
    return path


def test_a_good_entry_is_read_as_it_stands(tmp_path):
    (statement,) = read(written(tmp_path, GOOD))
    assert (statement.label, statement.finding) == ("lm:one", "None.")
    assert statement.functions == ("descent.contraction", "constants.bound")
    assert statement.as_printed == statement.tests == ()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("purpose", "porpoise", "lm:one: porpoise: unknown key, known are label, name, .*; purpose: missing"),
        ('idea = "None."\n', "", "lm:one: idea: missing$"),
        ('label = "lm:one"\n', "", "statement 1: label: missing$"),
        ('name = "One"', "name = 1", "lm:one: name: a text is needed, got 1"),
        ('"typo"', '"true"', "lm:one: status: 'true' is unknown, known are as printed, typo, corrected"),
        ('"constants.bound"', '"constants.bond"', "lm:one: functions: bilevel_book.theory has no constants.bond"),
        ('"constants.bound"', '"physics.bound"', "lm:one: functions: bilevel_book.theory has no physics.bound"),
        ('"constants.bound"', '"bound"', "lm:one: functions: bilevel_book.theory has no bound"),
        ('["descent.contraction", "constants.bound"]', '"constants.bound"', "lm:one: functions: a list of functions"),
        ("functions", 'as_printed = ["descent.nothing"]\nfunctions', "lm:one: as_printed: .* no descent.nothing"),
    ],
)
def test_an_error_names_the_file_the_label_and_the_key(tmp_path, old, new, words):
    with pytest.raises(ValueError, match=f"^some.toml, {words}"):
        read(written(tmp_path, GOOD.replace(old, new)))


def test_a_label_given_twice_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^some.toml, lm:one: label: given twice$"):
        read(written(tmp_path, GOOD + GOOD))
