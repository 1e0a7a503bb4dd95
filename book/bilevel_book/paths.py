"""Where the book's folders are: in the tree, or, where the book is installed, in the package."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = ROOT / "chapters"
TESTS = ROOT / "tests"


def _folder(in_tree: str, in_package: str) -> Path:
    return ROOT / in_tree if (ROOT / in_tree).is_dir() else Path(__file__).parent / in_package


RESULTS = _folder("results", "results")
EXPERIMENTS = _folder("experiments", "configurations")
MNIST = _folder("data/mnist", "mnist_files")


def chapter(number: int) -> Path:
    """The notebook of a chapter."""
    files = sorted(CHAPTERS.glob(f"{number:02d}_*.ipynb"))
    if len(files) != 1:
        raise ValueError(f"{len(files)} notebooks in {CHAPTERS.name} are numbered {number}; there must be one")
    return files[0]
