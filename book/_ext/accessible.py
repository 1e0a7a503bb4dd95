"""Repairs what the theme and the extensions of Sphinx get wrong for readers who hear a page, in the finished pages."""

from pathlib import Path

from sphinx.application import Sphinx

REPAIRS = {
    # A fold has a name that says nothing, whatever is written on it.
    '<summary aria-label="Toggle hidden content">': "<summary>",
    # The bibliography is called a list, and its entries something else, by a role that is no more.
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    ' role="doc-biblioentry"': "",
    # Parameters that take a line each are a list of descriptions of nothing.
    '<dl>\n<dd><em class="sig-param">': '<dl role="presentation">\n<dd role="presentation"><em class="sig-param">',
    '<dd><em class="sig-param">': '<dd role="presentation"><em class="sig-param">',
    # Buttons have other names than their words, or none.
    ' title="Search" aria-label="Search"': ' title="Search"',
    'data-mode="light" title="Light"': 'data-mode="light"',
    'data-mode="dark"  title="Dark"': 'data-mode="dark"',
    'data-mode="auto"  title="System Settings"': 'data-mode="auto"',
    '<summary><span class="toctree-toggle"': '<summary aria-label="Pages below this one"><span class="toctree-toggle"',
}


def repaired(page: str) -> str:
    for wrong, right in REPAIRS.items():
        page = page.replace(wrong, right)
    return page


def setup(app: Sphinx) -> dict[str, bool]:
    def finished(app: Sphinx, exception: Exception | None) -> None:
        if exception is None and app.builder.format == "html":
            for path in Path(app.outdir).rglob("*.html"):
                path.write_text(repaired(path.read_text(encoding="utf-8")), encoding="utf-8")

    app.connect("build-finished", finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
