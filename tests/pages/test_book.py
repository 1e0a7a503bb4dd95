"""The book as files: notebooks stored from one clean run, pages that stand alone, promises that are kept."""

import doctest
import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import yaml

import bilevel_core
import ways
from bilevel_book import quiz

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
HTML = ROOT / "_build" / "html"


def code_cells(path):
    return [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]


def test_there_are_chapters_and_each_is_in_the_table_of_contents():
    toc = (ROOT / "_toc.yml").read_text()
    assert CHAPTERS
    assert all(f"chapters/{path.stem}\n" in toc for path in CHAPTERS)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_a_chapter_is_stored_from_one_clean_run(path):
    cells = code_cells(path)
    assert [c.execution_count for c in cells] == list(range(1, len(cells) + 1))
    assert not any(o.output_type == "error" or o.get("name") == "stderr" for c in cells for o in c.outputs)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_a_chapter_holds_no_state_of_a_live_kernel(path):
    raw = json.loads(path.read_text())
    assert set(raw["metadata"]) == {"kernelspec", "language_info"}
    assert "vnd.jupyter.widget" not in path.read_text()


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_a_chapter_marks_numbers_that_must_agree(path):
    strict = [c for c in code_cells(path) if "nbval-check-output" in c.metadata.get("tags", [])]
    assert len(strict) >= 3
    assert all(c.outputs for c in strict)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_every_picture_has_a_description(path):
    for cell in code_cells(path):
        if any("image/png" in o.get("data", {}) for o in cell.outputs):
            assert len(cell.metadata["mystnb"]["image"]["alt"]) > 60
            assert cell.metadata["mystnb"]["figure"]["caption"]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_a_chapter_has_its_anatomy(path):
    text = "\n".join(c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "markdown")
    for part in (
        r"\*\*You will (be able to|learn)\*\*",
        r"\*\*Time\*\*",
        r"\*\*(Needed before|Prerequisites)\*\*",
        "## Exercises",
        "## What to take away",
        "## Further reading",
    ):
        assert re.search(part, text), part
    exercises = re.findall(r"\{exercise-start\}(.*)\n:label: (\S+)", text)
    solved = [label for title, label in exercises if "(homework" not in title]
    assert len(solved) >= 2
    assert solved == re.findall(r"\{solution-start\} (\S+)\n", text)


@pytest.mark.parametrize("path", CHAPTERS[:8], ids=lambda p: p.stem)
def test_a_chapter_that_teaches_has_graded_exercises_hints_homework_and_a_quiz(path):
    text = "\n".join(c.source for c in nbformat.read(path, as_version=4).cells)
    titles = re.findall(r"\{exercise-start\} (.+)\n", text)
    grades = [re.search(r"\((homework, )?(easy|medium|hard)\)$", title) for title in titles]
    assert all(grades), titles
    homework = [bool(grade[1]) for grade in grades]
    assert homework.count(False) >= 4
    assert homework.count(True) == 2
    assert text.count(":::{admonition} Hint\n:class: dropdown tip") >= homework.count(False)
    assert f'quiz("{path.name[:2]}")' in text
    assert (ROOT / "book" / "instructor" / f"{path.name[:2]}.ipynb").is_file()


@pytest.mark.parametrize("path", CHAPTERS[:8], ids=lambda p: p.stem)
def test_no_assertion_interrupts_the_code_that_a_reader_sees(path):
    solution, folded = False, {"hide-cell", "hide-input", "remove-cell"}
    for cell in nbformat.read(path, as_version=4).cells:
        solution = (solution or "{solution-start}" in cell.source) and "{solution-end}" not in cell.source
        if cell.cell_type == "code" and not solution and not folded & set(cell.metadata.get("tags", [])):
            assert not re.search(r"^\s*assert ", cell.source, re.M), cell.source


@pytest.mark.parametrize("path", CHAPTERS[:8], ids=lambda p: p.stem)
def test_folds_say_what_is_in_them_and_the_quiz_is_stored(path):
    cells = code_cells(path)
    folds = [cell for cell in cells if "hide-cell" in cell.metadata.get("tags", [])]
    assert folds
    assert all(cell.metadata.mystnb.code_prompt_show and cell.metadata.jupyter.source_hidden for cell in folds)
    (asked,) = [cell for cell in cells if f'quiz("{path.name[:2]}")' in cell.source]
    assert "remove-input" in asked.metadata.tags
    assert asked.metadata.jupyter.source_hidden
    stored, now = asked.outputs[0].data["text/html"], quiz(path.name[:2])._repr_html_()
    assert re.findall("<form>.+?</form>", stored, re.S) == re.findall("<form>.+?</form>", now, re.S)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["README.md", "book/running.md"])
def test_the_ten_lines_of_the_library_run(path, capsys):
    failed, tried = doctest.testfile(str(ROOT / path), module_relative=False)
    assert failed == 0, capsys.readouterr().out
    assert tried >= 4


def test_the_readme_names_every_chapter():
    readme = (ROOT / "README.md").read_text()
    assert all(f"chapters/{path.name}" in readme for path in CHAPTERS)


