"""JupyterLab as `make lab` starts it, driven in Chromium: chapters read as on the page, and sliders move."""

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
FIRST = "01_what_is_a_bilevel_problem.ipynb"
READ = [FIRST, *(next((ROOT / "chapters").glob(f"{k}_*.ipynb")).name for k in ("04", "07", "08", "12", "13"))]
PANEL = "window.jupyterapp.shell.currentWidget"


class Lab:
    """A running server and a tab of its browser."""

    def __init__(self, address, chapters, browser):
        self.address, self.chapters = address, chapters
        self.page = browser.new_page(viewport={"width": 1200, "height": 1500})

    def open(self, name):
        self.page.goto(f"{self.address}/doc/tree/chapters/{name}")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        self.page.wait_for_function(f"{PANEL}.sessionContext.session?.kernel?.status === 'idle'", timeout=60_000)

    def read_on(self):
        self.page.wait_for_function(f"!{PANEL}.content.widgets.some(c => c.isPlaceholder() && !c.isHidden)")
        self.page.wait_for_timeout(1000)  # references between cells are resolved when all are there

    def run(self, command):
        self.page.evaluate(f"window.jupyterapp.commands.execute('{command}')")

    def slider(self):
        return self.page.locator("figure.explore").first

    def seen(self):
        """Where the picture comes from, and its title, readout and description."""
        return self.slider().evaluate(
            "f => [f.dataset.source, ...['figcaption', 'output'].map(s => f.querySelector(s).textContent),"
            " f.querySelector('img').alt, f.querySelector('img').src]"
        )

    def moves(self):
        """One press of a key changes picture, title, readout and description; where does it come from?"""
        source, *before = self.seen()
        self.slider().locator("input").first.press("ArrowRight")
        self.page.wait_for_function(
            "before => document.querySelector('figure.explore figcaption').textContent !== before", arg=before[0]
        )
        after = self.seen()[1:]
        assert all(now != then for now, then in zip(after, before, strict=True))
        return source

    def leave(self):
        self.page.evaluate(f"{PANEL}.sessionContext.shutdown()")
        self.page.close()


@pytest.fixture(scope="module")
def server(browser, tmp_path_factory):
    """`book/tools.py lab` on a copy of the chapters, with settings and signatures of its own."""
    tree = tmp_path_factory.mktemp("tree")
    for folder in ("chapters", "book"):
        shutil.copytree(
            ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
        )
    # One chapter was stored by a Python that nobody has.
    other = tree / "chapters" / READ[-1]
    other.write_text(re.sub(r'("pygments_lexer": "ipython3",\s+"version": )"[\d.]+"', r'\1"3.0.99"', other.read_text()))
    assert '"3.0.99"' in other.read_text()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = {f"JUPYTER_{kind}_DIR": str(tree / kind) for kind in ("CONFIG", "DATA", "RUNTIME")}
    settings = (
        tree / "CONFIG" / "lab" / "user-settings" / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    )
    settings.parent.mkdir(parents=True)
    settings.write_text('{"windowingMode": "none"}')  # every cell is rendered, not only those in sight
    options = [f"--port={port}", "--ServerApp.port_retries=0", "--no-browser", "--IdentityProvider.token="]
    command = [sys.executable, str(tree / "book" / "tools.py"), "lab", *options]
    with (tree / "log").open("w") as log:
        process = subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    for _ in range(240):
        try:
            urllib.request.urlopen(f"{address}/api/status", timeout=5)
            break
        except OSError:
            assert process.poll() is None, (tree / "log").read_text()
            time.sleep(0.25)
    yield address, tree / "chapters"
    process.terminate()
    process.wait(30)


@pytest.fixture
def lab(server, browser):
    tab = Lab(*server, browser)
    yield tab
    tab.leave()


