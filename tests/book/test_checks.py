"""The marks on the tests name what is there, and what can be tested is tested."""

from bilevel_book import checks
from bilevel_book.ledger import PASSAGES
from bilevel_book.theory.table import STATEMENTS

IDS = [passage.id for passage in PASSAGES]
UNTESTABLE = {"no_run_decides", "came_first"}  # judges that look at nothing
ONLY_IN_A_CHAPTER = {"introduction:f2sa-f3sa-samples", "contributions:margin"}  # stored runs decide, Chapter 14 shows


def test_marks_name_passages_or_statements():
    known = {*IDS, *(statement.label for statement in STATEMENTS)}
    assert set(checks.checked_by()) - known == set()


def test_decidable_passages_have_tests():
    def can_be_decided(passage):
        return {judge.function.__name__ for judge in passage.judges} - UNTESTABLE

    without = {passage.id for passage in PASSAGES if can_be_decided(passage) and not passage.tests}
    assert without == ONLY_IN_A_CHAPTER
    assert all(passage.chapters for passage in PASSAGES if passage.id in without)
