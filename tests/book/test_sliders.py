"""Sliders: frames for a page, pictures from a kernel, and what a notebook keeps of them."""

import base64
import io
import json
import re
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from bilevel_book import sliders
from bilevel_book.sliders import Explore, between, choice, explore


def draw(a, b=0):
    figure, axes = plt.subplots(figsize=(2, 1.5))
    axes.plot([0, 1], [a, b])
    plt.close(figure)
    return figure


def describe(**at):
    return "A line with " + ", ".join(f"{name} = {value:g}" for name, value in at.items()) + "."


def message(a, b=0):
    return f"It rises by {b - a:g}"


def data_of(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', page, re.S)[1])


def pixels(address: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(address.removeprefix(sliders.ENCODING)))).convert("RGBA"))


@pytest.fixture
def two() -> Explore:
    return explore(
        draw, describe, message, a=choice([0, 0.5, 1], "a, the left end"), b=choice([1, 2], "b, the right end", 2)
    )


def test_page_holds_one_frame_for_each_place(two):
    page = two.page(two.frames())
    assert page == two.page(two.frames())  # the same each time
    assert not re.search(r"https?:|//cdn|require\(|vnd\.jupyter", page)  # nothing is fetched
    data = data_of(page)
    assert data["labels"] == [["0", "0.5", "1"], ["1", "2"]]
    assert data["first"] == [0, 1]
    assert len(set(data["frames"])) == 6
    assert data["alts"][3] == "A line with a = 0.5, b = 2."  # the last slider turns fastest
    assert data["titles"][3] == "It rises by 1.5"
    assert page.count('type="range" disabled') == page.count('<button type="button" disabled') == 2  # no script yet
    assert f">{sliders.ASLEEP}</p>" in page
    assert "a, the left end" in page
    assert '<img alt="A line with a = 0, b = 2."' in page


@pytest.mark.slow
def test_frame_over_the_first_one_is_the_picture(two):
    stored = two.frames()
    start, over = pixels(stored["start"]), pixels(stored["frames"][4])
    both = np.where(over[..., 3:] == 0, start, over)[..., :3].astype(int)
    picture = np.asarray(two.picture((2, 0))).astype(int)
    assert (over[..., 3] == 0).mean() > 0.4  # what does not change is not stored again
    assert np.mean(np.abs(both - picture).max(-1) > 40) < 1e-3
    assert np.mean(np.abs(start[..., :3] - picture).max(-1) > 40) > 1e-2


def test_kernel_has_finer_values_than_frames():
    assert between([0.0, 1.0, 3.0], "a", finer=2).values == [0.0, 0.5, 1.0, 2.0, 3.0]
    assert between([0.01, 1.0], "δ", finer=2).values == [0.01, 0.1, 1.0]  # even ratios, for the range is wide
    assert between([0.01, 1.0], "δ", finer=2).frames == [0.01, 1.0]
    assert between([0.0, 0.1, 1.0, 10.0], "s", finer=2).values == [0.0, 0.05, 0.1, 0.316, 1.0, 3.16, 10.0]
    assert between([k / 10 for k in range(1, 22)], "a", finer=2).values[1] == 0.15  # wide, but its steps are even
    slider = choice(range(61), "t, the step", start=20, every=5)
    assert (slider.frames[slider.first], len(slider.frames)) == (20, 13)
    figure = explore(draw, describe, message, a=between([0.0, 1.0, 2.0], "a", start=1.0))
    assert figure.live((5,))["title"] == "It rises by -1.25"
    assert figure.values(figure.first) == {"a": 1.0}


def test_labels_are_escaped():
    slider = explore(draw, lambda a: "</script><b>", lambda a: '"><u>', a=choice([0, 1], "<i>, a"))
    page = slider.page(slider.frames())
    assert page.count("</script>") == 2
    assert "<i>" not in page
    assert "<u>" not in page
    assert data_of(page)["alts"][0] == "</script><b>"


