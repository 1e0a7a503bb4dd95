"""What the front page says about the paper follows from verdicts, and changes when they change."""

import pytest

from bilevel_book.findings import FINDINGS, Finding
from bilevel_book.ledger import PASSAGES
from bilevel_book.ledger.claim import Claim
from bilevel_book.ledger.claims import Passage
from bilevel_book.verdicts import Verdict

FINDING = Finding("the tests", ["Here"], "Most hold.", "Some hold.", "Few hold.", "Open.", "here:best")
HOLDS, ALIKE, FAILS, UNDECIDED, UNTESTABLE = Verdict


def ledger(*verdicts, section="Here", passage="here:first", word="claim", apart="", numbers="{}.5"):
    claims = [Claim(f"{word} {k}", "", numbers.format(k), verdict, apart) for k, verdict in enumerate(verdicts)]
    return [(Passage(section, passage, "", "", ()), claims)]


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([HOLDS] * 3 + [FAILS], "**Most hold.** 3 of 4 claims about the tests hold, 1 do not."),
        ([HOLDS, FAILS], "**Some hold.** 1 of 2"),
        ([HOLDS, FAILS, FAILS], "**Few hold.** 1 of 3"),
        ([HOLDS, UNTESTABLE, UNDECIDED], "**Open.** 1 of 3"),
        ([HOLDS, ALIKE, ALIKE, UNDECIDED], "**Few hold.** 1 of 4 claims about the tests hold, 0 do not, 2 found no"),
    ],
)
def test_the_headline_follows_the_verdicts(verdicts, said):
    assert FINDING.markdown(ledger(*verdicts)).startswith(said)


def test_a_failed_claim_is_told_with_its_number():
    rows = ledger(HOLDS, FAILS, FAILS)
    assert FINDING.markdown(rows).endswith("One that does not: “claim 1” (found: 1.5).")
    best = ledger(HOLDS, FAILS, passage="here:best", word="best claim", numbers="1.5, " * 30)
    assert FINDING.markdown(rows + best).endswith("One that does not: “best claim 1”.")


def test_only_counted_claims_of_its_sections_count_once():
    rows = ledger(HOLDS) + ledger(HOLDS, passage="here:again")
    rows += ledger(FAILS, section="There", word="other")
    rows += ledger(HOLDS, word="code", apart="about this book's code")
    assert "1 of 1 claims" in FINDING.markdown(rows)


def test_the_findings_share_the_sections_of_the_ledger():
    sections = [section for finding in FINDINGS for section in finding.sections]
    assert sorted(sections) == sorted({passage.section for passage in PASSAGES})
    assert {finding.example for finding in FINDINGS} <= {passage.id for passage in PASSAGES}
