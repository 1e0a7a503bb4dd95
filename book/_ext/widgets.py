"""Live widgets on a page: from the state and the picture that a notebook has stored, played by a small host.

    ```{widget} 1 Valley
    ```

shows the widget of that class in Chapter 1 on another page. A module cannot be loaded from disk, but a script can: each
module becomes the text of one, beside the pages, and host.js makes a module of it.
"""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from bilevel_book import paths
from bilevel_book.widgets.stored import STATE, VIEW, element, live, playing


def place(env: BuildEnvironment, data: dict[str, Any], traits: dict[str, Any]) -> nodes.raw:
    """Where a widget is played, with its picture and its script in files beside the pages."""
    picture, script = keep(env, base64.b64decode(data["image/png"]), "png"), keep(env, playing(traits).encode(), "js")
    return nodes.raw("", element(traits, picture, script), format="html")


def keep(env: BuildEnvironment, content: bytes, kind: str) -> str:
    """The address, seen from the page, of a file with this content beside the pages."""
    name = f"_static/widgets/{hashlib.sha256(content).hexdigest()[:16]}.{kind}"
    path = Path(env.app.outdir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return "../" * env.docname.count("/") + name


class InOutputs(SphinxPostTransform):
    """A widget takes the place of the output that shows it, before MyST-NB selects one of its forms."""

    default_priority = 3
    formats = ("html",)

    def run(self, **options: Any) -> None:
        views = [node for node in self.document.findall(nodes.container) if node.get("mime_type") == VIEW]
        if views:
            notebook = json.loads(Path(self.env.doc2path(self.env.docname)).read_text(encoding="utf-8"))
            for view, (data, traits) in zip(views, live(notebook), strict=True):
                view.parent.replace_self(place(self.env, data, traits))


class Widget(SphinxDirective):
    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        path = paths.chapter(int(self.arguments[0]))
        self.env.note_dependency(str(path))
        for data, traits in live(json.loads(path.read_text(encoding="utf-8"))):
            if traits["_anywidget_id"].endswith(f".{self.arguments[1]}"):
                return [place(self.env, data, traits)]
        raise self.error(f"{path.name} has no stored widget {self.arguments[1]}; `make notebooks` stores it")


def setup(app: Sphinx) -> dict[str, bool]:
    def page(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
        # MyST-NB would add every state of the notebook, with its modules, to the page.
        files = context["script_files"]
        context["script_files"] = [file for file in files if STATE not in str(getattr(file, "attributes", ""))]

    app.add_directive("widget", Widget)
    app.add_post_transform(InOutputs)
    app.connect("html-page-context", page, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
