"""The solutions of homework, which no page shows: book/instructor/NN.ipynb, executed and rendered for who teaches."""

import shutil

import nbformat
from jinja2 import FileSystemLoader
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from workshop import ROOT
from workshop.plain import numbers, plain

SOURCE = ROOT / "book" / "instructor"
TARGET = ROOT / "_build" / "instructor"


def instructor(*names: str) -> None:
    """Execute every notebook, or those whose file name starts so, and write it and its page into _build/instructor."""
    shutil.rmtree(TARGET, ignore_errors=True)
    shutil.copytree(ROOT / "book" / "_vendor" / "vendor" / "mathjax", TARGET / "mathjax")
    exporter = HTMLExporter(extra_loaders=[FileSystemLoader(ROOT / "book" / "workshop")], template_file="page.html.j2")
    for path in sorted(SOURCE.glob("*.ipynb")):
        if names and not path.name.startswith(names):
            continue
        print(f"{path.name} ...", flush=True)
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(
            notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": ROOT / "chapters"}}
        ).execute()
        nbformat.write(notebook, TARGET / path.name)
        number = numbers(int(path.stem), [cell.source for cell in notebook.cells if cell.cell_type == "markdown"])
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = plain(cell.source, number)
        page, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": f"Homework of chapter {int(path.stem)}"}})
        (TARGET / f"{path.stem}.html").write_text(page, encoding="utf-8")
    print(f"Open {TARGET}; it is not part of the pages.")
