"""The book's own Python: what chapters, pages and Sphinx extensions share, on top of `bilevel_core`."""

from bilevel_book.quiz import quiz

__all__ = ["quiz"]
