"""Every count and every line of the assumptions ledger leads to a place on its page."""

import re

from bilevel_book.ledger import CHOICE_SECTIONS, Choice, render
from bilevel_book.ledger.choices import OPEN


def made_up():
    """All choices, every other one with an effect."""
    return [
        Choice(choice.section, choice.what, "1", "so", ("0.1 instead of 0.2",) if i % 2 else ())
        for i, choice in enumerate(OPEN)
    ]


def test_every_choice_has_an_anchor_of_its_own_and_stands_in_one_list():
    choices = made_up()
    page = "\n\n".join([render.choices_by_effect(choices), *map(render.choice_card, choices)])
    anchors = re.findall(r"^\((choice-[\w-]+)\)=$", page, re.M)
    assert len(set(anchors)) == len(anchors) == len(choices) + 2
    links = re.findall(r"^- \[.+\]\(#([\w-]+)\)$", page, re.M)
    assert sorted(links) == sorted(set(anchors) - {"choice-measured", "choice-not-measured"})
    unknown, known = (part.count("\n- [") for part in page.partition("(choice-measured)=")[::2])
    assert (unknown, known) == ((len(choices) + 1) // 2, len(choices) // 2)
    assert {choice.section for choice in choices} == set(CHOICE_SECTIONS)


def test_the_counts_of_the_choices_are_links_to_these_lists():
    choices = made_up()
    top, lists = render.choices_summary(choices), render.choices_by_effect(choices)
    counts = re.findall(r"\[(\d+)\]\(#(choice-[\w-]+)\)", top)
    assert sum(int(count) for count, _ in counts) == len(choices)
    assert all(f"({anchor})=" in lists for _, anchor in counts)
