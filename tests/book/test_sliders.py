"""Sliders over pictures: their stored frames, their words, and what the kernel answers."""

import base64
import io
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


def pixels(address: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))).convert("RGBA"))


@pytest.fixture
def two() -> Explore:
    return explore(
        draw, describe, message, a=choice([0, 0.5, 1], "a, the left end"), b=choice([1, 2], "b, the right end", 2)
    )


@pytest.mark.slow
def test_a_slider_holds_one_frame_for_each_place(two):
    left, right = two.dials
    assert (left["labels"], left["start"], left["step"], left["max"]) == (["0", "0.5", "1"], 0, 1, 2)
    assert (right["labels"], right["start"], two.b) == (["1", "2"], 1, 1)
    assert len(set(two.made["frames"])) == 6
    assert two.made["alts"][3] == "A line with a = 0.5, b = 2."  # the last slider turns fastest
    assert two.made["titles"][3] == "It rises by 1.5"
    assert (two.alt, two.made["title"], two.known_as) == ("A line with a = 0, b = 2.", "It rises by 2", "a-b")
    start, over = pixels(two.made["start"]), pixels(two.made["frames"][4])
    both = np.where(over[..., 3:] == 0, start, over)[..., :3].astype(int)
    picture = np.asarray(two.picture((2, 0))).astype(int)
    assert (over[..., 3] == 0).mean() > 0.4  # what does not change is not stored again
    assert np.mean(np.abs(both - picture).max(-1) > 40) < 1e-3
    assert np.mean(np.abs(start[..., :3] - picture).max(-1) > 40) > 1e-2


def test_kernel_has_finer_values_than_frames():
    assert between([0.0, 1.0, 3.0], "a, one", finer=2).values == [0.0, 0.5, 1.0, 2.0, 3.0]
    assert between([0.01, 1.0], "δ, the step", finer=2).values == [0.01, 0.1, 1.0]  # even ratios, for the range is wide
    assert between([0.01, 1.0], "δ, the step", finer=2).frames == [0.01, 1.0]
    assert between([0.0, 0.1, 1.0, 10.0], "s, one", finer=2).values == [0.0, 0.05, 0.1, 0.316, 1.0, 3.16, 10.0]
    assert between([k / 10 for k in range(1, 22)], "a, one", finer=2).values[1] == 0.15  # wide, but its steps are even
    slider = choice(range(61), "t, the step", start=20, every=5)
    assert (slider.frames[slider.first], len(slider.frames)) == (20, 13)


@pytest.fixture
def looking(monkeypatch):
    """A notebook at which a reader looks, and its names."""
    monkeypatch.setenv("JPY_SESSION_NAME", "chapters/one.ipynb")
    shell = SimpleNamespace(user_ns={})
    monkeypatch.setattr(sliders, "get_ipython", lambda: shell)
    return shell.user_ns


def test_for_a_reader_the_kernel_draws_what_is_asked_for(looking):
    drawn = []
    ends = between([-1.0, 1.0], "a, b", start=1.0)
    slider = explore(lambda a: drawn.append(a) or draw(1 / a), describe, message, a=ends)
    assert drawn == [1.0]
    assert {*slider.made} == {"start", "title"}
    assert slider.dials[0]["labels"] == ["-1", "-0.5", "0", "0.5", "1"]
    slider.asked = [3]
    assert (slider.answer["at"], slider.answer["title"]) == ([3], "It rises by -0.5")
    assert np.array_equal(pixels(slider.answer["src"])[..., :3], np.asarray(slider.picture((3,))))
    slider.asked = [2]
    assert slider.answer == {"at": [2], "problem": "ZeroDivisionError: float division by zero"}


def test_slider_keeps_the_names_of_its_notebook(looking):
    looking.update(draw=draw, shift=0)
    exec("def height(a):\n    return a + shift", looking)
    exec("figure = lambda a: draw(height(a))", looking)
    exec("words = lambda a: f'It ends at {height(a)}.'", looking)
    slider = explore(looking["figure"], looking["words"], message, a=choice([0, 1], "a, one"))
    slider.asked = [1]
    before = slider.answer
    looking.update(shift=5, height=None)  # as a later cell might
    slider.asked, slider.answer = [0], {}
    slider.asked = [1]
    assert slider.answer == before
    assert before["alt"] == "It ends at 1."


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: explore(draw, describe, message), "one or two sliders, each made by choice or between; got none"),
        (lambda: choice([1], "a, one"), "'a, one' has 1 values to stop at; give two or more"),
        (lambda: choice([1, 2], "a, one", start=3), r"starts at 3, which is not among its frames: \[1, 2\]"),
    ],
)
def test_invalid_sliders_raise(make, message):
    with pytest.raises(ValueError, match=message):
        make()
