"""What is made of the chapters beside the pages: copies for students, solutions for instructors, slides."""

import ast
import contextlib
import io
import random
import re
from datetime import date
from pathlib import Path
from unicodedata import normalize

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from pypdf import PdfReader

from workshop import ROOT, chapters, pdf
from workshop.exercises import exercises
from workshop.minutes import practising, reading, told
from workshop.plain import numbers, plain
from workshop.slides import points, sentences, slides
from workshop.student import task, without_solutions

every_chapter = pytest.mark.parametrize("path", chapters(), ids=lambda p: p.stem)
taught = pytest.mark.parametrize("path", chapters(*(f"0{k}" for k in range(1, 9))), ids=lambda p: p.stem)
INSTRUCTOR = ROOT / "book" / "instructor"


def read(path):
    return nbformat.read(path, as_version=4)


SOLUTION = """
import math

side = 3


def area(r, *, exact=True):
    \"\"\"Of a circle.\"\"\"
    return math.pi * r**2  # the answer


class Square:
    sides = 4

    def area(self):
        return side**2


total = area(1) + Square().area()
assert total > 12
for r in (1, 2):
    assert area(r) == math.pi * r**2
"""


def test_functions_and_classes_of_a_solution_lose_their_bodies_and_the_rest_checks_them():
    parts = task(SOLUTION)
    assert "math.pi" not in parts.stub
    assert "side**2" not in parts.stub
    given = {"side": 3, "sides": 4}
    stubbed, solved = {}, {}
    exec(parts.stub, stubbed)
    assert (stubbed["side"], stubbed["Square"].sides, stubbed["area"].__doc__) == (*given.values(), "Of a circle.")
    with pytest.raises(TypeError):
        exec(parts.check, stubbed)
    exec(parts.answer, solved)
    exec(parts.check, solved)
    assert solved["total"] == pytest.approx(12.14, abs=0.01)


def test_a_solution_without_functions_leaves_the_names_that_its_assertions_read():
    parts = task("a = 2\n# one more\nb = a + 1\n# its double\nc, d = b * 2, a\nprint(c)\nassert c == 3 * d\n")
    assert parts.stub.splitlines()[1:] == ["c = ...  # its double", "d = ...  # its double"]
    assert parts.check.splitlines()[1:] == ["assert c == 3 * d"]
    assert task("c = 2\nassert c == 2").stub.splitlines()[1:] == ["c = ..."]


@pytest.mark.parametrize("solution", ["", "print(2)", "from math import pi\nk = 3\nfor k in (1, pi):\n    assert k"])
def test_a_solution_that_checks_nothing_of_the_student_leaves_room_and_what_it_imports(solution):
    *imports, words = task(solution).stub.splitlines()
    assert words == "# Your code, if you need any."
    assert imports == solution.splitlines()[:1] * ("import" in solution)
    assert task(solution).check == ""


@every_chapter
def test_a_student_s_copy_has_every_exercise_no_solution_and_all_else(path):
    chapter, copy = read(path), without_solutions(read(path))
    nbformat.validate(copy)
    text = "\n".join(cell.source for cell in copy.cells)
    assert "{solution-" not in text
    assert "# Solution" not in text
    ids = [cell.get("id") for cell in copy.cells]
    solved = {k for exercise in exercises(chapter) for k in exercise.solution}
    new = {f"{exercise.label}-{part}" for exercise in exercises(chapter) for part in ("words", "stub", "check")}
    assert [name for name in ids if name not in new] == [c.id for k, c in enumerate(chapter.cells) if k not in solved]
    for exercise in exercises(chapter):
        place = ids.index(f"{exercise.label}-words")
        assert re.search(r"\{exercise-end\}|^# Your code|^# Your answer|\.\.\.", copy.cells[place - 1].source)
        assert ids[place + 1] == f"{exercise.label}-stub"


