"""The computed parts of the page "If you write a bilevel comparison", when the book is built.

    ```{changed} tuned-alike
    ```
    ```{picture} trials
    ```

The first says what a rule changed here, before and after; the second shows a picture, with sliders if it has any.
"""

import base64
import io
from html import escape

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from bilevel_book.checklist.changes import CHANGES, one_sentence_one_verdict
from bilevel_book.checklist.pictures import PICTURES
from bilevel_book.sliders import Explore
from ledger import ledgers


class Changed(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        if self.arguments[0] not in CHANGES:
            raise self.error(f"no change {self.arguments[0]!r}; there are {', '.join(CHANGES)}")
        change = CHANGES[self.arguments[0]]
        told = change(ledgers()[0]) if change is one_sentence_one_verdict else change()
        text = f"**Before:** {told.before}\n\n**After:** {told.after}"
        box = nodes.container(classes=["before-after"])
        self.state.nested_parse(StringList(text.split("\n"), source=self.env.docname), 0, box)
        return [box]


def shown(name: str) -> str:
    """A picture as HTML."""
    drawn = PICTURES[name]()
    if isinstance(drawn, Explore):
        return f'<div class="output text_html">{drawn.page(drawn.frames())}</div>'
    (figure, alt), file = drawn, io.BytesIO()
    figure.savefig(file, format="png")
    return f'<img alt="{escape(alt)}" src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'


class Picture(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        if self.arguments[0] not in PICTURES:
            raise self.error(f"no picture {self.arguments[0]!r}; there are {', '.join(PICTURES)}")
        return [nodes.raw("", f'<div class="cell_output">{shown(self.arguments[0])}</div>', format="html")]


def setup(app):
    app.add_directive("changed", Changed)
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
