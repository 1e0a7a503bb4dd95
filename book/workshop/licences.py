"""Under which licence everything is that the project ships or pins: `book/tools.py licences` writes LICENCES.md."""

import re
from importlib.metadata import metadata

from bilevel_book.doctor import pinned
from bilevel_core.checkpoint import write_atomically
from workshop import ROOT

# What lies in this tree and is not ours: where, what, and under which licence.
SHIPPED = {
    "data/mnist": ("MNIST, by Yann LeCun, Corinna Cortes and Christopher J. C. Burges", "CC-BY-SA-3.0"),
    "book/bilevel_book/breast_cancer.csv.gz": (
        "Breast Cancer Wisconsin (Diagnostic), by W. H. Wolberg, W. N. Street and O. L. Mangasarian, from the UCI "
        "Machine Learning Repository, in the form that scikit-learn gives it",
        "CC-BY-4.0",
    ),
    "book/_vendor/vendor/mathjax": ("MathJax", "Apache-2.0"),
    "book/_vendor/vendor/tippy": ("tippy.js and popper", "MIT"),
    "book/workshop/reveal": ("reveal.js", "MIT"),
    "tests/pages/axe": ("axe-core, for the tests only", "MPL-2.0"),
}
HEAD = """\
# Licences

Our own code is under the [MIT licence](LICENSE), text and figures are under
[CC BY 4.0](https://creativecommons.org/licenses/by/4.0/). What else there is has the licences below.
`python book/tools.py licences` writes this file; a test compares it with `requirements.txt`.
"""
# Names that packages use for one licence, of which SPDX knows one.
ALIASES = {
    "MIT License": "MIT", "BSD License": "BSD-3-Clause", "3-Clause BSD License": "BSD-3-Clause", "BSD": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0", "Apache-2": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}  # fmt: skip


def licence(package: str) -> str:
    """What the installed package says of itself: an expression, else classifiers, else the first line of its text."""
    told = metadata(package)
    if expression := told.get("License-Expression"):
        return str(expression)
    classes = [line.rpartition(" :: ")[2] for line in told.get_all("Classifier") or () if line.startswith("License ::")]
    named = [name for name in classes if name != "OSI Approved"] or [str(told.get("License") or "").partition("\n")[0]]
    return " AND ".join(dict.fromkeys(ALIASES.get(name, name) for name in named))


def table(names: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (names, ("---",) * len(names), *rows)) + "\n"


def licences() -> None:
    """Write LICENCES.md."""
    shipped = [(f"[{place}]({place})", *about) for place, about in SHIPPED.items()]
    packages = [(name, version, licence(name)) for name, version in pinned().items()]
    text = f"{HEAD}\n## In this repository\n\n{table(('where', 'what', 'licence'), shipped)}"
    text += "\n## Installed beside it\n\nThe packages that `requirements.txt` pins, as they name their licence; none "
    text += f"is part of this repository.\n\n{table(('package', 'version', 'licence'), packages)}"
    write_atomically(ROOT / "LICENCES.md", re.sub(r" +$", "", text, flags=re.M).encode())
