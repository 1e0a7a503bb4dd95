"""Slides of a chapter for reveal.js: claims, formulas, boxes, pictures and sliders; the full text is for the speaker.

Of a paragraph that leads to a formula its last sentence is shown, of any other its first. Folded checks, exercises and
further reading are left out. Everything needed lies beside the slides, so that they work from disk.
"""

import ast
import re
import shutil
from pathlib import Path

import nbformat
from jinja2 import FileSystemLoader
from nbconvert import SlidesExporter
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from traitlets.config import Config

from bilevel_book.widgets.stored import VIEW, element, live
from workshop import ROOT, chapters
from workshop.plain import numbers, plain

TARGET = ROOT / "_build" / "slides"
HERE = ROOT / "book" / "workshop"
CHAPTERS = ("01", "04")
SKIPPED = ("## Exercises", "## Further reading")
FOLDED, HIDDEN = {"remove-cell", "hide-cell"}, {"remove-input", "hide-input"}


def slides(target: Path = TARGET) -> None:
    """Write the slides into _build/slides."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(HERE / "reveal", target / "reveal")
    shutil.copytree(ROOT / "book" / "_vendor" / "vendor" / "mathjax", target / "mathjax")
    exporter = SlidesExporter(
        config=Config({"TagRemovePreprocessor": {"enabled": True, "remove_input_tags": {"remove-input"}}}),
        extra_loaders=[FileSystemLoader(HERE)],
        template_file="slides.html.j2",
        reveal_url_prefix="reveal",
        reveal_theme="white",
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    for path in chapters(*CHAPTERS):
        shown = as_slides(nbformat.read(path, as_version=4), int(path.name[:2]))
        (target / f"{path.stem}.html").write_text(exporter.from_notebook_node(shown)[0], encoding="utf-8")
    print(f"Open {target}/{path.stem}.html; the key S opens what the speaker reads.")


def as_slides(notebook: NotebookNode, chapter: int) -> NotebookNode:
    """A section is a column of slides: one for each cell that shows anything, with its text as notes."""
    for data, traits in live(notebook):
        del data[VIEW]  # nbconvert would fetch its player from the network
        data["text/html"] = element(traits, "")
    notebook.metadata.pop("widgets", None)
    number = numbers(chapter, [cell.source for cell in notebook.cells if cell.cell_type == "markdown"])
    result: list[NotebookNode] = []
    skipping = False
    for cell in notebook.cells:
        tags = set(cell.metadata.get("tags", []))
        if cell.cell_type == "markdown" and re.match("##? ", cell.source):
            skipping = cell.source.startswith(SKIPPED)
        if skipping or tags & FOLDED or _only_imports(cell):
            continue
        if cell.cell_type == "code":
            if tags & HIDDEN or any(_picture(output) for output in cell.outputs):
                cell.metadata.tags = ["remove-input"]
            alone = not result or result[-1].metadata.slideshow.slide_type != "notes" or "\n\n" in result[-2].source
            cell.metadata.slideshow = {"slide_type": "subslide" if alone else "-"}  # one line of text leaves room
            result.append(cell)
        elif text := plain(cell.source, number):
            kind = "slide" if re.match("##? ", text) else "subslide"
            result.append(new_markdown_cell(points(text), metadata={"slideshow": {"slide_type": kind}}))
            result.append(new_markdown_cell(text, metadata={"slideshow": {"slide_type": "notes"}}))
    return NotebookNode(notebook | {"cells": result})


def _only_imports(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and all(
        isinstance(n, ast.Import | ast.ImportFrom) for n in ast.parse(cell.source).body
    )


def _picture(output: NotebookNode) -> bool:
    """A figure or a slider; there is no room for its code."""
    return "image/png" in output.get("data", {}) or "<figure" in "".join(output.get("data", {}).get("text/html", ""))


def points(text: str) -> str:
    """Paragraphs by one sentence each; headings, formulas, lists, tables and boxes as they are."""
    blocks = [block for block in re.split(r"\n{2,}", text) if block.strip()]
    shown = []
    for block, after in zip(blocks, [*blocks[1:], ""], strict=True):
        if re.match(r"#|>|\$\$|\||- |\d+\. |!\[", block):
            shown.append(block)
        else:
            parts = sentences(block)
            shown.append(f"- {parts[-1] if after.startswith('$$') else parts[0]}")
    return "\n\n".join(shown)


def sentences(paragraph: str) -> list[str]:
    """A full stop inside maths, brackets or a number ends nothing."""
    text = " ".join(paragraph.split())
    return [part for part in re.split(r"(?<=[a-z$*)`][.?!]) (?=[A-Z$*\\(`])", text) if part]
