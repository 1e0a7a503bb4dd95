"""Every plot of the book, in the one style of `bilevel_book.style`: a function takes numbers and returns a figure."""

from bilevel_book.figures.methods import family_tree
from bilevel_book.figures.valley import cover, draw_valley

__all__ = ["cover", "draw_valley", "family_tree"]
