"""The book as files: notebooks stored from one clean run, pages that stand alone, promises that are kept."""

import doctest
import json
import re
from pathlib import Path
from pkgutil import resolve_name

import nbformat
import pytest

from bilevel_book import address, quiz
from bilevel_book.widgets.stored import VIEW, live

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
HTML = ROOT / "_build" / "html"
LESSONS = [path for path in CHAPTERS if path.stem[2] == "_"]  # not the details, 11a_...
every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
every_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda p: p.stem)
taught_chapter = pytest.mark.parametrize("path", CHAPTERS[:8], ids=lambda p: p.stem)
FOLDED = {"hide-cell", "hide-input", "remove-cell"}


def cells_of(path: Path, kind: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@every_chapter
def test_chapter_is_stored_from_one_clean_run(path):
    cells = cells_of(path, "code")
    assert [c.execution_count for c in cells] == list(range(1, len(cells) + 1))
    assert not any(o.output_type == "error" or o.get("name") == "stderr" for c in cells for o in c.outputs)
    notebook = json.loads(path.read_text())
    kept = {"widgets"} if list(live(notebook)) else set()
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"} | kept


@every_chapter
def test_stored_widgets_are_those_of_the_code(path):
    for _, traits in live(json.loads(path.read_text())):
        code = resolve_name(name := traits["_anywidget_id"]).code()
        assert {part: traits[part] for part in code} == code, f"{name} has changed: python book/tools.py widgets"


@every_chapter
def test_chapter_marks_numbers_that_must_agree_and_describes_pictures(path):
    cells = cells_of(path, "code")
    strict = [c for c in cells if "nbval-check-output" in c.metadata.get("tags", [])]
    assert len(strict) >= 3
    assert all(c.outputs for c in strict)
    for cell in cells:
        if any("image/png" in o.get("data", {}) and VIEW not in o.data for o in cell.outputs):  # a widget has its own
            assert len(cell.metadata["mystnb"]["image"]["alt"]) > 60
            assert cell.metadata["mystnb"]["figure"]["caption"]


@every_lesson
def test_chapter_has_its_anatomy(path):
    words = "\n".join(cell.source for cell in cells_of(path, "markdown"))
    parts = ["**You will learn**\n\n- ", "**Prerequisites**", "**Time** about", "## What to take away", "## Exercises"]
    places = [words.find(part) for part in [*parts, "## Further reading"]]
    assert -1 not in places
    assert places == sorted(places)
    exercises = re.findall(r"\{exercise-start\}(.*)\n:label: (\S+)", words)
    solved = [label for title, label in exercises if "homework" not in title]
    assert len(solved) >= 2
    assert solved == re.findall(r"\{solution-start\} (\S+)\n", words)


@taught_chapter
def test_taught_chapter_folds_assertions_and_stores_its_quiz(path):
    solution, cells = False, nbformat.read(path, as_version=4).cells
    for cell in cells:
        solution = (solution or "{solution-start}" in cell.source) and "{solution-end}" not in cell.source
        if cell.cell_type == "code" and not solution and not FOLDED & set(cell.metadata.get("tags", [])):
            assert not re.search(r"^\s*assert ", cell.source, re.M), cell.source
    (asked,) = [cell for cell in cells if cell.cell_type == "code" and f'quiz("{path.name[:2]}")' in cell.source]
    stored, now = asked.outputs[0].data["text/html"], quiz(path.name[:2])._repr_html_()
    assert re.findall("<form>.+?</form>", stored, re.S) == re.findall("<form>.+?</form>", now, re.S)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["README.md", "book/running.md"])
def test_examples_of_a_page_run(path, capsys):
    failed, tried = doctest.testfile(str(ROOT / path), module_relative=False)
    assert failed == 0, capsys.readouterr().out
    assert tried >= 4


def test_every_chapter_is_listed():
    assert [path.stem for path in CHAPTERS if f"chapters/{path.stem}" not in text("_toc.yml")] == []
    for page in ("README.md", "book/index.md"):
        assert [path.stem for path in LESSONS if f"chapters/{path.stem}" not in text(page)] == [], page


def test_commands_that_pages_name_exist():
    targets = " ".join(re.findall(r"^([\w ]+):", text("Makefile"), re.M)).split()
    for page in ("README.md", "CONTRIBUTING.md", "book/running.md", "book/how_it_is_built.md", "book/teaching.md"):
        commands = re.findall(r"^make (\w+)|`make (\w+)", text(page), re.M)
        assert {name for pair in commands for name in pair if name} - {"PYTHON"} <= set(targets), page


def test_sections_that_the_teaching_page_names_exist():
    for number, sections in re.findall(r"Chapter (\d+), ((?:“[^”]+”(?: and )?)+)", text("book/teaching.md")):
        (path,) = (ROOT / "chapters").glob(f"{int(number):02d}_*.ipynb")
        words = "\n".join(cell.source for cell in cells_of(path, "markdown"))
        for section in re.findall("“(.+?)”", sections):
            assert f"## {section}\n" in f"{words}\n", (number, section)


def test_tests_that_the_erratum_and_the_proof_name_exist():
    words = text("book/erratum.md") + text("chapters/13_the_theorem.ipynb")
    named = set(re.findall(r"`(?:tests/\S+::)?(test_\w+)`", words))
    files = list((ROOT / "tests").rglob("test_*.py"))
    defined = {name for path in files for name in re.findall(r"def (test_\w+)", path.read_text())}
    assert len(named) > 20
    assert named - defined - {path.stem for path in files} == set()


@pytest.fixture(scope="module")
def pages():
    if not (found := [page for part in ("book", "chapters", "experiments") for page in (HTML / part).rglob("*.html")]):
        pytest.skip("the book is not built: run `make book`")
    return found


def test_pages_are_light(pages):
    """Widgets come later, each from a file of its own."""
    scripts = list((HTML / "_static" / "widgets").glob("*.js"))
    assert len(scripts) > 20
    assert [path.name for path in [*pages, *scripts] if path.stat().st_size > 1_000_000] == []


def test_pages_do_not_name_the_folder_of_the_build(pages):
    assert [page.name for page in pages if str(HTML.parents[1]) in page.read_text()] == []


def test_list_for_programs_has_every_page(pages):
    words = (HTML / "llms.txt").read_text()
    listed = re.findall(r"^- \[[^\]]+\]\((\S+)\)", words, re.M)
    assert {link.removeprefix(address.pages()) for link in listed} == {p.relative_to(HTML).as_posix() for p in pages}


def test_pages_without_an_address_have_no_link_that_needs_one(pages):
    """Nothing that would lead to a repository or to the published pages while nobody knows where they are."""
    if address.repository():
        pytest.skip("the book has an address")
    needs_address = re.compile(r"mybinder\.org/v2|colab\.research|img\.shields\.io|rel=\"canonical\"|property=\"og:")
    assert [page.name for page in pages if needs_address.search(page.read_text())] == []
