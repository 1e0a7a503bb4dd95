"""The protocol's check "Control": where a tuned method is not ahead of `alternating`, its chapter says so."""

import json
import re

import pytest

from bilevel_book import paths
from bilevel_book.verdicts import Sentence, Verdict, judge
from bilevel_book.verdicts.sentences import complete

CONTROL = "alternating"
ALL = "no method is ahead of it"  # names everybody


def not_ahead(experiment, metric, axis):
    """The methods that the runs, tuned alike, do not show to end lower than the control."""
    runs = complete(experiment, "tuned")
    for method in set(runs.label) - {CONTROL}:
        lower = Sentence(f"{method} ends lower", method, (CONTROL,), "lower", metric)
        if judge(runs, lower, axis) != Verdict.HOLDS:
            yield method.partition(",")[0]  # "F2SA, 10 inner steps" is a reading of F2SA


def said_about_the_control(chapter):
    """The lines that begin with it where the chapter tells the tuned results; F$^2$SA is F2SA."""
    cells = json.loads(paths.chapter(chapter).read_text())["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    section = re.search(r"^## Tuned alike$(.*?)^## ", text, re.M | re.S)[1]
    return re.sub(r"\$\^(\d)\$", r"\1", "\n".join(re.findall(r"^- \*\*The control\*\*.*", section, re.M)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("experiment", "metric", "axis", "chapter"),
    [("hyper-cleaning", "train_loss", "equivalents", 10), ("hyper-representation", "upper_loss", "seconds", 9)],
)
def test_where_a_method_is_not_ahead_of_the_control_the_chapter_says_so(experiment, metric, axis, chapter):
    said = said_about_the_control(chapter)
    methods = set(not_ahead(experiment, metric, axis))
    assert methods  # or this test asks for nothing
    assert {method for method in methods if method not in said and ALL not in said} == set()
