"""Every plot of the book, in one style: legible on a phone, in dark mode, in print and to colour-blind readers.

Figures are narrow and stacked, in the colours of `bilevel_book.style`; each says its message in its title. A function
takes numbers and returns a figure; nothing is computed by a method while drawing.
"""

from bilevel_book.figures.methods import family_tree, position, race
from bilevel_book.figures.valley import cover, errors_of, landscape, slice_of_lower, step_by_step, two_paths

__all__ = [
    "cover", "errors_of", "family_tree", "landscape", "position", "race", "slice_of_lower", "step_by_step", "two_paths",
]  # fmt: skip
