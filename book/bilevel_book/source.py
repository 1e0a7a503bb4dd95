"""The library's own code, shown in a chapter."""

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

# Lab would break lines in the middle of a word and put its own ground, dark in the dark, under our colours.
COLOURS = HtmlFormatter(
    noclasses=True,
    cssstyles="padding: 0.5em; overflow-x: auto",
    prestyles="margin: 0; white-space: pre; background: none; color: #222",
)


class source:
    """`source(FMBO.update)` shows the text of that function as it stands in its file.

    Notebooks take the HTML, which brings its colours along; the page takes the Markdown and uses its own.
    """

    def __init__(self, function: Callable[..., Any]):
        self.text = textwrap.dedent(inspect.getsource(function))

    def _repr_html_(self) -> str:
        return highlight(self.text, PythonLexer(), COLOURS)

    def _repr_markdown_(self) -> str:
        return f"```python\n{self.text}```"

    def __repr__(self) -> str:
        return self.text
