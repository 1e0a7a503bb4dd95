"""The frames of a slider leave the page: they come, from a file beside it, when the slider is about to come into view.

A slider is stored in its notebook as one piece of HTML that holds every frame (bilevel_book/sliders.py), and a page
of them would weigh megabytes before a word of it is read. A script can be loaded from disk where data cannot, so each
slider's frames and code become one: it puts the frames back where they were, and wakes the slider.
"""

import hashlib
import json
import re
from pathlib import Path

from sphinx.application import Sphinx

SLIDER = re.compile(
    r'<figure class="explore"(?P<options>[^>]*)>(?P<shown>.*?)'
    r'<script type="application/json">(?P<frames>.*?)</script>\s*<script>(?P<code>.*?)</script>\s*</figure>',
    re.S,
)
PUT_BACK = """(function () {{
  var figure = document.querySelector('figure[data-frames$="{name}.js"]');
  figure.querySelector("script").textContent = {frames};
  figure.removeAttribute("data-awake");
}})();
{code}"""
LOAD = """<script>
(function () {
  var near = new IntersectionObserver(function (seen) {
    seen.filter(function (one) { return one.isIntersecting; }).forEach(function (one) {
      near.unobserve(one.target);
      var script = document.createElement("script");
      script.src = one.target.dataset.frames;
      document.head.append(script);
    });
  }, { rootMargin: "1000px" });
  document.querySelectorAll("figure[data-frames]").forEach(function (figure) { near.observe(figure); });
})();
</script>"""


def lighten(body: str, folder: str) -> tuple[str, dict[str, str]]:
    """The page without frames, and the scripts that bring them, by name."""
    scripts: dict[str, str] = {}

    def change(slider: re.Match[str]) -> str:
        name = hashlib.sha256(slider[0].encode()).hexdigest()[:16]
        scripts[name] = PUT_BACK.format(name=name, frames=json.dumps(slider["frames"]), code=slider["code"])
        return (
            f'<figure class="explore"{slider["options"]} data-frames="{folder}/{name}.js" data-awake="no">'
            f'{slider["shown"]}<script type="application/json"></script></figure>'
        )

    light = SLIDER.sub(change, body)
    return (light + LOAD if scripts else light), scripts


def setup(app: Sphinx) -> dict[str, bool]:
    def page(app, pagename, templatename, context, doctree):
        if "body" in context:
            folder = context["pathto"]("_static/frames", resource=True)
            context["body"], scripts = lighten(context["body"], folder)
            for name, script in scripts.items():
                path = Path(app.outdir, "_static", "frames", f"{name}.js")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(script, encoding="utf-8")

    app.connect("html-page-context", page, priority=400)  # before tips are gathered from the page
    return {"parallel_read_safe": True, "parallel_write_safe": True}
