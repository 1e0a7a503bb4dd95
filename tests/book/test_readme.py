"""The picture of README.md is drawn from the problem that stands there."""

from pathlib import Path

import pytest

from bilevel_book.readme import ANSWER, picture, solved

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def histories():
    return solved(README, seeds=1, steps=400)


def test_readme_problem_has_the_solution_it_states(histories):
    (fdehbo,), (control,) = histories["FdeHBO"], histories["alternating"]
    assert fdehbo.penalty.iloc[-1] == pytest.approx(ANSWER, abs=0.1)
    assert set(control.penalty) == {1.0}  # f does not contain x


@pytest.mark.slow
def test_readme_picture_reads_on_light_and_dark_pages(histories):
    drawn, stored = picture(histories).decode(), (ROOT / "book" / "_static" / "readme.svg").read_text()
    for svg in (drawn, stored):
        assert "svg{color:#222222;fill:currentColor}@media(prefers-color-scheme:dark){svg{color:#ddd}}" in svg
        after_the_rule = svg.split("</style>", 1)[1]
        assert not any(f"#{ink}" in after_the_rule for ink in ("222222", "000000", "ffffff"))
    assert picture(histories).decode() == drawn  # no date, no chance
    assert "book/_static/readme.svg" in README
