"""The ledgers as MyST Markdown, one card for each passage and for each choice."""

import json
import re

from bilevel_book import paths
from bilevel_book.ledger.choices import Choice
from bilevel_book.ledger.claim import Claim, Printed
from bilevel_book.ledger.claims import Passage, different, tally
from bilevel_book.verdicts import Verdict
from bilevel_book.verdicts.paper import SENTENCES

APART = "not counted"
ORDER = (
    Verdict.CONTRADICTED, Printed.FALSE, Printed.GAP, Verdict.UNDECIDED, Verdict.NO_DIFFERENCE, Verdict.UNTESTABLE,
    Verdict.SUPPORTED,
)  # fmt: skip
THEORY, THE_REST = "theory", "the rest"
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
    """How many passages, how many claims, and how many of them have each verdict."""
    counts = tally(ledger)
    verdicts = " ".join(f"{badge(word)} {counts[word]}" for word in ORDER if counts[word])
    left = len(different(ledger)) - sum(counts.values())
    apart = f"{left} more are shown and not counted."
    return f"{len(ledger)} passages of the paper make {sum(counts.values())} different claims:\n\n{verdicts}\n\n{apart}"


def figures_table(ledger: list[tuple[Passage, list[Claim]]]) -> str:
    """The sentences about the figures, each with its verdict on both tracks, and the number that decides as stated."""
    found = {
        judge.name: (claim, of_claim(passage, i))
        for passage, claims in ledger
        for i, (judge, claim) in enumerate(zip(passage.judges, claims, strict=True))
    }
    rows = ["| | the paper says | as stated | tuned alike | number, as stated |", "|---|---|---|---|---|"]
    for name in SENTENCES:
        claim, link = found[name]
        tuned = found.get(f"{name} tuned_alike")
        first, *others = claim.numbers.split("; ")
        number = re.sub(r", [a-z ]+\)$", ")", first)  # its verdict is that of the row
        number += "".join(f"; {each}" for each in others if each.startswith("much: "))
        words = badge(claim.verdict), badge(tuned[0].verdict) if tuned else ""
        says = claim.text.split(" than ")[0].rstrip(",")  # the rivals stand in its card
        rows.append(f"| [{name}](#{link}) | {says} | {words[0]} | {words[1]} | {number} |")
    return "\n".join(rows)


def claims_by_verdict(ledger: list[tuple[Passage, list[Claim]]]) -> str:
    """The other claims, first those about theory, under their verdicts, each with a link to where it is said first."""
    parts: list[str] = []
    for kind in (THEORY, THE_REST):
        parts.append(f"**{kind.capitalize()}**")
        rows = {
            claim: f"- [{claim.text}](#{of_claim(passage, i)})" + (f", {claim.apart}" if claim.apart else "")
            for claim, (passage, i) in different(ledger).items()
            if kind_of(passage, i) == kind
        }
        for word in (*ORDER, APART):
            if those := [row for claim, row in rows.items() if word == (APART if claim.apart else claim.verdict)]:
                parts.append(f"({anchor(f'{kind} {word}')})=\n{badge(word)} {len(those)}\n\n" + "\n".join(those))
    return "\n\n".join(parts)


def kind_of(passage: Passage, number: int) -> str:
    """Whether a claim is about a statement of the theory, about a figure ("") or about something else."""
    judge = passage.judges[number]
    if "sentence" in judge.options:
        return ""
    return THEORY if judge.function.__module__.endswith(("lemmas", "rates")) else THE_REST


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
