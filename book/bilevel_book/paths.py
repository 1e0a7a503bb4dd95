"""Where the book's folders are: in the tree, or, where the book is installed, in the package."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = ROOT / "chapters"
TESTS = ROOT / "tests"
Named = str | os.PathLike[str]  # an experiment: the name of one that comes with the book, or the path of a TOML file


def _folder(in_tree: str, in_package: str) -> Path:
    return ROOT / in_tree if (ROOT / in_tree).is_dir() else Path(__file__).parent / in_package


RESULTS = _folder("results", "results")
EXPERIMENTS = _folder("experiments", "configurations")
MNIST = _folder("data/mnist", "mnist_files")
DATA = ROOT / "data" if MNIST.is_relative_to(ROOT / "data") else Path("data")  # of other datasets


def shipped_experiments() -> dict[str, Path]:
    """The files of the experiments that come with the book, by name."""
    return {experiment_name(path): path for path in sorted(EXPERIMENTS.glob("*.toml"))}


def experiment_name(experiment: Named) -> str:
    """The name of an experiment: that of its file, with hyphens."""
    return Path(experiment).stem.replace("_", "-")


def experiment_file(experiment: Named) -> Path:
    """The file of an experiment."""
    name, shipped = os.fspath(experiment), shipped_experiments()
    path = shipped.get(name, Path(experiment))
    if path.suffix != ".toml":
        known = f"known are {', '.join(shipped)}"
        raise ValueError(f"unknown experiment {name!r} (or give the path of a TOML file); {known}")
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    return path


def chapter(number: int) -> Path:
    """The notebook of a chapter."""
    files = sorted(CHAPTERS.glob(f"{number:02d}_*.ipynb"))
    if len(files) != 1:
        raise ValueError(f"{len(files)} notebooks in {CHAPTERS.name} are numbered {number}; there must be one")
    return files[0]
