"""The pages of the library: every public name stands there and says what it is, and the examples run."""

import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import bilevel_core
from bilevel_book.experiments import paper_settings, read
from bilevel_book.methods import SOLVERS
from bilevel_book.mnist import HyperCleaning, HyperRepresentation, load_mnist
from bilevel_core.directions import exact, finite_difference, hessian_vector, jacobian_vector
from bilevel_core.problems import Quadratic, Valley
from docstrings import EXAMPLES, example_of, to_rst

PAGES = sorted((Path(__file__).resolve().parents[2] / "book" / "api").glob("*.md"))


def public(module: ModuleType) -> dict[str, Any]:
    """What a module offers: `__all__`, or else the functions and classes that it defines."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__ and callable(value)
    ]
    return {name: getattr(module, name) for name in names}


MODULES = [name for page in PAGES for name in re.findall(r"automodule:: (\S+)", page.read_text())]
NAMES = {  # what stands on the pages, by the name that it has there
    f"{module}.{name}": thing
    for module in MODULES
    for name, thing in public(import_module(module)).items()
    if callable(thing) and name == thing.__name__  # `from_modules` is another name of Modules
}


def test_every_public_name_stands_on_a_page():
    offered = [*(getattr(bilevel_core, name) for name in bilevel_core.__all__), *SOLVERS.values()]
    assert [thing for thing in offered if callable(thing) and thing not in NAMES.values()] == []
    index = next(page for page in PAGES if page.stem == "index").read_text()
    assert [name for name in bilevel_core.__all__ if f"`{name} <bilevel_core." not in index] == []


@pytest.mark.parametrize("name", NAMES)
def test_public_name_has_docstring(name):
    thing = NAMES[name]
    text = inspect.cleandoc(vars(thing).get("__doc__") or "") if inspect.isclass(thing) else inspect.getdoc(thing) or ""
    assert text
    assert not text.startswith(f"{thing.__name__}(")  # what dataclass and NamedTuple say by themselves
    methods = [name for name, value in vars(thing).items() if inspect.isfunction(value) and not name.startswith("_")]
    assert [name for name in methods if not inspect.getdoc(getattr(thing, name))] == []


def test_names_that_most_programs_need_have_examples():
    """Records and abstract classes are shown where a function returns or takes them."""
    needed = [getattr(bilevel_core, name) for name in bilevel_core.__all__ if name not in ("SOLVERS", "Samples")]
    needed += [exact, finite_difference, hessian_vector, jacobian_vector, Quadratic, Valley]
    needed += [load_mnist, HyperCleaning, HyperRepresentation, paper_settings, read, *SOLVERS.values()]
    shown = [thing for name, thing in NAMES.items() if example_of(name, thing)]
    assert [thing for thing in needed if thing not in shown and not inspect.isabstract(thing)] == []


@pytest.mark.parametrize("name", [name for name, thing in NAMES.items() if example_of(name, thing)])
def test_example_runs(name, capsys):
    names = dict(vars(import_module(name.rpartition(".")[0])))
    doctest.run_docstring_examples(example_of(name, NAMES[name]), names, name=name)
    assert capsys.readouterr().out == ""


def test_every_example_belongs_to_a_public_name():
    assert sorted(EXAMPLES.keys() - NAMES.keys()) == []


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_a_page_run(page, capsys):
    failed, _ = doctest.testfile(str(page), module_relative=False)
    assert failed == 0, capsys.readouterr().out


def test_docstring_keeps_formulas_and_lists_options():
    given = ["The norm ||y*||, `tol`:", "    y* = a_1 | b", "", "    v = 2", "Options:", "", "    a = 1: of x_0; > 0"]
    assert to_rst(given) == [
        "", "The norm \\|\\|y\\*\\|\\|, ``tol``:",
        "", ".. code-block:: text", "", "    y* = a_1 | b", "", "    v = 2",
        "", "Options:", "",
        "", "* ``a = 1``: of x\\_0; > 0",
    ]  # fmt: skip