@pytest.fixture
def notebook(monkeypatch, tmp_path):
    """A running notebook: `run(slider)` gives the HTML of its cell, `store(html)` what the file holds for it."""
    shell = SimpleNamespace(
        history_manager=SimpleNamespace(input_hist_raw=["explore(...)"]),
        kernel=SimpleNamespace(comm_manager=SimpleNamespace(register_target=lambda *_: None)),
        user_ns={},
    )
    monkeypatch.setattr(sliders, "get_ipython", lambda: shell)
    monkeypatch.setenv("JPY_SESSION_NAME", "chapters/one.ipynb")
    monkeypatch.chdir(tmp_path)

    def store(html):
        cells = [{"cell_type": "code", "outputs": [{"data": {"text/html": html.splitlines(keepends=True)}}]}]
        (tmp_path / "one.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")

    def run(slider, live):
        monkeypatch.setenv(sliders.LIVE, "1") if live else monkeypatch.delenv(sliders.LIVE, raising=False)
        bundle = slider._repr_mimebundle_()
        assert set(bundle) == {"text/html", "text/plain"}  # never a widget, which a file cannot hold
        return bundle["text/html"]

    return SimpleNamespace(run=run, store=store, shell=shell)


def test_in_lab_only_the_first_picture_is_drawn(notebook):
    drawn = []
    page = notebook.run(
        explore(lambda a: drawn.append(a) or draw(a), describe, message, a=choice(range(9), "a", 3)), live=True
    )
    assert drawn == [3]
    assert data_of(page) == {}
    assert re.search(r'data-live="\w{32}"', page)


@pytest.mark.slow
def test_stored_frames_stay_with_an_unchanged_cell(notebook, two):
    notebook.store(notebook.run(two, live=False))
    kept = notebook.run(two, live=True)
    assert len(data_of(kept)["frames"]) == 6
    notebook.store(kept)
    assert data_of(notebook.run(two, live=True)) == data_of(kept)  # and after the next run, too


@pytest.mark.slow
def test_stored_frames_of_another_picture_go(notebook, two):
    notebook.store(notebook.run(two, live=False))
    other = explore(lambda a, b: draw(a + 1, b), describe, message, **two.sliders)  # as when a cell above was edited
    assert data_of(notebook.run(other, live=True)) == {}
    notebook.shell.history_manager.input_hist_raw.append("explore(..., edited)")
    assert data_of(notebook.run(two, live=True)) == {}


def test_slider_keeps_the_names_of_its_notebook(notebook):
    names = notebook.shell.user_ns
    names.update(draw=draw, shift=0)
    exec("def height(a):\n    return a + shift", names)
    exec("figure = lambda a: draw(height(a))", names)
    exec("words = lambda a: f'It ends at {height(a)}.'", names)
    slider = explore(names["figure"], names["words"], message, a=choice([0, 1], "a"))
    before = slider.live((1,))
    names.update(shift=5, height=None)  # as a later cell might
    assert slider.live((1,)) == before
    assert before["alt"] == "It ends at 1."


class Line:
    """A comm of the kernel, without a browser at its other end."""

    def __init__(self, key):
        self.sent, self.closed, self.answer = [], False, None
        sliders._opened(self, {"content": {"data": {"key": key}}})

    def on_msg(self, answer):
        self.answer = answer

    def send(self, data):
        self.sent.append(data)

    def close(self):
        self.closed = True

    def ask(self, *at):
        self.answer({"content": {"data": {"at": at}}})
        return self.sent[-1]


def test_kernel_answers_whoever_knows_the_key(notebook):
    slider = explore(lambda a: draw(1 / a), describe, message, a=between([-1.0, 1.0], "a", finer=4))
    key = re.search(r'data-live="(\w+)"', notebook.run(slider, live=True))[1]
    line = Line(key)
    assert line.sent == [{"labels": [["-1", "-0.5", "0", "0.5", "1"]], "first": (0,)}]
    assert line.ask(3)["title"] == "It rises by -0.5"
    assert np.array_equal(pixels(line.ask(3)["src"])[..., :3], np.asarray(slider.picture((3,))))
    assert line.ask(2) == {"problem": "ZeroDivisionError: float division by zero"}
    assert line.ask(4)["alt"] == "A line with a = 1."
    assert Line("of another kernel").closed


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: explore(draw, describe, message), "one or two sliders, each made by choice or between; got none"),
        (lambda: choice([1], "a"), "'a' has 1 values to stop at; give two or more"),
        (lambda: choice([1, 2], "a", start=3), r"starts at 3, which is not among its frames: \[1, 2\]"),
    ],
)
def test_invalid_sliders_raise(make, message):
    with pytest.raises(ValueError, match=message):
        make()
