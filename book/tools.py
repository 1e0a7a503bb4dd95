"""The workshop of the book.

python book/tools.py cover                  draws the cover
python book/tools.py notebooks [NAME ...]   executes the chapters, or those whose file name starts so
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from bilevel_core.files import write_atomically

ROOT = Path(__file__).resolve().parent.parent
WIDGET = "application/vnd.jupyter.widget-view+json"


def cover() -> None:
    from bilevel_book.figures import cover
    from bilevel_book.walk import walk
    from bilevel_core import FdeHBO
    from bilevel_core.problems import Valley

    problem, solver = Valley(), FdeHBO(alpha=0.03, beta=0.3, lam=0.4, eta=0.5, delta=0.05, r_v=3.0)
    cover(problem, walk(problem, solver, 60)).savefig(ROOT / "book" / "_static" / "cover.png", dpi=160)


def notebooks(*names: str) -> None:
    """Execute chapters in fresh kernels and store their outputs; an unchanged chapter gives an unchanged file."""
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        if names and not path.name.startswith(names):
            continue
        notebook = nbformat.read(path, as_version=4)
        print(f"{path.name} ...", flush=True)
        NotebookClient(
            notebook,
            timeout=600,
            kernel_name="python3",
            resources={"metadata": {"path": path.parent}},
            record_timing=False,
        ).execute()
        clean(notebook)
        write_atomically(path, (nbformat.writes(notebook) + "\n").encode())


def clean(notebook: nbformat.NotebookNode) -> None:
    """Drop what changes from run to run and what only a live kernel can use."""
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.metadata.pop("execution", None)
            cell.outputs = joined(cell.outputs)
            for output in cell.outputs:
                output.get("data", {}).pop(WIDGET, None)


def joined(outputs: list) -> list:
    """Printed text arrives in pieces that depend on the moment; join those of one stream."""
    result = []
    for output in outputs:
        if output.output_type == "stream" and result and result[-1].get("name") == output.name:
            result[-1].text += output.text
        else:
            result.append(output)
    return result


if __name__ == "__main__":
    commands = {"cover": cover, "notebooks": notebooks}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])
