"""What the front page says about the paper follows from verdicts, and changes when they change."""

import pytest

from bilevel_book.findings import FINDINGS, Finding, counted, told
from bilevel_book.ledger import CLAIM_SECTIONS, PASSAGES
from bilevel_book.ledger.claim import Claim, Verdict
from bilevel_book.ledger.claims import Passage, tally

FINDING = Finding("the tests", ["Here"], "Most hold.", "Some hold.", "Few hold.", "Open.", "here:best")


def ledger(*verdicts, section="Here", passage="here:first", word="claim", apart="", numbers="{}.5"):
    claims = [
        Claim(f"{word} {k}", "", numbers.format(k), verdict, where=passage, apart=apart)
        for k, verdict in enumerate(verdicts)
    ]
    return [(Passage(passage, section, "", "", ()), claims)]


@pytest.mark.parametrize(
    ("holds", "fails", "said"), [(4, 0, "Most"), (3, 1, "Most"), (2, 1, "Some"), (1, 1, "Some"), (1, 2, "Few")]
)
def test_the_headline_follows_the_share_that_holds(holds, fails, said):
    row = ledger(*[Verdict.HOLDS] * holds, *[Verdict.FAILS] * fails)
    assert told(FINDING, row).startswith(f"**{said} hold.** {holds} of {holds + fails} claims about the tests hold,")


def test_what_is_not_decided_does_not_hold_either():
    text = told(FINDING, ledger(Verdict.HOLDS, Verdict.UNTESTABLE))
    assert text == "**Some hold.** 1 of 2 claims about the tests hold, 0 do not, and 1 cannot be decided here."
    text = told(FINDING, ledger(Verdict.HOLDS, Verdict.UNTESTABLE, Verdict.UNDECIDED))
    assert text == "**Open.** 1 of 3 claims about the tests hold, 0 do not, and 2 cannot be decided here."
    three_in_five = ledger(*[Verdict.HOLDS] * 3, *[Verdict.UNDECIDED] * 2)
    assert told(FINDING, three_in_five).startswith("**Some hold.**")


def test_few_hold_where_most_of_what_is_decided_does_not():
    undecided = [Verdict.UNDECIDED] * 2
    assert told(FINDING, ledger(Verdict.HOLDS, Verdict.FAILS, *undecided)).startswith("**Some hold.**")
    assert told(FINDING, ledger(Verdict.HOLDS, *[Verdict.FAILS] * 2, *undecided)).startswith("**Few hold.**")


def test_alike_is_decided_and_does_not_hold():
    text = told(FINDING, ledger(Verdict.HOLDS, Verdict.ALIKE, Verdict.ALIKE, Verdict.UNDECIDED))
    assert text.startswith("**Few hold.** 1 of 4 claims about the tests hold, 0 do not, 2 found no difference, and 1 ")


def test_an_example_that_fails_is_told_with_its_number():
    rows = ledger(Verdict.HOLDS, Verdict.FAILS, Verdict.FAILS)
    assert told(FINDING, rows).endswith("One that does not: “claim 1” (found: 1.5).")
    best = ledger(Verdict.HOLDS, Verdict.FAILS, passage="here:best", word="best claim")
    assert told(FINDING, rows + best).endswith("One that does not: “best claim 1” (found: 1.5).")
    best = ledger(Verdict.HOLDS, Verdict.FAILS, passage="here:best", word="best claim", numbers="1.5, " * 30)
    assert told(FINDING, rows + best).endswith("One that does not: “best claim 1”.")


def test_other_sections_and_what_is_shown_apart_do_not_count_and_repeated_claims_count_once():
    rows = ledger(Verdict.HOLDS) + ledger(Verdict.HOLDS, passage="here:again")
    rows += ledger(Verdict.FAILS, section="There", word="other")
    rows += ledger(Verdict.HOLDS, word="code", apart="about this book's code")
    assert "1 of 1 claims" in told(FINDING, rows)


def test_together_the_findings_count_what_the_ledger_counts():
    sections = [finding.sections[0] for finding in FINDINGS]
    rows = [row for section in sections for row in ledger(Verdict.HOLDS, Verdict.FAILS, section=section)]
    rows += ledger(Verdict.UNDECIDED, section=sections[1], word="new")
    found = [len(counted(finding, rows)) for finding in FINDINGS]
    assert found == [2, 1, 0]  # what is repeated counts where it is first
    assert sum(tally(rows).values()) == 3


def test_three_findings_share_the_sections_of_the_ledger():
    assert len(FINDINGS) == 3
    assert sorted(section for finding in FINDINGS for section in finding.sections) == sorted(CLAIM_SECTIONS)
    assert {finding.example for finding in FINDINGS} <= {passage.id for passage in PASSAGES}
