"""The solutions of homework, which no page shows: book/instructor/NN.ipynb, executed for those who teach."""

import shutil

import nbformat

from workshop import ROOT, execute

SOURCE = ROOT / "book" / "instructor"
TARGET = ROOT / "_build" / "instructor"


def instructor(*names: str) -> None:
    """Execute every notebook, or those whose file name starts so, into _build/instructor."""
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    for path in sorted(SOURCE.glob("*.ipynb")):
        if not names or path.name.startswith(names):
            notebook = nbformat.read(path, as_version=4)
            execute(notebook, path.name)
            nbformat.write(notebook, TARGET / path.name)
    print(f"Open {TARGET}; it is not part of the pages.")
