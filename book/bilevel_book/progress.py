"""A progress bar for cells that take a while."""

import time
from collections.abc import Collection, Iterator
from typing import TypeVar

from IPython.display import HTML, clear_output, display

from bilevel_book.home import notebook_file

T = TypeVar("T")
PATIENCE, PERIOD = 1.0, 0.5  # seconds before the bar is shown, and between two of its moves


def watch(items: Collection[T]) -> Iterator[T]:
    """Go through `items` and show how far, if anybody looks.

    Use it before a cell prints: the bar clears the outputs of its cell when it goes.
    """
    due, shown, looking = time.monotonic() + PATIENCE, False, bool(notebook_file())
    for done, item in enumerate(items):
        if looking and time.monotonic() > due:
            clear_output(wait=True)
            words = f"{done} of {len(items)}"
            display(HTML(f'<progress value="{done}" max="{len(items)}">{words}</progress> {words}'))
            due, shown = time.monotonic() + PERIOD, True
        yield item
    if shown:
        clear_output()
