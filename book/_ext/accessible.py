"""Repairs what the extensions of Sphinx get wrong for readers who hear a page.

A fold of myst-nb is named "Toggle hidden content" whatever is written on it; sphinxcontrib-bibtex calls the
bibliography a list and its entries something else, by a role that is no more.
"""

from sphinx.application import Sphinx

REPAIRS = {
    '<summary aria-label="Toggle hidden content">': "<summary>",
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    ' role="doc-biblioentry"': "",
}


def repaired(body: str) -> str:
    for wrong, right in REPAIRS.items():
        body = body.replace(wrong, right)
    return body


def setup(app: Sphinx) -> dict[str, bool]:
    def page(app, pagename, templatename, context, doctree):
        if "body" in context:
            context["body"] = repaired(context["body"])

    app.connect("html-page-context", page, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
