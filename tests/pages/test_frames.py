"""Frames of sliders come from files beside the page."""

import json

from frames import lighten

SLIDER = (
    '<figure class="explore" data-live="" data-cell="{cell}">\n<img src="start">\n'
    '<script type="application/json">{{"frames": ["</x>", "{cell}"]}}</script>\n<script>wake();</script>\n</figure>'
)


def test_frames_and_code_leave_the_page_and_the_rest_stays():
    body = f"<p>before</p>{SLIDER.format(cell='a')}<p>between</p>{SLIDER.format(cell='b')}"
    light, scripts = lighten(body, "../_static/frames")
    assert len(scripts) == 2
    for name, (script, cell) in zip(scripts, zip(scripts.values(), "ab", strict=True), strict=True):
        assert f'data-cell="{cell}" data-frames="../_static/frames/{name}.js" data-awake="no">' in light
        put = script.split("textContent = ")[1].split(";\n")[0]
        assert json.loads(json.loads(put)) == {"frames": ["</x>", cell]}
        assert script.endswith("wake();")
    assert light.count('<img src="start">') == 2
    assert 'frames": [' not in light
    assert light.index("before") < light.index("between")


def test_a_page_without_sliders_is_left_alone():
    assert lighten("<p>text</p>", "x") == ("<p>text</p>", {})
