"""The claims ledger and the assumptions ledger as directives: computed when the book is built, never typed.

    ```{claims-summary}
    ```
    ```{claims-ledger} Abstract
    ```

and likewise `assumptions-summary` and `assumptions-ledger`. The argument is a section of the ledger. The front page has
`findings`, what a reader takes home from the first of them.
"""

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


class Ledger(SphinxDirective):
    def card(self, markdown: str, kind: str) -> nodes.container:
        box = nodes.container(classes=[kind])
        self.state.nested_parse(StringList(markdown.split("\n"), source=self.env.docname), 0, box)
        return box

    def section(self, known: tuple[str, ...]) -> str:
        if self.arguments[0] not in known:
            raise self.error(f"no section {self.arguments[0]!r} in this ledger; it has {', '.join(known)}")
        return self.arguments[0]


class ClaimsSummary(Ledger):
    def run(self) -> list[nodes.Node]:
        return [self.card(render.claims_summary(ledgers()[0]), "ledger-summary")]


class ClaimsLedger(Ledger):
    required_arguments, final_argument_whitespace = 1, True

    def run(self) -> list[nodes.Node]:
        section = self.section(CLAIM_SECTIONS)
        rows = [row for row in ledgers()[0] if row[0].section == section]
        return [self.card(render.passage_card(*row), "ledger-card") for row in rows]


class Findings(Ledger):
    def run(self) -> list[nodes.Node]:
        findings = "\n".join(f"1. {told(finding, ledgers()[0])}" for finding in FINDINGS)
        return [self.card(findings, "findings")]


class AssumptionsSummary(Ledger):
    def run(self) -> list[nodes.Node]:
        return [self.card(render.choices_summary(ledgers()[1]), "ledger-summary")]


class AssumptionsLedger(Ledger):
    required_arguments, final_argument_whitespace = 1, True

    def run(self) -> list[nodes.Node]:
        section = self.section(CHOICE_SECTIONS)
        rows = [row for row in ledgers()[1] if row.section == section]
        return [self.card(render.choice_card(row), "ledger-card") for row in rows]


def setup(app):
    app.add_directive("claims-summary", ClaimsSummary)
    app.add_directive("claims-ledger", ClaimsLedger)
    app.add_directive("findings", Findings)
    app.add_directive("assumptions-summary", AssumptionsSummary)
    app.add_directive("assumptions-ledger", AssumptionsLedger)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
