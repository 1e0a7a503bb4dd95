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

from bilevel_book.findings import FINDINGS, told
from bilevel_book.ledger import CHOICE_SECTIONS, CLAIM_SECTIONS, Evidence, judged, render, taken


@cache
def ledgers():
    """Both ledgers, computed once for a build."""
    evidence = Evidence.stored()
    return judged(evidence), taken(evidence)


def keys(words: Iterable[str], chapters: Iterable[int]) -> list[str]:
    """The classes of a card."""
    return [f"is-{word.replace(' ', '-')}" for word in words] + [f"in-chapter-{number}" for number in chapters]


class Ledger(SphinxDirective):
    def card(self, markdown: str, *classes: str) -> nodes.container:
        box = nodes.container(classes=list(classes))
        self.state.nested_parse(StringList(markdown.split("\n"), source=self.env.docname), 0, box)
        return box

    def section(self, known: tuple[str, ...]) -> str:
        if self.arguments[0] not in known:
            raise self.error(f"no section {self.arguments[0]!r} in this ledger; it has {', '.join(known)}")
        return self.arguments[0]


class ClaimsSummary(Ledger):
    def run(self) -> list[nodes.Node]:
        return [self.card(render.claims_summary(ledgers()[0]), "ledger-summary")]


class ClaimsByVerdict(Ledger):
    def run(self) -> list[nodes.Node]:
        return [self.card(render.claims_by_verdict(ledgers()[0]), "ledger-list")]


class ClaimsLedger(Ledger):
    required_arguments, final_argument_whitespace = 1, True

    def run(self) -> list[nodes.Node]:
        section = self.section(CLAIM_SECTIONS)
        return [
            self.card(
                render.passage_card(passage, claims),
                "ledger-card",
                *keys([claim.verdict for claim in claims], passage.chapters),
            )
            for passage, claims in ledgers()[0]
            if passage.section == section
        ]


class Findings(Ledger):
    def run(self) -> list[nodes.Node]:
        findings = "\n".join(f"1. {told(finding, ledgers()[0])}" for finding in FINDINGS)
        return [self.card(findings, "findings")]


class AssumptionsSummary(Ledger):
    def run(self) -> list[nodes.Node]:
        return [self.card(render.choices_summary(ledgers()[1]), "ledger-summary")]


class AssumptionsByEffect(Ledger):
    def run(self) -> list[nodes.Node]:
        return [self.card(render.choices_by_effect(ledgers()[1]), "ledger-list")]


class AssumptionsLedger(Ledger):
    required_arguments, final_argument_whitespace = 1, True

    def run(self) -> list[nodes.Node]:
        section = self.section(CHOICE_SECTIONS)
        return [
            self.card(render.choice_card(choice), "ledger-card", *keys([render.measured(choice)], choice.chapters))
            for choice in ledgers()[1]
            if choice.section == section
        ]


def filtered(app, pagename, templatename, context, doctree):
    """Only the ledgers load the filter."""
    if pagename in ("book/claims", "book/assumptions"):
        app.add_js_file("ledger.js", loading_method="defer")


def setup(app):
    app.connect("html-page-context", filtered)
    app.add_directive("claims-summary", ClaimsSummary)
    app.add_directive("claims-by-verdict", ClaimsByVerdict)
    app.add_directive("claims-ledger", ClaimsLedger)
    app.add_directive("findings", Findings)
    app.add_directive("assumptions-summary", AssumptionsSummary)
    app.add_directive("assumptions-by-effect", AssumptionsByEffect)
    app.add_directive("assumptions-ledger", AssumptionsLedger)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
