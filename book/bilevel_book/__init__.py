"""The book's own Python: what chapters, pages and Sphinx extensions share, on top of `bilevel_core`."""
