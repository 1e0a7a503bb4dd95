"""The marks on the tests name what is there, and what can be tested is tested."""

from bilevel_book import checks
from bilevel_book.ledger import PASSAGES
from bilevel_book.theory.table import STATEMENTS

IDS = [passage.id for passage in PASSAGES]
UNDECIDABLE = {"no_run_decides", "came_first"}  # judges that look at nothing
ONLY_IN_A_CHAPTER = {"introduction:f2sa-f3sa-samples", "contributions:margin"}  # stored runs decide, Chapter 14 shows


def test_every_mark_names_a_passage_or_a_statement():
    known = {*IDS, *(statement.label for statement in STATEMENTS)}
    assert set(checks.checked_by()) - known == set()


def test_no_passage_has_the_name_of_a_statement():
    assert set(IDS) & {statement.label for statement in STATEMENTS} == set()


def test_every_passage_that_can_be_decided_has_a_test():
    def can_be_decided(passage):
        return {call.function.__name__ for call, _ in passage.judges} - UNDECIDABLE

    without = {passage.id for passage in PASSAGES if can_be_decided(passage) and not passage.tests}
    assert without == ONLY_IN_A_CHAPTER
    assert all(passage.chapters for passage in PASSAGES if passage.id in without)


def test_marks_are_read_from_the_files(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "test_it.py").write_text(
        'import pytest\n@pytest.mark.checks("a:b", "c:d")\n@pytest.mark.slow\ndef test_this(): pass\n'
        '@pytest.mark.checks("a:b")\ndef test_that(): pass\ndef test_other(): pass\n'
    )
    monkeypatch.setattr(checks, "TESTS", tmp_path)
    checks.checked_by.cache_clear()
    try:
        assert checks.checked_by() == {
            "a:b": ("deep/test_it.py::test_this", "deep/test_it.py::test_that"),
            "c:d": ("deep/test_it.py::test_this",),
        }
    finally:
        checks.checked_by.cache_clear()
