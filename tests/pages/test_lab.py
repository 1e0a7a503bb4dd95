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

import nbformat
import pytest

import tools
from workshop import execute

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
# An algorithm; code of the library; theorems and proofs. What the others say with is checked in their files (test_raw).
READ = [next((ROOT / "chapters").glob(f"{k}_*.ipynb")).name for k in ("07", "08", "13")]
STORY, WIDGET = "story.ipynb", "figure:is(.explore, .live)"
CELLS = """\
from bilevel_book import widgets
widgets.Valley(show="noise")
---
import matplotlib.pyplot as plt
from bilevel_book.sliders import between, explore

def draw(a):
    figure, axes = plt.subplots()
    axes.plot([a, 1])
    plt.close(figure)
    return figure

a = between([0.0, 0.5, 1.0, 2.0], "a, the left end")
explore(draw, lambda a: f"From {a}", lambda a: f"It rises by {1 - a}", a=a)
"""
PANEL = "window.panel"


class Lab:
    """A running server and one tab of its browser, in which one chapter after the other is opened and closed."""

    def __init__(self, address, chapters, browser):
        self.chapters, self.page = chapters, browser.new_page(viewport={"width": 1200, "height": 1500})
        self.page.goto(f"{address}/lab/tree/chapters")
        self.page.wait_for_function("window.jupyterapp", timeout=60_000)
        self.page.evaluate("async () => { await window.jupyterapp.restored }")

    def open(self, name):
        self.page.evaluate(
            f"async path => {{ {PANEL} = await window.jupyterapp.commands.execute('docmanager:open', {{ path }});"
            f" await {PANEL}.sessionContext.ready }}",
            f"chapters/{name}",
        )
        self.page.wait_for_function(f"{PANEL}.sessionContext.session?.kernel?.status === 'idle'", timeout=60_000)
        self.page.wait_for_function(f"!{PANEL}.content.widgets.some(c => c.isPlaceholder() && !c.isHidden)")
        self.page.evaluate(  # references between cells are resolved when all are there
            """async () => {
                for (let before = -1, now; (now = document.querySelectorAll('.myst *').length) !== before; before = now)
                    await new Promise(done => setTimeout(done, 500));
            }"""
        )

    def save(self):
        self.page.evaluate(f"{PANEL}.context.save()")

    def restart(self):
        self.page.evaluate(f"{PANEL}.sessionContext.session.kernel.restart()")

    def close(self, kernel=True):
        self.page.evaluate(
            f"async kernel => {{ if (kernel) await {PANEL}.sessionContext.shutdown(); {PANEL}.dispose() }}", kernel
        )

    def run_to(self, mark):
        """Run all cells down to the one with this text."""
        self.page.evaluate(
            f"mark => {{ const cells = {PANEL}.content.widgets; {PANEL}.content.activeCellIndex = cells.findIndex("
            "c => c.model.type === 'code' && c.model.sharedModel.getSource().includes(mark)) }",
            mark,
        )
        for command in ("run-all-above", "run-cell"):
            self.page.evaluate(f"void window.jupyterapp.commands.execute('notebook:{command}')")

    def seen(self, number):
        """What a widget says, and the reading of its last dial."""
        figure = self.page.locator(WIDGET).nth(number)
        return [figure.locator(part).last.inner_text() for part in ("figcaption", "output")]

    def moves(self, number=0):
        """A few presses of a key change both."""
        self.page.locator(f"{WIDGET} input[type=range]:enabled").first.wait_for(timeout=60_000)
        before = self.seen(number)
        for _ in range(4):
            self.page.locator(WIDGET).nth(number).locator("input[type=range]").last.press("ArrowRight")
        self.page.wait_for_timeout(1000)
        return all(now != then for now, then in zip(self.seen(number), before, strict=True))


def tell_story(path):
    """A notebook with a widget of each kind, stored as chapters are."""
    cells = [nbformat.v4.new_code_cell(source, id=str(k)) for k, source in enumerate(CELLS.split("---\n"))]
    notebook = nbformat.v4.new_notebook(cells=cells)
    execute(notebook, STORY)
    tools.clean(notebook)
    nbformat.write(notebook, path)


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
    tell_story(tree / "chapters" / STORY)
    for command in (["init", "-q"], ["add", "chapters"]):  # Lab signs what git knows
        subprocess.run(["git", "-C", tree, *command], check=True)
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


@pytest.fixture(scope="module")
def lab(server, browser):
    return Lab(*server, browser)


@pytest.mark.parametrize("name", READ)
def test_a_chapter_reads_in_lab_as_on_the_page_and_opening_it_changes_nothing(lab, name):
    before = (lab.chapters / name).read_bytes()
    lab.open(name)
    assert lab.moves()  # no cell was executed
    page = lab.page
    wrong = page.locator(
        ".jp-MarkdownCell :is(.text-yellow-600, .text-red-500, .katex-error, .jp-RenderedLatex .merror)"
    )
    assert [(part.get_attribute("title"), part.inner_text()) for part in wrong.all()] == []
    told = "\n".join(page.locator(".jp-MarkdownCell .myst:visible").all_inner_texts())
    assert "Before you start" in told
    assert not [
        mark for mark in (":::", "{cite", "{eq}", "{prf", "{numref", "-start}", "Unknown Directive") if mark in told
    ]
    assert page.locator(".katex").count() > 20
    assert "Solution to" not in told
    assert page.locator("text=/cells? hidden/").count() >= 2
    as_ours = f'"version": "{platform.python_version()}"' in before.decode()
    assert page.evaluate(f"{PANEL}.context.model.dirty") == (not as_ours)
    lab.save()
    assert (lab.chapters / name).read_bytes() == before
    lab.close()


def test_widgets_move_before_they_run_while_they_run_and_ever_after(lab):
    lab.open(STORY)
    assert [lab.moves(number) for number in (0, 1)] == [True, True]
    lab.run_to("explore(")
    lab.page.locator(".live-note", has_text="Your kernel draws").wait_for(timeout=60_000)
    assert [lab.moves(number) for number in (0, 1)] == [True, True]
    assert lab.seen(1)[1] in ("0.5", "2")  # four of the finer steps
    lab.save()
    lab.close()
    lab.open(STORY)
    assert lab.moves()
    assert lab.page.locator("text=/model not found|Error displaying widget|Jupyter news/").count() == 0
    lab.close()
