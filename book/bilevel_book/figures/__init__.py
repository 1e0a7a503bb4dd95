"""Every plot of the book, in the one style of `bilevel_book.style`: a function takes numbers and returns a figure."""

from bilevel_book.figures.methods import family_tree
from bilevel_book.figures.valley import cover, errors_of, slice_of_lower, step_by_step

__all__ = ["cover", "errors_of", "family_tree", "slice_of_lower", "step_by_step"]
