"""Ways into and out of the pages: a site map, a list of the pages for programs that read, and a page for lost readers.

A site map, the cards that show a link to the book and the buttons that launch a chapter elsewhere need the address of
the book (`bilevel_book.address`); while there is none, they are left out. None asks the network for anything.
"""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment

import bilevel_core
from bilevel_book import address

DETAILS = re.compile(r"^chapters/\d\da_")  # the page of details below a chapter
LOST = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Not here: {title}</title>
<style>
:root {{ color-scheme: light dark; }}
a {{ color: inherit; }}
body {{ font: 1.1rem/1.6 system-ui, sans-serif; max-width: 36rem; margin: 15vh auto; padding: 0 1rem; }}
</style>
<main>
<h1>There is no page here</h1>
<p>It may have moved: chapters are called by their titles. <a href="{path}{root}.html">The front page</a> lists all of
them, and <a href="{path}search.html">the search</a> finds words.</p>
</main>
"""  # it is shown for any address below the book's, so it must not need files by paths of its own
SITE_MAP = """<?xml version="1.0" encoding="utf-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
"""


def pages(app: Sphinx) -> list[str]:
    """In the order of the book: what stands below a page follows it."""

    def below(page: str) -> Iterator[str]:
        yield page
        for child in app.env.toctree_includes.get(page, []):
            yield from below(child)

    return list(dict.fromkeys(below(app.config.root_doc)))


def first_words(doctree: nodes.document) -> str:
    """The first paragraph of the running text, up to its first full stop."""
    running = (p for p in doctree.findall(nodes.paragraph) if isinstance(p.parent, nodes.section))
    words = " ".join(next(running, nodes.paragraph()).astext().split())
    return words.partition(". ")[0].rstrip(".:") + "." if words else ""


def setup(app: Sphinx) -> dict[str, bool]:
    def configure(app: Sphinx, config: Config) -> None:
        config.html_baseurl = config.ogp_site_url = address.pages()
        config.ogp_site_name = config.html_title
        config.version = config.release = bilevel_core.__version__
        if not config.html_baseurl:
            config.html_theme_options.pop("launch_buttons", None)

    def remove_cards(app, pagename, templatename, context, doctree) -> None:
        if not app.config.html_baseurl:
            context["metatags"] = re.sub(r'<meta property="og:[^>]*>\s*', "", context.get("metatags", ""))

    def finished(app: Sphinx, exception: Exception | None) -> None:
        if exception or app.builder.format != "html":
            return
        base, title, out = app.config.html_baseurl, app.config.html_title, Path(app.outdir)
        order = pages(app)
        listed = [f"# {title}", "", f"> {first_words(app.env.get_doctree(app.config.root_doc))}", ""]
        for page in order:
            words = first_words(app.env.get_doctree(page))
            listed.append(f"- [{app.env.titles[page].astext()}]({base}{page}.html){': ' * bool(words)}{words}")
        if base:
            places = "".join(f"  <url><loc>{escape(f'{base}{page}.html')}</loc></url>\n" for page in order)
            (out / "sitemap.xml").write_text(f"{SITE_MAP}{places}</urlset>\n", encoding="utf-8")
        (out / "llms.txt").write_text("\n".join(listed) + "\n", encoding="utf-8")
        lost = LOST.format(title=escape(title), path=urlsplit(base).path, root=app.config.root_doc)
        (out / "404.html").write_text(lost, encoding="utf-8")

    def without_section_numbers(app: Sphinx, env: BuildEnvironment) -> list[str]:
        for page in filter(DETAILS.search, env.toc_secnumbers):  # its figures go on counting those of the chapter
            env.toc_secnumbers[page] = {}
            for numbered in (env.titles[page], *env.tocs[page].findall(nodes.reference)):
                numbered.attributes.pop("secnumber", None)
        return []

    app.connect("config-inited", configure)
    app.connect("env-get-updated", without_section_numbers, priority=600)  # when numbers are given
    app.connect("html-page-context", remove_cards, priority=900)
    app.connect("build-finished", finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
