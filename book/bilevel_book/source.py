"""The library's own code, shown in a chapter."""

import inspect
import subprocess
import sys
import textwrap
from collections.abc import Callable
from types import ModuleType
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
WIDTH = 80  # columns of a page; the library's files have 120


class source:
    """`source(FMBO.update)` shows that function, `source(fmbo)` that whole file, laid out for the width of a page.

    Notebooks take the HTML, which brings its colours along; the page takes the Markdown and uses its own. A whole file
    is kept as Markdown alone, a fifth of the size.
    """

    def __init__(self, shown: Callable[..., Any] | ModuleType):
        ruff = [sys.executable, "-m", "ruff", "format", "--isolated", f"--line-length={WIDTH}", "-"]
        code = textwrap.dedent(inspect.getsource(shown))
        code = subprocess.run(ruff, input=code, capture_output=True, text=True, check=True).stdout
        self.text = "".join(f"{_folded(line)}\n" for line in code.splitlines())
        self.file = shown.__name__.replace(".", "/") + ".py" if isinstance(shown, ModuleType) else ""

    def _repr_html_(self) -> str | None:
        return None if self.file else highlight(self.text, PythonLexer(), COLOURS)

    def _repr_markdown_(self) -> str:
        return f"```python\n{self.text}```"

    def __repr__(self) -> str:
        return self.file or self.text


def _folded(line: str) -> str:
    """A comment or a docstring of one line that is too long, in several; ruff leaves words alone."""
    words = line.lstrip()
    if not words.startswith(("#", '"""')):
        return line
    margin = line[: len(line) - len(words)] + ("# " if words.startswith("#") else "")
    return textwrap.fill(line, WIDTH, subsequent_indent=margin)