@taught
def test_a_stub_says_what_to_write(path):
    notebook = read(path)
    for exercise in exercises(notebook):
        stub = task(exercise.code(notebook)).stub
        assert not re.search(r"^\w+ = \.\.\.$", stub, re.M), stub
        functions = [node for node in ast.parse(stub).body if isinstance(node, ast.FunctionDef)]
        assert all(map(ast.get_docstring, functions)), stub


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # as in a kernel
@pytest.mark.parametrize("which", [0, 1])
def test_solutions_pass_the_checks_of_the_stubs_and_empty_stubs_do_not(which, monkeypatch):
    """Of two chapters, others every day: nbval executes them all."""
    path = random.Random(str(date.today())).sample(chapters(*(f"0{k}" for k in range(1, 9))), 2)[which]
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr("bilevel_book.sliders.explore", lambda *_, **__: None)  # no exercise needs a frame
    notebook = read(path)
    found = list(exercises(notebook))
    solved = {k for exercise in found for k in exercise.solution}
    space = {"__name__": "__main__"}  # as in a kernel
    with contextlib.redirect_stdout(io.StringIO()):
        for k, cell in enumerate(notebook.cells):
            if cell.cell_type == "code" and k not in solved:
                exec(compile(cell.source, f"{path.name}, cell {k}", "exec"), space)
        for exercise in found:
            parts = task(exercise.code(notebook))
            exec(parts.stub, space)
            if parts.check:
                with pytest.raises((AssertionError, TypeError, ValueError, AttributeError)):
                    exec(parts.check, space)
                exec(parts.answer, space)
                exec(parts.check, space)


def homework():
    for path in chapters():
        for exercise in exercises(read(path)):
            if "homework" in exercise.title:
                yield pytest.param(path, exercise, id=exercise.label)


@pytest.mark.parametrize(("path", "exercise"), list(homework()))
def test_homework_is_solved_for_the_instructor_and_nowhere_else(path, exercise):
    assert exercise.homework
    assert "-hw-" in exercise.label
    assert exercise.solution == []
    cells = read(INSTRUCTOR / f"{path.name[:2]}.ipynb").cells
    (start,) = [k for k, cell in enumerate(cells) if cell.source.startswith("## ") and exercise.label in cell.source]
    end = next((k for k in range(start + 1, len(cells)) if cells[k].source.startswith("## ")), len(cells))
    assert any("assert" in cell.source for cell in cells[start:end] if cell.cell_type == "code")


def test_no_page_shows_the_solutions_of_homework():
    assert "instructor" not in (ROOT / "_toc.yml").read_text().replace("book/instructors", "")
    assert not (ROOT / "_build" / "html" / "book" / "instructor").exists()
    assert not list((ROOT / "_build" / "html").rglob("*instructor/*"))


def test_minutes_are_words_lines_sliders_and_grades():
    cells = [
        new_markdown_cell("**Time** soon. " + "word $a+b$ " * 129),
        new_markdown_cell(":::{note} Six\n:class: tip\n\nword\n:::"),  # markup is not read
        new_code_cell("a = 1\n\nb = 2\n" * 4),
        new_code_cell("hidden = 1", metadata={"tags": ["hide-cell"]}),
        new_code_cell("explore(draw)", metadata={"tags": ["remove-input"]}),
        new_markdown_cell("```{exercise-start} One (hard)\n:label: ex\n```\nmany words\n```{exercise-end}\n```"),
        new_markdown_cell("```{exercise-start} Two (homework, hard)\n:label: hw\n```\n```{exercise-end}\n```"),
    ]
    notebook = new_notebook(cells=cells)
    assert reading(notebook) == (2 + 258 + 1) / 130 + 8 / 8 + 2
    assert told(notebook) == "**Time** about 5 minutes, and 15 more for the exercises."
    cells[5].source = cells[5].source.replace("hard", "heavy")
    with pytest.raises(ValueError, match=r"'ex' has the title 'One \(heavy\)'; end it with \(easy\), \(medium\)"):
        told(notebook)


@taught
def test_the_time_in_the_head_of_a_chapter_follows_the_rule(path):
    notebook = read(path)
    (said,) = re.findall(r"\*\*Time\*\* about (\d+) minutes, and (\d+) more", notebook.cells[0].source)
    assert float(said[0]) == pytest.approx(reading(notebook), rel=0.1, abs=2.5)
    assert int(said[1]) == practising(notebook)


MYST = """(here)=
## A bound

Two facts, one of them in {prf:ref}`lem`. A second sentence. So, by [(1.2)](01_a.ipynb#x),

$$
a = b
$$ (eq-a)

:::{admonition} Answer
:class: dropdown tip

Forty-two.
:::

```{prf:lemma} Small
:label: lem

By {eq}`eq-a`, done.
```
"""


