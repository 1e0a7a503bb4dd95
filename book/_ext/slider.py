"""```{slider} 1``` shows the first slider of Chapter 1 on another page, as the chapter's notebook has it stored."""

import json

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from bilevel_book import paths


def first_slider(number: int) -> str:
    """The HTML of the first slider of a chapter."""
    cells = json.loads(paths.chapter(number).read_text(encoding="utf-8"))["cells"]
    shown = ("".join(o.get("data", {}).get("text/html", "")) for cell in cells for o in cell.get("outputs", []))
    found = next((html for html in shown if '<figure class="explore"' in html), None)
    if found is None:
        raise ValueError(f"Chapter {number} has no stored slider; `python book/tools.py notebooks` draws it")
    return found


class StoredSlider(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        number = int(self.arguments[0])
        self.env.note_dependency(str(paths.chapter(number)))
        box = f'<div class="cell_output"><div class="output text_html">{first_slider(number)}</div></div>'
        return [nodes.raw("", box, format="html")]


def setup(app):
    app.add_directive("slider", StoredSlider)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
