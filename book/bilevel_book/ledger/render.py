"""The ledgers as MyST Markdown, one card for each passage and for each choice."""

import json
import re

from bilevel_book import paths
from bilevel_book.ledger.choices import Choice
from bilevel_book.ledger.claim import Claim
from bilevel_book.ledger.claims import Passage, different, tally
from bilevel_book.verdicts import Verdict

APART = "not counted"
ORDER = (Verdict.FAILS, Verdict.UNDECIDED, Verdict.ALIKE, Verdict.UNTESTABLE, Verdict.HOLDS)
MEASURED = ("not measured", "measured")


def badge(word: str) -> str:
    """A word in a frame whose colour says the same."""
    return f"[{word}]{{.verdict .verdict-{word.replace(' ', '-')}}}"


def chapter(number: int) -> str:
    """A link to a chapter, from a page in `book`."""
    return f"[Chapter {number}](../chapters/{paths.chapter(number).name})"


def anchor(name: str, kind: str = "claim") -> str:
    """What a link to a card, to a claim in it, or to a list of them ends with."""
    return "-".join([kind, *re.findall(r"[^\W_]+", name.lower())])


def of_claim(passage: Passage, number: int) -> str:
    """The anchor of one claim of a passage."""
    return anchor(f"{passage.id} {passage.judges[number].name}")


def claims_summary(ledger: list[tuple[Passage, list[Claim]]]) -> str:
    """How many passages, how many claims, and how many of them have each verdict, with a link to their list."""
    counts = tally(ledger)
    verdicts = "\n".join(f"- {badge(word)} [{counts[word]}](#{anchor(word)})" for word in ORDER if counts[word])
    left = len(different(ledger)) - sum(counts.values())
    apart = f"[{left} more](#{anchor(APART)}) are shown and not counted."
    return f"{len(ledger)} passages of the paper make {sum(counts.values())} different claims:\n\n{verdicts}\n\n{apart}"


def claims_by_verdict(ledger: list[tuple[Passage, list[Claim]]]) -> str:
    """The different claims under their verdicts, what fails first, each with a link to where it is said first."""
    rows = {
        claim: f"- [{claim.text}](#{of_claim(passage, i)})" + (f", {claim.apart}" if claim.apart else "")
        for claim, (passage, i) in different(ledger).items()
    }
    parts = []
    for word in (*ORDER, APART):
        if those := [row for claim, row in rows.items() if word == (APART if claim.apart else claim.verdict)]:
            parts.append(f"({anchor(word)})=\n{badge(word)} {len(those)}\n\n" + "\n".join(those))
    return "\n\n".join(parts)


def as_json(ledger: list[tuple[Passage, list[Claim]]]) -> str:
    """The different claims for programs: claim, source, command, hash of the runs, verdict, number."""
    rows = []
    for claim, (passage, number) in different(ledger).items():
        tested = f"python -m pytest tests -k '{' or '.join(passage.tests)}'" if passage.tests else ""
        rows.append({
            "claim": claim.text, "source": passage.where, "card": f"claims.html#{of_claim(passage, number)}",
            "command": claim.command or tested, "runs": claim.runs, "verdict": claim.verdict,
            "counted": not claim.apart, "number": claim.numbers,
        })  # fmt: skip
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def passage_card(passage: Passage, claims: list[Claim]) -> str:
    """The quotation, its claims with verdict, number and measure, and where they are tested."""
    parts = [f"({anchor(passage.id)})=\n*{passage.where}*", f"> {passage.quote}"]
    for i, claim in enumerate(claims):
        where = f" ({claim.where})" if claim.where != passage.where else ""
        apart = f" ({claim.apart}, not counted)" if claim.apart else ""
        parts.append(f"({of_claim(passage, i)})=\n{badge(claim.verdict)} {claim.text}{where}{apart}")
        parts.append(f"**{claim.numbers}**\\\n{claim.measure}{'' if claim.measure.endswith('?') else '.'}")
    if tested := [chapter(number) for number in passage.chapters] + [f"`{test}`" for test in passage.tests]:
        parts.append(f"Tested in {', '.join(tested)}.")
    return "\n\n".join(parts)


def choices_summary(choices: list[Choice]) -> str:
    """How many choices, and of how many the effect is measured."""
    said = [measured(choice) for choice in choices]
    counts = "\n".join(f"- {badge(word)} [{said.count(word)}](#{anchor(word, 'choice')})" for word in MEASURED)
    return f"{len(choices)} choices, and the effect of other values:\n\n{counts}"


def measured(choice: Choice) -> str:
    return MEASURED[bool(choice.effects)]


def choices_by_effect(choices: list[Choice]) -> str:
    """The choices, those whose effect nobody knows first, each with a link to its card."""
    return "\n\n".join(
        f"({anchor(word, 'choice')})=\n{badge(word)}\n\n"
        + "\n".join(f"- [{c.what}](#{anchor(c.what, 'choice')})" for c in choices if measured(c) == word)
        for word in MEASURED
    )


def choice_card(choice: Choice) -> str:
    """What is open, the value, the reason, the effect."""
    parts = [f"({anchor(choice.what, 'choice')})=\n**{choice.what}** {badge(measured(choice))}"]
    parts.append(f"*Here:* {choice.value}.\\\n*Because:* {choice.why}.")
    if choice.effects:
        parts.append("\n".join(f"- {line}" for line in choice.effects))
    if choice.chapters:
        parts.append(f"See {', '.join(chapter(number) for number in choice.chapters)}.")
    return "\n\n".join(parts)
