"""Where the book's folders are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = ROOT / "chapters"
# In an installation, where there is no tree, the results lie in the package.
RESULTS = ROOT / "results" if (ROOT / "results").is_dir() else Path(__file__).parent / "results"
TESTS = ROOT / "tests"


def chapter(number: int) -> Path:
    """The notebook of a chapter."""
    files = sorted(CHAPTERS.glob(f"{number:02d}_*.ipynb"))
    if len(files) != 1:
        raise ValueError(f"{len(files)} notebooks in {CHAPTERS.name} are numbered {number}; there must be one")
    return files[0]
