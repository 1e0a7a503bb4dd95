"""The claims ledger and the assumptions ledger as directives: computed when the book is built, never typed.

```{claims-ledger} Abstract``` has the cards of a section, with its verdicts and chapters as classes, by which ledger.js
filters.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from bilevel_book.ledger import Evidence, judged, render, taken


@cache
def ledgers():
    """Both ledgers, computed once for a build."""
    evidence = Evidence.stored()
    return judged(evidence), taken(evidence)


PARTS = {  # of both ledgers: the text, and the class of its box
    "claims-of-figures": (lambda claims, _: render.figures_table(claims), "ledger-figures"),
    "claims-summary": (lambda claims, _: render.claims_summary(claims), "ledger-summary"),
    "claims-by-verdict": (lambda claims, _: render.claims_by_verdict(claims), "ledger-list"),
    "assumptions-summary": (lambda _, choices: render.choices_summary(choices), "ledger-summary"),
    "assumptions-by-effect": (lambda _, choices: render.choices_by_effect(choices), "ledger-list"),
}


def cards(name: str) -> Iterator[tuple[str, str, list[str]]]:
    """The section, the text and the classes of each card of a ledger."""
    claims, choices = ledgers()
    if name == "claims-ledger":
        found = [(p, render.passage_card(p, those), [claim.verdict for claim in those]) for p, those in claims]
    else:
        found = [(choice, render.choice_card(choice), [render.measured(choice)]) for choice in choices]
    for entry, text, words in found:
        verdicts = [f"is-{word.replace(' ', '-')}" for word in words]
        yield entry.section, text, ["ledger-card", *verdicts, *(f"in-chapter-{n}" for n in entry.chapters)]


class Part(SphinxDirective):
    def box(self, markdown: str, *classes: str) -> nodes.container:
        return nodes.container("", *self.parse_text_to_nodes(markdown), classes=list(classes))

    def run(self) -> list[nodes.Node]:
        text, name = PARTS[self.name]
        return [self.box(text(*ledgers()), name)]


class Section(Part):
    required_arguments, final_argument_whitespace = 1, True

    def run(self) -> list[nodes.Node]:
        known = list(cards(self.name))
        found = [self.box(text, *classes) for section, text, classes in known if section == self.arguments[0]]
        if not found:
            sections = ", ".join(dict.fromkeys(section for section, _, _ in known))
            raise self.error(f"no section {self.arguments[0]!r} in this ledger; it has {sections}")
        return found


def load_filter(app, pagename, templatename, context, doctree):
    """Only the ledgers load the filter."""
    if pagename in ("book/claims", "book/assumptions"):
        app.add_js_file("ledger.js", loading_method="defer")


def write_for_programs(app, error):
    """claims.json beside the page of the claims, which links it."""
    if error is None and app.builder.format == "html":
        place = Path(app.outdir) / "book" / "claims.json"
        place.write_text(render.as_json(ledgers()[0]), encoding="utf-8")


def setup(app):
    app.connect("build-finished", write_for_programs)
    app.connect("html-page-context", load_filter)
    for name in PARTS:
        app.add_directive(name, Part)
    for name in ("claims-ledger", "assumptions-ledger"):
        app.add_directive(name, Section)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
