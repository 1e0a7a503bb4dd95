import base64
import json
import re

import matplotlib.pyplot as plt
import pytest

from bilevel_book.sliders import Explore, explore


def draw(a, b=0):
    figure, axes = plt.subplots(figsize=(2, 1.5))
    axes.plot([0, 1], [a, b])
    plt.close(figure)
    return figure


def stored(slider: Explore) -> dict:
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', slider.page(), re.S)[1])


def test_the_page_holds_one_frame_for_each_place_of_the_sliders():
    slider = explore(draw, alt="A line.", a=[0, 0.5, 1], b=[1, 2])
    data = stored(slider)
    assert data["labels"] == [["0", "0.5", "1"], ["1", "2"]]
    frames = [base64.b64decode(f) for f in data["frames"]]
    assert len(set(frames)) == 6
    assert all(f.startswith(b"\x89PNG") for f in frames)
    assert frames[3] == slider.frame((1, 1))  # the last slider turns fastest
    assert data["alts"][3] == "A line. Here a = 0.5, b = 2."
    assert slider.page().count('type="range"') == 2


def test_nothing_is_random_and_nothing_is_fetched():
    pages = [explore(draw, alt="A line.", a=[0, 1, 2]).page() for _ in range(2)]
    assert pages[0] == pages[1]
    assert not re.search(r"https?:|//cdn|require\(", pages[0])


def test_sliders_start_where_they_are_told():
    slider = explore(draw, alt=lambda a: f"It ends at {a}.", start={"a": 2}, a=[0, 1, 2])
    page = slider.page()
    assert 'value="2"' in page
    assert '<img alt="It ends at 2."' in page
    assert base64.b64encode(slider.frame((2,))).decode() in page.partition("<script")[0]


def test_labels_cannot_break_out_of_the_page():
    slider = explore(draw, alt="</script><b>", a=[0, 1])
    assert slider.page().count("</script>") == 2
    assert stored(slider)["alts"][0].startswith("</script><b>")


def test_the_widget_asks_for_the_picture():
    slider = explore(draw, alt="A line.", a=[0, 1, 2], b=[0, 1])
    box = slider.widget()
    controls, picture = box.children
    assert picture.value == slider.frame((0, 0))
    controls.children[0].value = 2
    controls.children[1].value = 1
    assert picture.value == slider.frame((2, 1))


def test_it_shows_itself_in_both_homes():
    bundle = explore(draw, alt="A line.", a=[0, 1])._repr_mimebundle_()
    assert {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"} <= set(bundle)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one or two sliders of at least two values each, got none"),
        ({"a": [1]}, "at least two values each, got {'a': 1}"),
        ({"a": [1, 2], "b": [1, 2], "c": [1, 2]}, "one or two sliders"),
        ({"a": [1, 2], "start": {"a": 3}}, "start says a = 3, which is not among the values"),
        ({"a": [1, 2], "start": {"z": 1}}, "start says z = 1"),
    ],
)
def test_bad_sliders_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        explore(draw, alt="", **options)
