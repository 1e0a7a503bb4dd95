"""The library's docstrings as pages. They are plain text, and this tells Sphinx how to read it:

    an indented block     a formula or a table, shown as it stands; after `Options:` a list of name = default: words
    `code`                code
    >>> example           an example
    everything else       text; no other character means anything

Examples of the names that most programs need stand in book/api/examples.toml, so that the library stays short;
tests/pages/test_api.py runs them. Every method has the same one.

Signatures say what the source says, without the names of modules, and link to what has a place in these pages.
"""

import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

from bilevel_core.schedules import Rate
from bilevel_core.solvers import Solver

EXAMPLES: dict[str, str] = tomllib.loads(
    (Path(__file__).parents[1] / "api" / "examples.toml").read_text(encoding="utf-8")
)
OPTION = re.compile(r" +(\w+ = .+?): (.+)")
OF_A_METHOD = """
>>> from bilevel_core import run
>>> from bilevel_core.problems import Quadratic
>>> run(Quadratic(), {}(), seed=0, steps=3, progress=False).state.t
3
"""


def example_of(name: str, thing: Any) -> str:
    """The example of a public name, by the name that it has on its page; empty where there is none."""
    is_method = inspect.isclass(thing) and issubclass(thing, Solver) and not inspect.isabstract(thing)
    return OF_A_METHOD.format(thing.__name__) if is_method else EXAMPLES.get(name, "")


def to_rst(lines: list[str]) -> list[str]:
    """A docstring in the form above as reStructuredText."""
    result: list[str] = []
    before = text = ""
    for line in lines:
        if not line.strip():
            before = before if before == "block" else ""  # a blank line inside a block does not end it
            result.append("")
            continue
        option = OPTION.fullmatch(line) if text == "Options:" else None
        if option:
            kind, line = "option", f"* ``{option[1]}``: {_escaped(option[2])}"
        elif line.startswith(" "):
            kind = "block"
        elif before == "example" or line.startswith(">>>"):
            kind = "example"
        else:
            kind, text, line = "text", line, _escaped(line)
        if kind != before:
            result += ["", ".. code-block:: text", ""] if kind == "block" else [""]
        result.append(line)
        before = kind
    return result


def _escaped(text: str) -> str:
    return re.sub(r"`([^`]+)`|([\\*_|])", lambda m: f"``{m[1]}``" if m[1] else f"\\{m[2]}", text)


def signature_of(thing: Any) -> str:
    """(x: Tensor, tol: float = 0.1) -> Tensor; a method has (**options), which its text says one by one."""
    if inspect.isclass(thing) and issubclass(thing, Solver):
        return "(**options)"
    signature = inspect.signature(thing)
    given = (parameter for name, parameter in signature.parameters.items() if name != "self")
    shown = [
        parameter.replace(annotation=_Kind.of(parameter.annotation), default=_without_machine(parameter.default))
        for parameter in given
    ]
    returned = signature.empty if inspect.isclass(thing) else _Kind.of(signature.return_annotation)
    return str(signature.replace(parameters=shown, return_annotation=returned))


def _without_machine(default: Any) -> Any:
    """A folder by its name: its path is another one wherever the book is built."""
    return _Kind(default.name) if isinstance(default, Path) else default


class _Kind(str):
    """A text as the source has it; a plain string would be shown in quotes."""

    __repr__ = str.__str__

    @classmethod
    def of(cls, annotation: Any) -> Any:
        if annotation is inspect.Signature.empty:
            return annotation
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        return cls(re.sub(r"\b(\w+\.)+", "", text.replace(inspect.formatannotation(Rate), "Rate")))


def link(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.Element) -> nodes.Element | None:
    """A name in a signature: a link if just one thing in these pages has it, else as it is."""
    if node.get("refdomain") != "py" or node["reftarget"].startswith("bilevel_core."):
        return None  # a full name that leads nowhere is an error
    found = {
        (entry.docname, entry.node_id)
        for name, entry in env.get_domain("py").objects.items()
        if name.rpartition(".")[2] == node["reftarget"] and not entry.aliased
    }
    if len(found) != 1:
        return text
    ((page, anchor),) = found
    return make_refnode(app.builder, node["refdoc"], page, anchor, text)


def setup(app: Sphinx) -> dict[str, bool]:
    def docstring(app, what, name, thing, options, lines):
        lines[:] = to_rst([*lines, *example_of(name, thing).splitlines()])

    def signature(app, what, name, thing, options, given, returned):
        try:
            return (signature_of(thing), "") if what in ("function", "method", "class") else None
        except (TypeError, ValueError):  # Sphinx 9 asks about what a module imports: not all of it has a signature
            return None

    def skip(app, what, name, thing, skipped, options):
        of_a_tuple = (thing.__doc__ or "").startswith("Alias for field number")  # a NamedTuple's own words
        return True if of_a_tuple or name == "state_type" else None

    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-skip-member", skip)
    app.connect("missing-reference", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