def test_the_tree_of_the_readme_and_every_command_that_a_page_names_are_there():
    tree = re.findall(r"^\| `([\w./]+)/` \|", (ROOT / "README.md").read_text(), re.M)
    assert len(tree) > 5
    assert [name for name in tree if not (ROOT / name).is_dir()] == []
    targets = " ".join(re.findall(r"^([\w ]+):", (ROOT / "Makefile").read_text(), re.M)).split()
    for page in ("README.md", "CONTRIBUTING.md", "book/running.md", "book/how_it_is_built.md"):
        commands = re.findall(r"^make (\w+)|`make (\w+)", (ROOT / page).read_text(), re.M)
        assert {name for pair in commands for name in pair if name} - {"PYTHON"} <= set(targets), page


def test_the_front_page_and_the_page_for_lecturers_lead_where_they_say():
    index, teaching = ((ROOT / "book" / name).read_text() for name in ("index.md", "teaching.md"))
    assert "```{slider} 1\n" in index
    assert "```{findings}\n" in index
    assert all(f"/chapters/{path.name}" in index for path in CHAPTERS)
    cures = re.findall(r'^\d+\. \*\*".+"\*\* .* \*See\* (.+)$', teaching, re.M)
    assert len(cures) >= 8
    assert all(re.match(r"Chapter \d", cure) for cure in cures)
    for number, sections in re.findall(r"Chapter (\d+), ((?:“[^”]+”(?: and )?)+)", teaching):
        (path,) = (ROOT / "chapters").glob(f"{int(number):02d}_*.ipynb")
        text = "\n".join(c.source for c in nbformat.read(path, as_version=4).cells)
        for section in re.findall("“(.+?)”", sections):
            assert f"## {section}\n" in f"{text}\n", (number, section)
    targets = re.findall(r"^([\w ]+):", (ROOT / "Makefile").read_text(), re.M)
    assert set(re.findall(r"`make (\w+)", teaching)) <= set(" ".join(targets).split())


def test_versions_agree():
    version = bilevel_core.__version__
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"] == ["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^## \[(.+)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.M)[0] == version


def test_requirements_are_pinned():
    lines = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]+==\S+", line) for line in lines)
    assert "torch==2.13.0" in lines


@pytest.fixture(scope="module")
def pages():
    if not (found := [page for part in ("book", "chapters", "experiments") for page in (HTML / part).rglob("*.html")]):
        pytest.skip("the book is not built: run `make book`")
    return found


def test_pages_are_light(pages):
    """Frames of sliders come later, each slider's by themselves."""
    frames = list((HTML / "_static" / "frames").glob("*.js"))
    assert len(frames) > 20
    assert [path.name for path in [*pages, *frames] if path.stat().st_size > 1_000_000] == []


def test_every_page_is_in_the_site_map_and_in_the_list_for_programs_that_read(pages):
    listed = set(re.findall("<loc>(.+)</loc>", (HTML / "sitemap.xml").read_text()))
    base = yaml.safe_load((ROOT / "_config.yml").read_text())["html"]["baseurl"]
    assert listed == {f"{base}{page.relative_to(HTML).as_posix()}" for page in pages}
    words = (HTML / "llms.txt").read_text()
    assert words.startswith("# Stochastic bilevel optimisation\n\n> ")
    assert set(re.findall(r"^- \[[^\]]+\]\((\S+)\)", words, re.M)) == listed


def test_pages_are_listed_and_printed_in_the_order_of_the_book():
    below = {"front": ["api", "glossary"], "api": ["problems", "methods"]}
    app = SimpleNamespace(config=SimpleNamespace(root_doc="front"), env=SimpleNamespace(toctree_includes=below))
    assert ways.pages(app) == ["front", "api", "problems", "methods", "glossary"]


def test_a_link_to_a_page_is_shown_with_its_title_and_a_picture(pages):
    base = yaml.safe_load((ROOT / "_config.yml").read_text())["html"]["baseurl"]
    for page in pages:
        told = dict(re.findall(r'<meta property="og:([\w:]+)" content="([^"]*)"', page.read_text()))
        assert told["url"] == f"{base}{page.relative_to(HTML).as_posix()}"
        assert told["image"] == f"{base}_static/cover.png"
        assert told["title"]
        assert len(told["image:alt"]) > 60


def test_no_formula_is_raw_in_the_navigation(pages):
    links = re.findall(r'<li class="toctree-l\d[^>]*>\s*<a [^>]*>([^<]*)', pages[0].read_text())
    assert len(links) > 20
    assert [words for words in links if re.search(r"[\\^$_{}]", words)] == []


def test_every_test_that_the_erratum_names_exists():
    named = set(re.findall(r"`(?:tests/\S+::)?(test_\w+)`", (ROOT / "book" / "erratum.md").read_text()))
    defined = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    assert len(named) > 20
    assert named - defined - {path.stem for path in (ROOT / "tests").rglob("test_*.py")} == set()
