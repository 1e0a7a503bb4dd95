"""Where the book's folders are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = ROOT / "chapters"
RESULTS = ROOT / "results"
TESTS = ROOT / "tests"


def chapter(number: int) -> Path:
    """The notebook of a chapter."""
    files = sorted(CHAPTERS.glob(f"{number:02d}_*.ipynb"))
    if len(files) != 1:
        raise ValueError(f"{len(files)} notebooks in {CHAPTERS.name} are numbered {number}; there must be one")
    return files[0]
