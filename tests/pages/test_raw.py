"""Chapters as files, before anybody renders them: what Colab, VS Code, GitHub and a bare JupyterLab show."""

import ast
import importlib
import inspect
import json
import math
import re
from fractions import Fraction
from functools import cache
from html import unescape
from pathlib import Path

import nbformat
import numpy as np
import pytest
import yaml
from pybtex.database import parse_file

from bilevel_book.widgets.stored import live
from readable import LINK, role, with_roles

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)


def cells(path, kind):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


@every_chapter
def test_maths_is_plain_latex(path):
    macros = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]
    assert macros
    own = re.compile(rf"\\({'|'.join(macros)})(?![A-Za-z])")
    assert [found[0] for cell in cells(path, "markdown") for found in own.finditer(cell.source)] == []


@every_chapter
def test_no_role_or_directive_is_left_that_lab_cannot_show(path):
    text = "\n".join(cell.source for cell in cells(path, "markdown"))
    assert re.findall(r"\{(?:cite:\w|numref|doc|term)\}`[^`]*`|\{literalinclude\}.*", text) == []
    here = re.findall(r":label: (\S+)|\$\$ \(([\w:-]+)\)|^\(([\w:-]+)\)=", text, re.M)
    labels = {name for names in here for name in names if name}
    used = re.findall(r"\{(?:eq|ref|prf:ref)\}`(?:[^`<]*<)?([\w:-]+)>?`", text)
    assert set(used) - labels == set()  # Lab knows the labels of the notebook and no others


@cache
def author_year(key: str) -> tuple[str, str]:
    entry = parse_file(ROOT / "book" / "references.bib").entries[key]
    names = ["".join(person.rich_last_names[0].render_as("text")) for person in entry.persons["author"]]
    who = " and ".join(names) if len(names) <= 2 else f"{names[0]} et al."
    return who, entry.fields["year"]


@every_chapter
def test_a_citation_says_author_and_year(path):
    text = "\n".join(cell.source for cell in cells(path, "markdown"))
    cited = [link for link in LINK.finditer(text) if link["file"].endswith("references.bib")]
    assert cited
    for link in cited:
        who, year = author_year(link["label"])
        assert link["text"] in (f"{who} ({year})", f"({who}, {year})")
        assert (path.parent / link["file"]).is_file()


@every_chapter
def test_numbers_of_other_chapters_are_those_of_the_page(path):
    page = HTML / "chapters" / f"{path.stem}.html"
    if not page.exists():
        pytest.skip("the book is not built: run `make book`")
    shown = re.findall(r'<a class="reference[^"]*" href="[^"]*#(?:equation-)?([^"]+)"[^>]*>(.*?)</a>', page.read_text())
    printed = {(label, unescape(re.sub("<[^>]+>", "", text))) for label, text in shown}
    for cell in cells(path, "markdown"):
        for link in LINK.finditer(cell.source):
            if role(link["text"], link["file"]) in ("eq", "prf:ref", "numref"):
                assert (link["label"], link["text"]) in printed
                assert not link["file"] or (path.parent / link["file"]).is_file()


def test_links_become_roles():
    text = (
        "[A (1999)](../book/references.bib#a99), [(A, 1999)](../book/references.bib#a99), [(1.2)](01_one.ipynb#eq-x),"
    )
    text += " [Lemma 1.1](01_one.ipynb#lem), [Fig. 1.1](#fig-x), [Chapter 1](01_one.ipynb), [here](#there)"
    assert with_roles(text) == (
        "{cite:t}`a99`, {cite:p}`a99`, {eq}`eq-x`, {prf:ref}`lem`, {numref}`fig-x`,"
        " [Chapter 1](01_one.ipynb), [here](#there)"
    )
    assert with_roles(r'"```{solution-start} ex\n"') == r'"```{solution-start} ex\n:class: dropdown\n"'


