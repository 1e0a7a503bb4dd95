"""The first use of every glossary term in a chapter becomes a link to the glossary; notebooks need no markup for it.

An entry "single loop, double loop" holds two terms. Plurals and hyphens count as uses: "single-loop", "finite
differences". Headings, links, maths and code are left alone.
"""

import re
from collections.abc import Callable

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

CLOSED = (nodes.title, nodes.reference, nodes.literal, nodes.math, nodes.raw)


def pattern(terms: list[str]) -> re.Pattern[str]:
    """Any of the terms, each in a group of its own, with a hyphen or a blank between its words, and a plural."""
    words = ("[ -]".join(map(re.escape, re.split("[ -]", term))) for term in terms)
    return re.compile(rf"\b(?:{'|'.join(f'({word})' for word in words)})(?:e?s)?\b", re.IGNORECASE)


def link_first_uses(doctree: nodes.document, entries: list[str], link: Callable[[str, str], nodes.Node]) -> None:
    """Put `link(entry, words)` wherever a term is used for the first time in a paragraph."""
    pairs = [(term, entry) for entry in entries for term in entry.split(", ")]
    terms = dict(sorted(pairs, key=lambda pair: -len(pair[0])))  # "condition number" is no use of a term "number"
    names, uses = list(terms), pattern(list(terms))
    seen: set[str] = set()
    for paragraph in doctree.findall(nodes.paragraph):
        for text in list(paragraph.findall(nodes.Text)):
            if _inside(text, CLOSED):
                continue
            parts: list[nodes.Node] = []
            end = 0
            for use in uses.finditer(text):
                term = names[(use.lastindex or 0) - 1]
                if term not in seen:
                    seen.add(term)
                    parts += [nodes.Text(text[end : use.start()]), link(terms[term], use[0])]
                    end = use.end()
            if parts:
                text.parent.replace(text, [*parts, nodes.Text(text[end:])])


def _inside(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


def setup(app: Sphinx) -> dict[str, bool]:
    def resolved(app: Sphinx, doctree: nodes.document, page: str) -> None:
        if not page.startswith("chapters/"):
            return
        objects = app.env.get_domain("std").objects
        places = {name: place for (kind, name), place in objects.items() if kind == "term"}

        def link(entry: str, words: str) -> nodes.Node:
            made = make_refnode(app.builder, page, *places[entry], nodes.inline("", words))
            made["classes"].append("glossary-term")
            return made

        link_first_uses(doctree, list(places), link)

    app.add_css_file("reading.css")
    app.connect("doctree-resolved", resolved)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