@pytest.mark.parametrize("name", READ)
def test_a_chapter_reads_in_lab_as_on_the_page_and_opening_it_changes_nothing(lab, name):
    before = (lab.chapters / name).read_bytes()
    lab.open(name)
    assert lab.moves() == "frames"  # no cell was executed
    lab.read_on()
    page = lab.page
    wrong = page.locator(
        ".jp-MarkdownCell :is(.text-yellow-600, .text-red-500, .katex-error, .jp-RenderedLatex .merror)"
    )
    assert [(part.get_attribute("title"), part.inner_text()) for part in wrong.all()] == []
    told = "\n".join(cell.inner_text() for cell in page.locator(".jp-MarkdownCell .myst:visible").all())
    assert "Before you start" in told
    assert not [
        mark for mark in (":::", "{cite", "{eq}", "{prf", "{numref", "-start}", "Unknown Directive") if mark in told
    ]
    assert page.locator(".katex").count() > 20
    assert "Solution to" not in told
    assert page.locator("text=/cells? hidden/").count() >= 2
    as_ours = f'"version": "{platform.python_version()}"' in before.decode()
    assert page.evaluate(f"{PANEL}.context.model.dirty") == (not as_ours)
    page.evaluate(f"{PANEL}.context.save()")
    assert (lab.chapters / name).read_bytes() == before


def test_code_of_the_library_is_shown_in_colours(lab):
    lab.open(next(name for name in READ if name.startswith("08")))
    lab.read_on()
    shown = lab.page.locator(".jp-OutputArea-output pre:has-text('def update(self, problem')")
    assert shown.count() >= 5
    assert shown.first.locator("span[style*=color]").count() > 5


def test_a_slider_moves_before_it_runs_while_it_runs_and_ever_after(lab):
    lab.open(FIRST)
    page = lab.page
    assert lab.moves() == "frames"
    lab.page.evaluate(
        f"() => {{ const cells = {PANEL}.content.widgets; {PANEL}.content.activeCellIndex ="
        " cells.findIndex(c => c.model.sharedModel.getSource().includes('explore(') && c.model.type === 'code') }"
    )
    coarse = int(lab.slider().locator("input").get_attribute("max"))
    lab.run("notebook:run-all-above")
    lab.run("notebook:run-cell")
    page.wait_for_selector("figure.explore[data-source=kernel]", timeout=60_000)
    assert lab.moves() == "kernel"
    assert int(lab.slider().locator("input").get_attribute("max")) > coarse
    page.evaluate(f"{PANEL}.context.save()")
    stored = (lab.chapters / FIRST).read_text()
    assert "vnd.jupyter.widget" not in stored

    page.reload()  # the kernel goes on, and knows the slider
    page.wait_for_selector("figure.explore[data-source=kernel]", timeout=60_000)
    assert lab.moves() == "kernel"

    page.evaluate(f"{PANEL}.sessionContext.session.kernel.restart()")
    page.wait_for_selector("figure.explore[data-source=frames]")
    assert lab.moves() == "frames"

    page.reload()  # this kernel does not know it
    lab.slider().wait_for()
    page.wait_for_function(f"{PANEL}?.sessionContext.session?.kernel?.status === 'idle'", timeout=60_000)
    assert lab.moves() == "frames"
    assert page.locator("text=/model not found|Error displaying widget/").count() == 0


def test_an_edited_slider_is_a_still_picture_without_its_kernel(lab):
    """Its stored frames would show something else, so nothing moves and words say what to do."""
    name = "still.ipynb"
    text = (ROOT / "chapters" / FIRST).read_text().replace("the upper decision", "edited")
    (lab.chapters / name).write_text(text)
    lab.open(name)
    lab.page.evaluate(
        f"() => {{ const cells = {PANEL}.content.widgets; {PANEL}.content.activeCellIndex ="
        " cells.findIndex(c => c.model.sharedModel.getSource().includes('explore(') && c.model.type === 'code') }"
    )
    lab.run("notebook:run-all-above")
    lab.run("notebook:run-cell")
    lab.page.wait_for_selector("figure.explore[data-source=kernel]", timeout=60_000)
    lab.page.evaluate(f"{PANEL}.sessionContext.session.kernel.restart()")
    lab.page.wait_for_selector("figure.explore[data-source=none]")
    assert lab.slider().locator("input").is_disabled()
    assert "run this cell" in lab.slider().locator(".explore-note").inner_text()