@pytest.mark.parametrize("path", [p for p in CHAPTERS if p.stem[2] == "_"], ids=lambda p: p.stem)
def test_solutions_are_folded_in_lab(path):
    """A collapsed heading hides what follows it, up to the next heading of its kind or above."""
    hidden, solutions = False, 0
    for cell in nbformat.read(path, as_version=4).cells:
        if heading := re.match(r"(#+) ", cell.source) if cell.cell_type == "markdown" else None:
            hidden = bool(cell.metadata.get("jp-MarkdownHeadingCollapsed"))
            assert not hidden or (len(heading[1]) == 4 and "remove-cell" in cell.metadata.tags)
        if "{exercise-start}" in cell.source:
            assert not hidden
        if "{solution-start}" in cell.source or "{solution-end}" in cell.source:
            solutions += 1
            assert hidden
    assert solutions >= 4


def shown_code():
    for path in CHAPTERS:
        for cell in cells(path, "code"):
            if found := re.search(r"^source\((.+)\)$", cell.source, re.M):
                yield pytest.param(found[1], cell, id=f"{path.stem[:2]} {found[1]}")


@pytest.mark.parametrize(("name", "cell"), list(shown_code()))
def test_code_that_is_shown_is_the_library_s_own(name, cell):
    assert "remove-input" in cell.metadata.tags
    names = {"bilevel_core": importlib.import_module("bilevel_core")} | vars(importlib.import_module("bilevel_core"))
    thing = eval(name, names | vars(importlib.import_module("bilevel_book.methods")))
    shown = cell.outputs[0].data
    code = shown["text/markdown"].removeprefix("```python\n").removesuffix("```")
    assert letters(code) == letters(inspect.getsource(thing))  # laid out for a page, and not a word changed
    ast.parse(code)
    if not inspect.ismodule(thing):
        assert max(map(len, code.splitlines())) <= 80
        assert unescape(re.sub("<[^>]+>", "", shown["text/html"])).strip() == code.strip()
        assert '<span style="color:' in shown["text/html"]


def letters(code):
    """All but what a layout may change: blanks, and the commas, brackets and comment signs at the ends of lines."""
    return re.sub(r"[\s,()#]", "", code)


def stored_sliders():
    for path in CHAPTERS:
        for _, traits in live(json.loads(path.read_text())):
            if traits["_anywidget_id"].endswith(".Explore"):
                name = f"{path.stem[:2]} {'; '.join(dial['label'] for dial in traits['dials'])}"
                yield pytest.param(traits["dials"], traits["made"], id=name)


def number(label: str) -> float | None:
    """10⁻⁹, 3·10⁴ and 0.5 are numbers, FMBO is none."""
    plain = label.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    digits, _, power = plain.rpartition("10") if plain != label else (label, "", "0")
    try:
        return float(Fraction(digits.rstrip("·") or 1)) * 10.0 ** int(power)
    except ValueError:
        return None


def uneven(places) -> float:
    steps = np.abs(np.diff(places))
    return steps.max() / steps.min()


@pytest.mark.parametrize(("dials", "made"), list(stored_sliders()))
def test_a_slider_has_even_steps_and_messages(dials, made):
    for dial in dials:
        values = [number(stop) for stop in dial["labels"][:: dial["step"]]]
        if None not in values:
            positive = [value for value in values if value > 0]  # a zero may stand in front of ratios
            ratios = uneven(np.log(positive)) if min(values) >= 0 else math.inf
            assert min(uneven(values), ratios) < 1.6  # 1, 2, 5, 10 is even
    assert len(set(made["titles"])) > 1
    bare = r"[^ ]+ = [^ ]+(, [^ ]+ = [^ ]+)*"  # says no more than the readout
    assert not [title for title in made["titles"] if re.fullmatch(bare, title) or len(title) > 100]
    assert len(set(made["alts"])) == len(made["frames"])
    assert not [title for title in made["titles"] if re.search(r"[$^\\]", title)]  # is not typeset


@every_chapter
def test_a_chapter_installs_the_book_where_it_is_missing(path):
    cell = cells(path, "code")[0]
    assert "remove-cell" in cell.metadata.tags
    assert cell.metadata.jupyter.source_hidden  # Lab folds it
    assert yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"] in cell.source
    assert cell.outputs == []  # it was there


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # as on the command line
def test_the_notebooks_are_scripts_and_slides_too():
    from nbconvert import get_exporter

    script, slides = (get_exporter(form)().from_filename(CHAPTERS[0])[0] for form in ("script", "slides"))
    assert 'quiz("01")' in script
    ast.parse(script)
    assert slides.count("<section") > 5
