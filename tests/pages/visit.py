"""A tab of Chromium in which a test reads a page of the built book with the network off."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
PAGES = sorted(p.relative_to(HTML).as_posix() for part in ("book", "chapters") for p in (HTML / part).rglob("*.html"))
CHAPTERS = [name for name in PAGES if name.startswith("chapters/")]
LIGHT = next((name for name in CHAPTERS if "/15_" in name), None)  # few formulas, and one of everything else
DESKTOP, PHONE = {"width": 1400, "height": 800}, {"width": 390, "height": 800}


class Visit:
    """A tab that remembers what the page asked for and complained about."""

    def __init__(self, window, viewport=DESKTOP, **media):
        self.page = window.new_page()
        self.page.set_viewport_size(viewport)
        self.page.emulate_media(**media)
        self.requests, self.complaints = [], []
        self.page.on(
            "request",
            lambda r: self.requests.append(r.url) if not r.url.startswith(("file:", "data:", "blob:")) else None,
        )
        self.page.on("requestfailed", lambda r: self.complaints.append(f"failed: {r.url}"))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.page.close()

    def open(self, name):
        self.page.goto((HTML / name).as_uri())
        if self.page.locator(".math").count():
            self.page.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
            self.page.evaluate("MathJax.startup.promise.then(() => true)")
        self.page.wait_for_function("document.documentElement.dataset.wide")
        return self.page

    def becomes(self, size, scheme):
        """Another window, another time of day; what watches the width answers a frame later."""
        self.page.set_viewport_size(size)
        self.page.emulate_media(color_scheme=scheme)
        self.page.evaluate(
            "new Promise(go => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(go, 50))))"
        )

    def without_formulas(self):
        """Each becomes a letter: laying out their thousands of small parts is most of what a page costs."""
        self.page.evaluate("document.querySelectorAll('mjx-container').forEach(formula => formula.replaceWith('x'))")

    def hidden(self):
        """What can be seen and is wider than its place: its words, and at which side it says so."""
        return self.page.evaluate(
            """Array.from(document.querySelectorAll(".bd-article *"))
            .filter(one => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
            .filter(one => /auto|scroll/.test(getComputedStyle(one).overflowX))
            .map(one => [one.tagName + ": " + one.textContent.trim().slice(0, 60), one.dataset.more || ""])"""
        )


CODE = ".highlight pre"
ARTICLE = f"{{ include: [['.bd-article']], exclude: [[{CODE!r}]] }}"
AXE = Path(__file__).with_name("axe") / "axe.min.js"  # axe-core 4.14.0, under the licence beside it


def barriers(page, where="document", **options):
    """What axe-core calls a serious or critical hindrance.

    Its time goes into thousands of small parts: code that it leaves out is a text to it.
    """
    if not page.evaluate("window.axe"):
        page.add_script_tag(path=AXE)
        if where == ARTICLE:
            page.evaluate(f"document.querySelectorAll({CODE!r}).forEach(code => code.textContent = code.textContent)")
    return page.evaluate(
        f"options => axe.run({where}, {{ resultTypes: ['violations'], ...options }}).then(found => found.violations"
        ".filter(one => ['serious', 'critical'].includes(one.impact))"
        ".map(one => [one.id, one.nodes.map(node => node.target.join(' ')).slice(0, 3)]))",
        options,
    )
