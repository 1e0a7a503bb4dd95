"""The house as files: its sizes, its arrows, and what each of its two packages ships."""

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

import bilevel_core

ROOT = Path(__file__).resolve().parents[2]
# The most lines of tracked files by folder and ending, and the most files. A limit is never raised.
MOST_LINES = {
    ("bilevel_core", ".py"): 2_700,
    ("book", ".py"): 12_000,
    ("tests", ".py", ".toml"): 13_000,
    ("benchmarks", ".py"): 1_700,
    ("book", ".toml"): 2_500,
}
MOST_FILES = {"": 640, "results/": 120}


def tracked(prefix: str = "") -> list[Path]:
    """The files of the repository, as git lists them."""
    listed = subprocess.run(["git", "ls-files", "-z", prefix or "."], cwd=ROOT, capture_output=True, check=True).stdout
    return [path for name in listed.decode().split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.parametrize(("folder", "endings"), [(folder, endings) for folder, *endings in MOST_LINES])
def test_lines_stay_within_their_limit(folder, endings):
    lines = sum(path.read_bytes().count(b"\n") for path in tracked(folder) if path.suffix in endings)
    assert lines <= MOST_LINES[folder, *endings]


@pytest.mark.parametrize("folder", MOST_FILES)
def test_files_stay_within_their_limit(folder):
    assert len(tracked(folder)) <= MOST_FILES[folder]


def test_imports_follow_the_arrows(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert lint_imports(no_cache=True, no_logo=True) == 0, capsys.readouterr().out


def test_no_module_has_the_name_of_an_exported_function():
    modules = {path.stem for path in (ROOT / "bilevel_core").rglob("*.py")}
    assert modules & {name for name in bilevel_core.__all__ if callable(getattr(bilevel_core, name))} == set()


@pytest.mark.parametrize(
    ("package", "project"), [("bilevel_core", "pyproject.toml"), ("book/bilevel_book", "book/pyproject.toml")]
)
def test_dependencies_are_what_is_imported(package, project):
    given = tomllib.loads((ROOT / project).read_text())["project"]["dependencies"]
    needed = {re.match(r"[\w-]+", requirement)[0].replace("-", "_").lower() for requirement in given}
    text = "\n".join(path.read_text() for path in (ROOT / package).rglob("*.py"))
    imported = {name.lower() for name in re.findall(r"^ *(?:from|import) (\w+)", text, re.M)}
    assert needed - {"ruff", "pillow"} <= imported  # ruff is a command, pillow is imported as PIL


def test_workflows_run_actions_by_commit_and_ask_for_permissions():
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = file.read_text(encoding="utf-8")
        assert all(re.search(r"@[0-9a-f]{40} # v", line) for line in text.splitlines() if "uses:" in line), file.name
        assert re.search(r"^ *permissions:\n +contents: read$", text, re.M), file.name


def test_text_is_read_and_written_as_utf8():
    """Whatever the locale: a call that opens a text file says its encoding on the same line."""
    opened = re.compile(r"(read_text|write_text)\(|open\([^)]*\"[rwa]t?\"")
    for file in [*tracked("bilevel_core"), *tracked("book/bilevel_book")]:
        if file.suffix == ".py":
            lines = [line for line in file.read_text(encoding="utf-8").splitlines() if opened.search(line)]
            assert not [line for line in lines if "encoding=" not in line], file.name


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
def test_library_wheel_has_code_and_types_alone(wheels):
    assert names(wheels["bilevel_core"]) == {
        f"bilevel_core/{name}" for name in below(ROOT / "bilevel_core", "*.py", "py.typed")
    }


@pytest.mark.slow
def test_book_wheel_has_its_folder_results_experiments_and_mnist(wheels):
    package = ROOT / "book" / "bilevel_book"
    files = {name for name in below(package, "*") if (package / name).is_file()}
    files |= {f"results/{name}" for name in below(ROOT / "results", "*.csv", "*.json")}
    files |= {f"configurations/{name}" for name in below(ROOT / "experiments", "*.toml", "*.json")}
    files |= {f"mnist_files/{name}" for name in below(ROOT / "data" / "mnist", "*.gz", "README.md")}
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
def test_chapter_outside_the_tree_runs(wheels, tmp_path):
    site, empty = tmp_path / "site", tmp_path / "empty"
    for path in wheels.values():
        with zipfile.ZipFile(path) as file:
            file.extractall(site)
    empty.mkdir()
    chapter = shutil.copy(ROOT / "chapters" / "15_what_a_step_costs.ipynb", empty)
    # Before the tree on the path; as if somebody looked, so that no frames are drawn.
    surroundings = os.environ | {"PYTHONPATH": str(site), "JPY_SESSION_NAME": "a test"}
    command = [sys.executable, "-c", ALONE, chapter]
    done = subprocess.run(command, cwd=empty, env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == str(site / "bilevel_book" / "__init__.py")
