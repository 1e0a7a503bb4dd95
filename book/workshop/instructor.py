"""The solutions of homework, which no page shows: book/instructor/NN.ipynb, executed for those who teach."""

import shutil

import nbformat
from nbclient import NotebookClient

from workshop import ROOT

SOURCE = ROOT / "book" / "instructor"
TARGET = ROOT / "_build" / "instructor"


def instructor(*names: str) -> None:
    """Execute every notebook, or those whose file name starts so, into _build/instructor."""
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    for path in sorted(SOURCE.glob("*.ipynb")):
        if not names or path.name.startswith(names):
            print(f"{path.name} ...", flush=True)
            notebook = nbformat.read(path, as_version=4)
            folder = {"metadata": {"path": ROOT / "chapters"}}
            NotebookClient(notebook, timeout=600, kernel_name="python3", resources=folder).execute()
            nbformat.write(notebook, TARGET / path.name)
    print(f"Open {TARGET}; it is not part of the pages.")
