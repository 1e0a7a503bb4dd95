"""Where the files of the experiments are."""

import os
from pathlib import Path

from bilevel_book.paths import EXPERIMENTS


def shipped_experiments() -> dict[str, Path]:
    """The files of the experiments that come with the package, by name."""
    return {path.stem.replace("_", "-"): path for path in sorted(EXPERIMENTS.glob("*.toml"))}


def experiment_file(experiment: str | os.PathLike[str]) -> Path:
    """The file of an experiment that comes with the package, by its name, or any TOML file, by its path."""
    name, path, shipped = os.fspath(experiment), Path(experiment), shipped_experiments()
    if path.suffix != ".toml" and name not in shipped:
        known = f"(or give the path of a TOML file); known are {', '.join(shipped)}"
        raise ValueError(f"unknown experiment {name!r} {known}")
    path = shipped.get(name, path)
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    return path
