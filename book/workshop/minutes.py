"""How long a chapter takes, by one rule for all.

    words / 130 + visible lines of code / 8 + 2 for each slider, and apart from that 5, 10 or 15 for each exercise

A formula counts as a word. Exercises and solutions are not part of the reading, and neither is code that is folded.
"""

import re

import nbformat
from nbformat import NotebookNode

from bilevel_core.checkpoint import write_atomically
from workshop import chapters
from workshop.exercises import MINUTES, exercises

FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$]+\$", re.S)
MARKUP = re.compile(r"^(?:[:`]{3,}.*|:\w+:.*|\([\w:-]+\)=|\|[-| :]+\|)$", re.M)
FOLDED = {"remove-cell", "remove-input", "hide-cell", "hide-input"}
TIME = re.compile(r"^\*\*Time\*\* [^.\n]*\.?", re.M)


def reading(notebook: NotebookNode) -> float:
    """Minutes without exercises."""
    apart = {k for exercise in exercises(notebook) for k in [*exercise.solution, exercise.ends]}
    words = lines = sliders = 0
    for k, cell in enumerate(notebook.cells):
        tags = set(cell.metadata.get("tags", []))
        if cell.cell_type == "markdown" and k not in apart and "remove-cell" not in tags:
            words += len(MARKUP.sub("", FORMULA.sub("x", cell.source)).split())
        elif cell.cell_type == "code" and k not in apart:
            sliders += "explore(" in cell.source
            lines += 0 if tags & FOLDED else len([line for line in cell.source.splitlines() if line.strip()])
    return words / 130 + lines / 8 + 2 * sliders


def practising(notebook: NotebookNode) -> int:
    """Minutes for the exercises, without homework."""
    return sum(MINUTES[one.grade["grade"]] for one in exercises(notebook) if not one.homework)


def told(notebook: NotebookNode) -> str:
    """What the head of the chapter should say, to the nearest five minutes."""
    return (
        f"**Time** about {5 * round(reading(notebook) / 5)} minutes, and {practising(notebook)} more for the exercises."
    )


def minutes(*names: str) -> None:
    """Write the time into the heads of the chapters whose file name starts so, or only say it where none is named."""
    for path in chapters(*names):
        notebook = nbformat.read(path, as_version=4)
        try:
            print(f"{path.stem}: {told(notebook)}")
        except ValueError as error:
            print(f"{path.stem}: {error}")
            continue
        if names:
            for cell in notebook.cells[:3]:
                cell.source = TIME.sub(told(notebook), cell.source)
            write_atomically(path, (nbformat.writes(notebook) + "\n").encode())
