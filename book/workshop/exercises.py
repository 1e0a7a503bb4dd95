"""The exercises of a chapter, with the cells of their solutions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nbformat import NotebookNode

START = re.compile(r"\{exercise-start\} ?(?P<title>.*)\n:label: (?P<label>\S+)")


@dataclass
class Exercise:
    title: str
    label: str
    ends: int  # the cell with its last words
    solution: list[int] = field(default_factory=list)  # cells, with the heading that folds them in Lab

    def code(self, notebook: NotebookNode) -> str:
        """Of its solution."""
        cells = (notebook.cells[k] for k in self.solution)
        return "\n\n".join(cell.source for cell in cells if cell.cell_type == "code")


def exercises(notebook: NotebookNode) -> Iterator[Exercise]:
    """In the order of the chapter; a solution begins at its heading and ends with its last cell."""
    found: dict[str, Exercise] = {}
    solved, heading = "", None
    for k, cell in enumerate(notebook.cells):
        text = cell.source if cell.cell_type == "markdown" else ""
        for start in START.finditer(text):
            found[start["label"]] = Exercise(start["title"], start["label"], ends=k)
        if "{exercise-end}" in text:
            list(found.values())[-1].ends = k
        if text.startswith("#### Solution"):
            heading = k
        if begin := re.search(r"\{solution-start\} (\S+)", text):
            solved = begin[1]
            found[solved].solution = [] if heading is None else [heading]
        if solved:
            found[solved].solution.append(k)
        if "{solution-end}" in text:
            solved, heading = "", None
    yield from found.values()
