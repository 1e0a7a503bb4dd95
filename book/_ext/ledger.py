"""The claims ledger and the assumptions ledger as directives: computed when the book is built, never typed.

    ```{claims-summary}
    ```
    ```{claims-by-verdict}
    ```
    ```{claims-ledger} Abstract
    ```

and likewise `assumptions-summary`, `assumptions-by-effect` and `assumptions-ledger`. The argument is a section of the
ledger. A card has its verdicts and chapters as classes, by which ledger.js filters. The front page has `findings`, what
a reader takes home from the first of them.
"""

from collections.abc import Iterable
from functools import cache

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from bilevel_book.findings import findings
from bilevel_book.ledger import Evidence, judged, render, taken


@cache
def ledgers():
    """Both ledgers, computed once for a build."""
    evidence = Evidence.stored()
    return judged(evidence), taken(evidence)


PARTS = {  # of both ledgers: the text, and the class of its box
    "claims-summary": (lambda claims, _: render.claims_summary(claims), "ledger-summary"),
    "claims-by-verdict": (lambda claims, _: render.claims_by_verdict(claims), "ledger-list"),
    "findings": (lambda claims, _: findings(claims), "findings"),
    "assumptions-summary": (lambda _, choices: render.choices_summary(choices), "ledger-summary"),
    "assumptions-by-effect": (lambda _, choices: render.choices_by_effect(choices), "ledger-list"),
}


def card_classes(words: Iterable[str], chapters: Iterable[int]) -> list[str]:
    verdicts = [f"is-{word.replace(' ', '-')}" for word in words]
    return ["ledger-card", *verdicts, *(f"in-chapter-{number}" for number in chapters)]


class Part(SphinxDirective):
    def box(self, markdown: str, *classes: str) -> nodes.container:
        box = nodes.container(classes=list(classes))
        self.state.nested_parse(StringList(markdown.split("\n"), source=self.env.docname), 0, box)
        return box

    def run(self) -> list[nodes.Node]:
        text, name = PARTS[self.name]
        return [self.box(text(*ledgers()), name)]


class Section(Part):
    required_arguments, final_argument_whitespace = 1, True

    def cards(self) -> Iterable[tuple[str, str, list[str]]]:
        """The section, the text and the classes of each card of the ledger."""
        claims, choices = ledgers()
        if self.name == "claims-ledger":
            for passage, found in claims:
                classes = card_classes([claim.verdict for claim in found], passage.chapters)
                yield passage.section, render.passage_card(passage, found), classes
        else:
            for choice in choices:
                yield (
                    choice.section,
                    render.choice_card(choice),
                    card_classes([render.measured(choice)], choice.chapters),
                )

    def run(self) -> list[nodes.Node]:
        cards = list(self.cards())
        found = [self.box(text, *classes) for section, text, classes in cards if section == self.arguments[0]]
        if not found:
            known = ", ".join(dict.fromkeys(section for section, _, _ in cards))
            raise self.error(f"no section {self.arguments[0]!r} in this ledger; it has {known}")
        return found


def load_filter(app, pagename, templatename, context, doctree):
    """Only the ledgers load the filter."""
    if pagename in ("book/claims", "book/assumptions"):
        app.add_js_file("ledger.js", loading_method="defer")


def setup(app):
    app.connect("html-page-context", load_filter)
    for name in PARTS:
        app.add_directive(name, Part)
    for name in ("claims-ledger", "assumptions-ledger"):
        app.add_directive(name, Section)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
