"""What is made of the chapters beside the pages: copies for students, a pack for instructors, slides, PDFs, times."""

from pathlib import Path

from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]


def chapters(*names: str) -> list[Path]:
    """The notebooks, or those whose file name starts so."""
    return [path for path in sorted((ROOT / "chapters").glob("*.ipynb")) if not names or path.name.startswith(names)]


def execute(notebook: NotebookNode, name: str) -> None:
    """In a fresh kernel, in the folder of the chapters."""
    print(f"{name} ...", flush=True)
    options = {"timeout": 600, "kernel_name": "python3", "record_timing": False, "coalesce_streams": True}
    NotebookClient(notebook, resources={"metadata": {"path": ROOT / "chapters"}}, **options).execute()