def test_what_only_myst_knows_becomes_plain_markdown_with_the_numbers_of_the_page():
    number = numbers(3, [MYST])
    assert number == {"eq-a": "(3.1)", "lem": "Lemma 3.1"}
    assert plain(MYST, number).split("\n\n") == [
        "## A bound",
        "Two facts, one of them in Lemma 3.1. A second sentence. So, by (1.2),",
        "$$\na = b \\tag{3.1}\n$$",
        "> **Lemma 3.1: Small**\n> \n> By (3.1), done.",
    ]


def test_a_slide_shows_claims_and_what_leads_to_formulas():
    text = plain(MYST, numbers(3, [MYST]))
    assert points(text).split("\n\n")[1] == "- So, by (1.2),"
    assert points("One. Two.\n\nThree. Four.") == "- One.\n\n- Three."
    assert sentences("At $x=0.5$ it is $1$. Then, say, e.g. 2.5 of them.") == [
        "At $x=0.5$ it is $1$.",
        "Then, say, e.g. 2.5 of them.",
    ]


@pytest.fixture(scope="module")
def deck(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("out") / "slides"
    slides(target)
    return target


@pytest.mark.slow
@pytest.mark.browser
def test_slides_go_forward_from_disk_with_their_formulas(browser, deck):
    context = browser.new_context()
    context.set_offline(True)
    page, wrong = context.new_page(), []
    page.on("requestfailed", lambda request: wrong.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.goto(sorted(deck.glob("01*.html"))[0].as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady() && MathJax.startup.promise")
    page.evaluate("MathJax.startup.promise.then(() => true)")
    assert page.locator("section.present h1").first.inner_text()
    page.keyboard.press("Space")
    page.wait_for_function("Reveal.getIndices().h === 1")
    assert page.locator("section.present h2").first.is_visible()
    assert page.evaluate("Reveal.getTotalSlides()") > 15
    assert page.locator("mjx-merror").count() == 0
    shown = page.locator(".slides section:not(:has(section))").all_inner_texts()
    assert not [text for text in shown if re.search(r":::|\{eq\}|\{prf|-start\}|\$\$", text)]
    assert wrong == []
    context.close()


@pytest.mark.slow
@pytest.mark.browser
def test_a_page_is_printed_with_the_first_frame_of_its_sliders_and_offered(browser, missing, tmp_path, monkeypatch):
    pages = sorted((ROOT / "_build" / "html" / "chapters").glob("15*.html"))
    if not pages:
        missing("the book is not built: run `make book`")
    monkeypatch.setattr(pdf, "TARGET", tmp_path)
    tab = browser.new_page()
    tab.set_default_timeout(180_000)
    file = pdf.printed(tab, pages[0])
    caption, label = (tab.locator(f"figure.explore {part}").first.inner_text() for part in ("figcaption", "label span"))
    texts = [page.extract_text() for page in PdfReader(file).pages]
    assert [k for k, text in enumerate(texts, 1) if text.split() == [str(k)]] == []  # no page but for its number
    words = " ".join(normalize("NFKC", " ".join(texts)).split())  # without ligatures
    assert tab.locator("h1").first.inner_text().rstrip("#") in words
    assert caption in words
    assert label not in words  # nobody moves a slider on paper
    assert "further reading" in words.lower()
    whole = PdfReader(pdf.joined([(file, "One"), (file, "Two")], tmp_path / "book.pdf"))
    assert len(whole.pages) == 2 * len(PdfReader(file).pages)
    assert [entry.title for entry in whole.outline] == ["One", "Two"]
    tab.close()


def test_a_printed_page_offers_its_file_where_it_offered_to_print(tmp_path, monkeypatch):
    monkeypatch.setattr(pdf, "HTML", tmp_path)
    for folder, href in (("chapters", "../pdf/one.pdf"), ("book/api", "../../pdf/one.pdf")):
        page = tmp_path / folder / "one.html"
        page.parent.mkdir(parents=True)
        page.write_text('<button onclick="window.print()"\n class="btn"\n title="Print to PDF"\n>.pdf</button>')
        pdf.offer(page, tmp_path / "one.pdf")
        assert page.read_text() == f'<a href="{href}"\n class="btn"\n title="Download as PDF"\n>.pdf</a>'
