"""What is made of the chapters beside the pages: copies for students, solutions for instructors, slides, PDFs."""

import re
import subprocess
from unicodedata import normalize

import nbformat
import pytest
from pypdf import PdfReader

import tools
from workshop import ROOT, chapters, pdf
from workshop.exercises import exercises
from workshop.slides import slides
from workshop.student import task, without_solutions

every_chapter = pytest.mark.parametrize("path", chapters(), ids=lambda p: p.stem)
INSTRUCTOR = ROOT / "book" / "instructor"


def read(path):
    return nbformat.read(path, as_version=4)


SOLUTION = """
side = 3


def area(r, *, exact=True):
    \"\"\"Of a circle.\"\"\"
    return 3.14 * r**2  # the answer


class Square:
    sides = 4

    def area(self):
        return side**2


total = area(1) + Square().area()
assert total > 12
"""


def test_stub_hides_bodies_and_its_check_finds_the_solution_right():
    parts = task(SOLUTION)
    assert not re.search(r"3\.14|side\*\*2", parts.stub)
    stubbed, solved = {}, {}
    exec(parts.stub, stubbed)
    assert (stubbed["side"], stubbed["Square"].sides, stubbed["area"].__doc__) == (3, 4, "Of a circle.")
    with pytest.raises(TypeError):
        exec(parts.check, stubbed)
    exec(parts.answer, solved)
    exec(parts.check, solved)


def test_stub_without_functions_asks_for_the_names_that_are_checked():
    parts = task("a = 2\n# one more\nb = a + 1\n# its double\nc, d = b * 2, a\nprint(c)\nassert c == 3 * d\n")
    assert parts.stub.splitlines()[1:] == ["c = ...  # its double", "d = ...  # its double"]
    assert parts.check.splitlines()[1:] == ["assert c == 3 * d"]
    free = task("from math import pi\nk = 3\nfor k in (1, pi):\n    assert k")  # checks nothing of the student's
    assert (free.stub, free.check) == ("from math import pi\n# Your code, if you need any.", "")


@every_chapter
def test_student_copy_has_every_exercise_and_no_solution(path):
    chapter, copy = read(path), without_solutions(read(path))
    nbformat.validate(copy)
    text = "\n".join(cell.source for cell in copy.cells)
    assert "{solution-" not in text
    assert "# Solution" not in text
    ids = [cell.get("id") for cell in copy.cells]
    solved = {k for exercise in exercises(chapter) for k in exercise.solution}
    new = {f"{exercise.label}-{part}" for exercise in exercises(chapter) for part in ("words", "stub", "check")}
    assert [name for name in ids if name not in new] == [c.id for k, c in enumerate(chapter.cells) if k not in solved]


@every_chapter
def test_homework_is_solved_for_the_instructor_only(path):
    for exercise in exercises(read(path)):
        if "homework" in exercise.title:
            assert exercise.solution == []
            cells = read(INSTRUCTOR / f"{path.name[:2]}.ipynb").cells
            heads = [k for k, cell in enumerate(cells) if cell.source.startswith("## ")]
            (start,) = [k for k in heads if exercise.label in cells[k].source]
            end = next((k for k in heads if k > start), len(cells))
            assert any("assert" in cell.source for cell in cells[start:end] if cell.cell_type == "code")
    assert not list((ROOT / "_build" / "html").rglob("*instructor/*"))


@pytest.mark.slow
@pytest.mark.browser
def test_slides_go_forward_offline_with_their_formulas(window, tmp_path):
    slides(tmp_path / "slides")
    page, wrong = window.new_page(), []
    page.on("requestfailed", lambda request: wrong.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(next((tmp_path / "slides").glob("01*.html")).as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady() && MathJax.startup.promise")
    page.evaluate("MathJax.startup.promise.then(() => true)")
    page.keyboard.press("Space")
    page.wait_for_function("Reveal.getIndices().h === 1")
    assert page.locator("section.present h2").first.is_visible()
    assert page.evaluate("Reveal.getTotalSlides()") > 15
    assert page.locator("mjx-merror").count() == 0
    shown = page.locator(".slides section:not(:has(section))").all_inner_texts()
    assert not [text for text in shown if re.search(r":::|\{eq\}|\{prf|-start\}|\$\$", text)]
    assert wrong == []
    page.close()


@pytest.mark.slow
@pytest.mark.browser
def test_printed_page_has_its_text_and_figures_and_no_controls(window, tmp_path, monkeypatch):
    (page,) = (ROOT / "_build" / "html" / "chapters").glob("15*.html")
    monkeypatch.setattr(pdf, "TARGET", tmp_path)
    tab = window.new_page()
    file = pdf.printed(tab, page)
    caption, label = (tab.locator(f"figure.live {part}").first.inner_text() for part in ("figcaption", "label span"))
    words = " ".join(page.extract_text() for page in PdfReader(file).pages)
    words = " ".join(normalize("NFKC", words).split())  # without ligatures
    assert caption in words
    assert label not in words  # nobody moves a slider on paper
    assert "further reading" in words.lower()
    book = PdfReader(pdf.joined([(file, "One"), (file, "Two")], tmp_path / "book.pdf"))
    assert [entry.title for entry in book.outline] == ["One", "Two"]
    tab.close()


def test_lab_signs_only_what_git_has(tmp_path, monkeypatch):
    monkeypatch.setattr(tools, "ROOT", tmp_path)
    (tmp_path / "chapters").mkdir()
    paths = [tmp_path / "chapters" / f"{name}.ipynb" for name in ("same", "changed", "downloaded")]
    for path in paths:
        path.write_text("{}")
    assert tools.unchanged(paths) == []  # there is no git
    for command in (["init", "-q"], ["add", "chapters/same.ipynb", "chapters/changed.ipynb"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    paths[1].write_text("{ }")
    assert tools.unchanged(paths) == paths[:1]
