"""The house as files: its arrows, its size, the page that describes it, and what each of its two packages ships."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

import house

ROOT = Path(__file__).resolve().parents[2]
# Raised only with a reason. 2800 was the aim of the house, 4000 of the whole. What came on top: shared passes 300;
# errors that name file, table and key 300; calibrated experiments 250; runs that warn, and checkpoints of this very run
# 440; data of any kind and modules that keep still 220; step rules and AID-CG 110; refit, objective and suggest 330; a
# problem that is tried before it runs 90; an x on its way and refused sums 30; seven newer methods 380, half of it
# citation, formula and what was read; one problem on several processes, and layers that are refused for being computed
# again at other weights, 220; sweeps on a cluster, and shared by commands, 220; the doctor 90. Of the lines 3350 are
# code, the rest docstrings, imports and blanks.
MOST_LINES = 6090
LONGEST_FILE = 310  # one idea each


def test_imports_follow_the_arrows(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert lint_imports(no_cache=True, no_logo=True) == 0, capsys.readouterr().out


def test_the_library_depends_on_what_it_imports_and_on_nothing_else():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    given = project["dependencies"], project["optional-dependencies"]["cluster"]
    needed, cluster = ({re.match(r"\w+", requirement)[0] for requirement in part} for part in given)
    text = "\n".join(path.read_text() for path in (ROOT / "bilevel_core").rglob("*.py"))
    imported = {*re.findall(r"^ *(?:from|import) (\w+)", text, re.M)} - {*sys.stdlib_module_names, "bilevel_core"}
    assert imported - cluster == needed


def test_the_library_is_read_in_an_evening():
    lines = {path: len(path.read_text().splitlines()) for path in (ROOT / "bilevel_core").rglob("*.py")}
    assert sum(lines.values()) <= MOST_LINES
    assert [path for path, number in lines.items() if number > LONGEST_FILE] == []


def test_the_page_lists_every_room_of_the_library_and_nothing_that_is_not_there():
    page, listed, folders = (ROOT / "book" / "how_it_is_built.md").read_text(), set(), {"": ROOT}
    for indent, name in re.findall(r"^( *)- `([\w./]+)`: ", page.split("## The arrows")[0], re.M):
        folders[indent + "  "] = path = folders[indent] / name
        assert path.exists(), path
        listed.add(path)
    rooms = (
        path for path in (ROOT / "bilevel_core").iterdir() if (path / "__init__.py").exists() or path.suffix == ".py"
    )
    assert {path.name for path in rooms if path not in listed} == {"__init__.py"}


@pytest.mark.slow
def test_the_picture_shows_every_import_and_says_when_one_points_up():
    rooms, arrows = house.house()
    assert house.upward(rooms, arrows) == []
    assert "all of them point down" in house.message(rooms, arrows)
    drawn = house.svg(rooms, arrows)
    assert drawn.count("<path") == drawn.count('class="down"') == len(arrows)
    assert all(f">{room.name}</text>" in drawn for room in rooms)
    wrong = (house.Room("bilevel_core", "solvers"), house.Room("bilevel_book", "figures"))
    assert house.upward(rooms, arrows | {wrong}) == [wrong]
    assert "bilevel_core.solvers imports bilevel_book.figures" in house.message(rooms, arrows | {wrong})
    assert house.svg(rooms, arrows | {wrong}).count('class="up"') == 1


def below(folder: Path, *patterns: str) -> set[str]:
    """The files in a folder, at any depth, that match one of the patterns; named from the folder."""
    found = {path for pattern in patterns for path in folder.rglob(pattern) if "__pycache__" not in path.parts}
    return {path.relative_to(folder).as_posix() for path in found}


def built(kind: str, source: Path, folder: Path) -> Path:
    """The "wheel" or the "sdist" of a project."""
    build = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(folder)!r}))"
    told = subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True, text=True).stdout
    return folder / told.splitlines()[-1]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> dict[str, Path]:
    """The wheel of the library, by way of its source distribution, and that of the book.

    They are built from a copy without what no package needs, so that the checkout stays as it is.
    """
    folder = tmp_path_factory.mktemp("wheels")
    heavy = (".*", "_build", "_vendor", "build", "*.egg-info", "__pycache__", "chapters")
    copy = shutil.copytree(ROOT, folder / "copy", ignore=shutil.ignore_patterns(*heavy))
    with tarfile.open(built("sdist", copy, folder)) as file:
        file.extractall(folder / "unpacked", filter="data")
    (source,) = (folder / "unpacked").iterdir()
    return {"bilevel_core": built("wheel", source, folder), "bilevel_book": built("wheel", copy / "book", folder)}


def names(path: Path) -> set[str]:
    """What a wheel holds."""
    with zipfile.ZipFile(path) as file:
        return {name for name in file.namelist() if ".dist-info/" not in name}


@pytest.mark.slow
def test_the_library_ships_its_code_its_types_mnist_and_the_experiments(wheels):
    assert names(wheels["bilevel_core"]) == (
        {f"bilevel_core/{name}" for name in below(ROOT / "bilevel_core", "*.py", "py.typed")}
        | {f"bilevel_core/mnist/{name}" for name in below(ROOT / "data" / "mnist", "*.py", "*.gz", "README.md")}
        | {f"bilevel_core/configurations/{name}" for name in below(ROOT / "experiments", "*.py", "*.toml", "*.json")}
    )


@pytest.mark.slow
def test_the_package_of_the_book_ships_all_of_its_folder_and_the_results(wheels):
    package = ROOT / "book" / "bilevel_book"
    files = {name for name in below(package, "*") if (package / name).is_file()}
    files |= {f"results/{name}" for name in below(ROOT / "results", "*.csv", "*.json")}
    assert names(wheels["bilevel_book"]) == {f"bilevel_book/{name}" for name in files}


ALONE = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
notebook.cells.append(nbformat.v4.new_code_cell("import bilevel_book; print(bilevel_book.__file__)"))
NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
print(notebook.cells[-1].outputs[0].text)
"""


@pytest.mark.slow
def test_a_chapter_taken_out_of_the_tree_runs_by_itself(wheels, tmp_path):
    site, empty = tmp_path / "site", tmp_path / "empty"
    for path in wheels.values():
        with zipfile.ZipFile(path) as file:
            file.extractall(site)
    empty.mkdir()
    chapter = shutil.copy(ROOT / "chapters" / "15_what_a_step_costs.ipynb", empty)
    # Before the tree on the path; live, so that no frames are drawn.
    surroundings = os.environ | {"PYTHONPATH": str(site), "BILEVEL_BOOK_LIVE": "1"}
    command = [sys.executable, "-c", ALONE, chapter]
    done = subprocess.run(command, cwd=empty, env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == str(site / "bilevel_book" / "__init__.py")
