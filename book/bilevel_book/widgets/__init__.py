"""Live widgets: the run of the library, computed in the page, in JupyterLab, in VS Code and wherever anywidget works.

    from bilevel_book import widgets

    widgets.Valley(seed=3, noise=0.3)      # or widgets.Valley(show="delta r_v"): the dials that are in sight

A widget is one ES module and one small class, whose traits are its dials; `core.js` is the library in JavaScript.
"""

from bilevel_book.widgets.base import Live
from bilevel_book.widgets.chapters import (
    Ball,
    Bowl,
    Delta,
    Everything,
    Hypergradient,
    Mislabel,
    Momentum,
    Race,
    Slopes,
    Valley,
)  # fmt: skip

__all__ = [
    "Ball", "Bowl", "Delta", "Everything", "Hypergradient", "Live", "Mislabel", "Momentum", "Race", "Slopes", "Valley",
]  # fmt: skip
