r"""Chapters are written to read well raw, wherever nobody knows the roles of MyST; the page gets the roles back.

[Yang et al. (2023)](../book/references.bib#key)   {cite:t}`key`
[(Yang et al., 2023)](../book/references.bib#key)  {cite:p}`key`
[(1.2)](01_first.ipynb#label)                      {eq}`label`
[Lemma 1.1](01_first.ipynb#label)                  {prf:ref}`label`
[Fig. 1.1](#label)                                 {numref}`label`

So names, years and numbers on the page are computed; tests/pages/test_raw.py holds the written ones to them.
A solution, which JupyterLab folds by its heading, becomes a box that opens on a click.
"""

import re

LINK = re.compile(r"\[(?P<text>[^\]\[]+)\]\((?P<file>[\w./]*)#(?P<label>[\w:-]+)\)")
SOLUTION = re.compile(r"(\{solution-start\} [\w:-]+)\\n")


def role(text: str, file: str) -> str:
    """The role that a link stands for, or nothing."""
    if file.endswith("references.bib"):
        return "cite:p" if text.startswith("(") else "cite:t"
    if text.startswith("Fig. ") and not file:
        return "numref"
    if file.endswith(".ipynb"):
        return "eq" if text.startswith("(") else "prf:ref"
    return ""


def with_roles(source: str) -> str:
    """A notebook, as the text of its file, with roles for links."""

    def change(link: re.Match[str]) -> str:
        name = role(link["text"], link["file"])
        return f"{{{name}}}`{link['label']}`" if name else link[0]

    return SOLUTION.sub(r"\1\\n:class: dropdown\\n", LINK.sub(change, source))


def setup(app):
    def read(app, name, content):
        if name.startswith("chapters/"):
            content[0] = with_roles(content[0])

    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
