"""A progress bar for cells that take a while."""

import os
import time
from collections.abc import Collection, Iterator
from typing import TypeVar

from IPython.core.getipython import get_ipython
from IPython.display import HTML, clear_output, display

T = TypeVar("T")
SECONDS_BEFORE, SECONDS_BETWEEN = 1.0, 0.5  # before the bar is shown, and between two of its moves


def notebook_file() -> str:
    """The file of the running notebook, as JupyterLab and VS Code tell it; nothing where nobody looks, as in tests."""
    shell = get_ipython()
    return os.environ.get("JPY_SESSION_NAME") or (shell.user_ns.get("__vsc_ipynb_file__", "") if shell else "")


def in_test() -> bool:
    """Whether pytest has started this process, or the one that started it."""
    return "PYTEST_VERSION" in os.environ


def watch(items: Collection[T]) -> Iterator[T]:
    """Go through `items` and show how far, if anybody looks; before a cell prints, as the bar clears its outputs."""
    due, shown, looking = time.monotonic() + SECONDS_BEFORE, False, bool(notebook_file()) and not in_test()
    for done, item in enumerate(items):
        if looking and time.monotonic() > due:
            clear_output(wait=True)
            words = f"{done} of {len(items)}"
            display(HTML(f'<progress value="{done}" max="{len(items)}">{words}</progress> {words}'))
            due, shown = time.monotonic() + SECONDS_BETWEEN, True
        yield item
    if shown:
        clear_output()
