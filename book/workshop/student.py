"""Chapters without the solutions of exercises: where one stood, a stub says what to write, and a cell checks it.

Fill-in tasks inside a lesson stay as they are, since later cells need what they define.

Stub and check both come from the solution. Functions and classes lose their bodies; what stood before them is given, what follows
them uses and checks them. A solution without any leaves the names that its assertions read, to be filled in, each
with the comment that stands over it.
"""

import ast
import shutil
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from workshop import ROOT, chapters
from workshop.exercises import exercises

TARGET = ROOT / "_build" / "student"
HINT = "# Your answer is right if this cell finds nothing wrong."


def student(target: Path = TARGET) -> None:
    """Write the copies into _build/student, with what their links need."""
    shutil.rmtree(target, ignore_errors=True)
    for folder in ("chapters", "book"):
        (target / folder).mkdir(parents=True)
    shutil.copy(ROOT / "book" / "references.bib", target / "book")
    for path in chapters():
        nbformat.write(without_solutions(nbformat.read(path, as_version=4)), target / "chapters" / path.name)
    print(f"Open {target}/chapters: the check of an exercise passes in silence.")


def without_solutions(notebook: NotebookNode) -> NotebookNode:
    """The chapter with two cells after each exercise, an answer and its check, instead of the solution."""
    dropped: set[int] = set()
    added: dict[int, list[NotebookNode]] = {}
    for exercise in exercises(notebook):
        dropped.update(exercise.solution)
        cells = added.setdefault(exercise.ends, [])
        words = f"**Your answer** ({exercise.label}): write here."
        cells.append(new_markdown_cell(words, id=f"{exercise.label}-words"))
        parts = task(exercise.code(notebook))
        cells.append(new_code_cell(parts.stub, id=f"{exercise.label}-stub"))
        if parts.check:
            cells.append(new_code_cell(parts.check, id=f"{exercise.label}-check"))
    kept = [[*([] if k in dropped else [cell]), *added.get(k, [])] for k, cell in enumerate(notebook.cells)]
    return NotebookNode(notebook | {"cells": [cell for cells in kept for cell in cells]})


class Task(NamedTuple):
    """A solution in parts: `answer`, for which a student gets `stub`, and then `check` compute what it computes."""

    stub: str
    answer: str
    check: str


def task(solution: str) -> Task:
    """The parts of a solution; where it checks nothing that can be left out, there is no check."""
    body = ast.parse(solution).body
    checks = [node for node in body if any(isinstance(part, ast.Assert) for part in ast.walk(node))]
    asked = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    if asked and checks:
        given = body[: body.index(asked[0])]
        rest = [node for node in body if node not in given and node not in asked]
        wanted = [ast.unparse(_Hollow().visit(ast.parse(_text(solution, node)))) for node in asked]
    else:
        given = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        rest = checks
        read = set(_names(checks, ast.Load)) - set(_names(checks, ast.Store))
        stored = _names([node for node in body if node not in checks], ast.Store)
        wanted = [f"{name} = ...{_said(solution, name)}" for name in stored if name in read]
    words = "# Replace every ... below; the next cell checks it." if wanted else "# Your code, if you need any."
    stub = [*(_text(solution, node) for node in given), words, *wanted]
    answer = [_text(solution, node) for node in body if node not in rest]
    check = [HINT, *(_text(solution, node) for node in rest)]
    return Task("\n".join(stub), "\n".join(answer), "\n".join(check) if wanted else "")


class _Hollow(ast.NodeTransformer):
    """Functions keep their heads and docstrings."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        words = node.body[:1] if ast.get_docstring(node) else []
        node.body = [*words, ast.Expr(ast.Constant(...))]
        return node


def _text(source: str, node: ast.stmt) -> str:
    """A statement as it is written, with its decorators and the comments inside it."""
    first = min([node.lineno, *(above.lineno for above in getattr(node, "decorator_list", []))])
    return "\n".join(source.splitlines()[first - 1 : node.end_lineno])


def _said(source: str, name: str) -> str:
    """The comment over the line that first stores a name: it says what to write."""
    stored = (part for part in ast.walk(ast.parse(source)) if isinstance(part, ast.Name) and part.id == name)
    first = min(part.lineno for part in stored if isinstance(part.ctx, ast.Store))
    above = source.splitlines()[first - 2].strip() if first > 1 else ""
    return f"  {above}" if above.startswith("#") else ""


def _names(nodes: list[ast.stmt], context: type[ast.expr_context]) -> list[str]:
    """Names that are read or written, each once, in order."""
    parts = (part for node in nodes for part in ast.walk(node))
    return list(dict.fromkeys(p.id for p in parts if isinstance(p, ast.Name) and isinstance(p.ctx, context)))
