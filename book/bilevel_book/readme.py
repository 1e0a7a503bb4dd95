"""The picture of README.md: the problem that stands there as a doctest, solved by FdeHBO and by the control."""

import doctest
import io
import re
from typing import Any

import matplotlib as mpl
import pandas as pd

from bilevel_book.figures.methods import towards_the_answer
from bilevel_book.methods import SOLVERS
from bilevel_book.style import BLACK
from bilevel_core import BilevelProblem, run

ANSWER = 2 / 3  # y*(x) = (2, 1) / (1 + exp x) is closest to (1, 1) where exp x = 2/3
LIGHT_AND_DARK = (
    f"<style>svg{{color:{BLACK};fill:currentColor}}@media(prefers-color-scheme:dark){{svg{{color:#ddd}}}}</style>"
)


def problem(text: str) -> BilevelProblem:
    """The problem whose class README.md defines."""
    names: dict[str, Any] = {}
    examples = doctest.DocTestParser().get_examples(text)
    for example in examples[: 1 + next(i for i, e in enumerate(examples) if e.source.startswith("class Ridge"))]:
        exec(example.source, names)
    return names["Ridge"]()


def solved(text: str, seeds: int = 5, steps: int = 1000) -> dict[str, list[pd.DataFrame]]:
    """The histories of FdeHBO and of the control, one for each seed."""
    options: dict[str, Any] = {"steps": steps, "every": 10, "progress": False}
    return {
        name: [run(problem(text), SOLVERS[name](), seed=seed, **options).history for seed in range(seeds)]
        for name in ("FdeHBO", "alternating")
    }


def picture(histories: dict[str, list[pd.DataFrame]]) -> bytes:
    """An SVG with no ground, whose black is light on a dark page; and no date: the same runs give the same file."""
    file = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "readme"}):
        towards_the_answer(histories, ANSWER).savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = re.sub(f"{BLACK}|#000000", "currentColor", file.getvalue().decode(), flags=re.IGNORECASE)
    return re.sub(r"<svg[^>]*>", lambda tag: tag[0] + LIGHT_AND_DARK, text, count=1).encode()
