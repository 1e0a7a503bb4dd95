"""A small experiment, written anew for each test, with whatever a test wants changed."""

from collections.abc import Callable
from pathlib import Path

import pytest

FILE = """
problem = "Quadratic"
options = { noise = 0.5 }
columns = ["objective"]

[sizes.smoke]
main = { steps = 20, seeds = [0], every = 5 }

[sizes.full]
tuning = { steps = 10, seeds = [7], grid = true }
main = { steps = 40, seeds = [0, 1], every = 10 }
quiet = { methods = "main", only = ["SOBA"], problem = { noise = 0.0 }, steps = 10, seeds = [3] }
bold = { methods = "main", only = ["FdeHBO, delta 1"], settings = { alpha = 0.3 }, steps = 10, seeds = [3] }

[main.FdeHBO]
alpha = 0.05
eta = { c = 1.0, w = 7.0, p = 0.5, cap = 1.0 }
r_v = inf

[main.SOBA]
alpha = { values = [0.1, 0.01], at = [5] }

[main."FdeHBO, delta 1"]
like = "FdeHBO"
delta = 1.0

[tuning.FdeHBO]
like = "FdeHBO"
alpha = [0.01, 0.1]
beta = [0.2, 0.3, 0.4]
"""


@pytest.fixture(scope="session")
def changed() -> Callable[..., str]:
    """The text of the small experiment with pairs (old, new) replaced."""

    def replaced(*changes: tuple[str, str]) -> str:
        text = FILE
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return text

    return replaced


@pytest.fixture
def write(changed: Callable[..., str], tmp_path: Path) -> Callable[..., str]:
    """Write the small experiment with pairs (old, new) replaced; returns its path."""

    def written(*changes: tuple[str, str]) -> str:
        path = tmp_path / "small.toml"
        path.write_text(changed(*changes))
        return str(path)

    return written


@pytest.fixture
def small(write: Callable[..., str]) -> str:
    return write()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "results"
