"""The workshop of the book.

python book/tools.py address                writes the first cell of every chapter, with the address in _config.yml
python book/tools.py cover                  draws the cover
python book/tools.py notebooks [NAME ...]   executes the chapters, or those whose file name starts so
python book/tools.py widgets [NAME ...]     stores the code and the pictures of their widgets again, without executing
python book/tools.py lab [OPTION ...]       signs the chapters and opens JupyterLab on them; options are jupyter-lab's
python book/tools.py student                writes the chapters without solutions into _build/student
python book/tools.py instructor             executes the solutions of homework into _build/instructor
python book/tools.py slides                 makes slides of two chapters in _build/slides
python book/tools.py pdf                    prints the built pages into _build/html/pdf
python book/tools.py release [PYTHON ...]   builds both distributions and tries the wheel with each Python
"""

import hashlib
import os
import platform
import subprocess
import sys
import webbrowser
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import nbformat
from nbformat.sign import NotebookNotary

from bilevel_book import address
from bilevel_book.widgets.stored import live, settle
from bilevel_core.checkpoint import write_atomically
from workshop import ROOT, chapters, execute
from workshop.widgets import photograph

# Lab writes these on opening a notebook: stored as Lab writes them, opening changes nothing.
AS_LAB_WRITES = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
        "version": platform.python_version(),
    },
}
# The first cell of every chapter; tests/pages/test_installation.py runs it in three surroundings.
INSTALLATION = """\
# Only where the book is not installed.
import importlib.util
import subprocess
import sys
from pathlib import Path

if importlib.util.find_spec("bilevel_book") is None:
    here = Path.cwd()
    folders = [here, *here.parents]
    around = [path for path in folders if (path / "book/bilevel_book").is_dir()]
    if not around:
        raise ModuleNotFoundError(
            "bilevel_book is not installed: run `pip install . ./book` in the "
            "folder of this book's repository{where}."
        )
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, around[0], around[0] / "book"], check=True)
"""


def cover() -> None:
    from bilevel_book.figures import cover
    from bilevel_book.walk import walk
    from bilevel_core import FdeHBO
    from bilevel_core.problems import Valley

    problem, solver = Valley(), FdeHBO(alpha=0.01, beta=0.5, lam=0.5, eta=0.5, delta=0.05, r_v=3.0)
    cover(problem, walk(problem, solver, 60)).savefig(ROOT / "book" / "_static" / "cover.png", dpi=160)


def notebooks(*names: str) -> None:
    """Execute chapters in fresh kernels and store their outputs; an unchanged chapter gives an unchanged file."""
    os.environ.pop("JPY_SESSION_NAME", None)  # or, called from a terminal of Lab, it would store sliders without frames
    for path in chapters(*names):
        notebook = nbformat.read(path, as_version=4)
        dress(notebook)
        execute(notebook, path.name)
        clean(notebook)
        photograph(notebook)
        write_atomically(path, (nbformat.writes(notebook) + "\n").encode())


def widgets(*names: str) -> None:
    """Store the code of widgets, and the pictures that it draws, in chapters that need not run for that."""
    for path in chapters(*names):
        notebook = nbformat.read(path, as_version=4)
        for _, traits in live(notebook):
            traits.update(resolve_name(traits["_anywidget_id"]).code())
        photograph(notebook)
        write_atomically(path, (nbformat.writes(notebook) + "\n").encode())


def clean(notebook: nbformat.NotebookNode) -> None:
    """Drop what changes from run to run and what only a running kernel can use."""
    kept = settle(notebook)
    notebook.metadata = nbformat.from_dict(AS_LAB_WRITES | kept)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.metadata.pop("execution", None)


def dress(notebook: nbformat.NotebookNode) -> None:
    """What every chapter carries: a cell that installs the book where it is missing, and where its slides begin."""
    where = f", {address.repository()}" if address.repository() else ""
    if notebook.cells[1].get("id") != "installation":
        notebook.cells.insert(1, nbformat.v4.new_code_cell(id="installation", metadata={"tags": ["remove-cell"]}))
    notebook.cells[1].source = INSTALLATION.format(where=where).strip()
    notebook.cells[1].metadata.update(jupyter={"source_hidden": True}, slideshow={"slide_type": "skip"})
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.metadata.slideshow = {"slide_type": "slide" if cell.source.startswith(("# ", "## ")) else "subslide"}


def write_address() -> None:
    """Write the first cell of every chapter again, with the repository's address from _config.yml."""
    for path in chapters():
        notebook = nbformat.read(path, as_version=4)
        dress(notebook)
        write_atomically(path, (nbformat.writes(notebook) + "\n").encode())


def unchanged(paths: list[Path]) -> list[Path]:
    """Those that git tracks and that are as git has them; none where there is no git."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--format=%(objectname) %(path)", "--", "chapters"]
    listed = subprocess.run(command, capture_output=True, text=True)
    known = dict(line.split(" ", 1)[::-1] for line in listed.stdout.split("\0") if line)

    def blob(path: Path) -> str:
        content = path.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    return [path for path in paths if known.get(f"chapters/{path.name}") == blob(path)]


def lab(*options: str) -> None:
    """JupyterLab on the chapters. Signed, their stored widgets are there at once."""
    notary, ours = NotebookNotary(), unchanged(chapters())  # Lab runs no stored script without a signature
    for path in ours:
        notary.sign(nbformat.read(path, as_version=4))
    if others := [path.name for path in sorted((ROOT / "chapters").glob("*.ipynb")) if path not in ours]:
        print(f"Not signed, as git does not have them like this: {', '.join(others)}. Trust or run them in Lab.")
    more = ["--LabApp.expose_app_in_browser=True", "--LabApp.default_url=/lab/tree/chapters"]
    if os.geteuid() == 0:
        print("You are root, as in most containers: Lab is started with --allow-root.")
        more.append("--allow-root")
    try:
        webbrowser.get()
    except webbrowser.Error:
        print("No browser on this machine: open the address that Lab prints below in a browser of yours.")
        print('In a container, publish the port and say make lab ARGS="--ip=0.0.0.0".')
        more.append("--no-browser")
    sys.stdout.flush()
    command = [str(Path(sys.executable).with_name("jupyter-lab")), *more, *options]
    os.chdir(ROOT)
    settings = os.pathsep.join([str(ROOT / "book" / "_lab"), os.environ.get("JUPYTER_CONFIG_PATH", "")])
    os.execve(command[0], command, os.environ | {"JUPYTER_CONFIG_PATH": settings.rstrip(os.pathsep)})


if __name__ == "__main__":
    commands = {"address": write_address, "cover": cover, "lab": lab, "notebooks": notebooks, "widgets": widgets}
    made = ("instructor", "pdf", "release", "slides", "student")  # each by the module of its name in book/workshop
    if len(sys.argv) < 2 or sys.argv[1] not in (*commands, *made):
        sys.exit(__doc__)
    name, *options = sys.argv[1:]
    (commands.get(name) or getattr(import_module(f"workshop.{name}"), name))(*options)
