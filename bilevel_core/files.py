"""Files: written wholly or not at all; and where those of the experiments are."""

import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a neighbour, flush it to disk, then move it into place: a crash leaves the old file or the new one."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        append(temporary, 0, content)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def append(path: Path, size: int, content: bytes) -> None:
    """Cut a file to `size` bytes, write what follows, and flush it to disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(path, "r+b" if size else "wb") as file:
            file.truncate(size)
            file.seek(size)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        error.filename = str(path)  # a full disk does not say where
        raise


def rows_of(checkpoint: Path) -> Path:
    """The file beside a checkpoint that has the rows of its history, one JSON a line."""
    return checkpoint.with_name(f"{checkpoint.name}.rows")


def shipped_experiments() -> dict[str, Path]:
    """The files of the experiments that come with the package, by name."""
    package = find_spec("bilevel_core.configurations")
    folders = package.submodule_search_locations if package else None
    found = sorted(path for folder in folders or [] for path in Path(folder).glob("*.toml"))
    return {path.stem.replace("_", "-"): path for path in found}


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
