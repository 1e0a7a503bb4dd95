"""python -m bilevel_book doctor: what the library's doctor says, and what pages, their tests and JupyterLab need."""

import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bilevel_book.paths import ROOT
from bilevel_core import doctor
from bilevel_core.doctor import Finding

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PINS = ROOT / "requirements.txt"
LAB = Path(sys.prefix) / "share" / "jupyter" / "labextensions"
EXTENSIONS = {"jupyterlab-myst": "jupyterlab-myst", "@jupyter-widgets/jupyterlab-manager": "ipywidgets"}


def browser() -> str | None:
    """The Chromium of this machine."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def pinned() -> dict[str, str]:
    """The version of each package that requirements.txt asks for."""
    lines = PINS.read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def pins() -> Iterator[Finding]:
    """What is installed, beside what is pinned."""
    if not PINS.is_file():
        return
    wrong = False
    for name, asked in pinned().items():
        cure = f"pip install {name}=={asked}, or all of them: touch requirements.txt && make book"
        try:
            if (found := version(name).partition("+")[0]) != asked:  # 2.13.0+cpu is 2.13.0 for one kind of machine
                wrong = True
                yield Finding("warning", f"{name} {found} is installed, {asked} is pinned", cure)
        except PackageNotFoundError:
            wrong = True
            yield Finding("problem", f"{name} is pinned and not installed", cure)
    if not wrong:
        yield Finding("ok", f"all {len(pinned())} packages are those that requirements.txt pins")


def chromium() -> Iterator[Finding]:
    """For the tests of the pages and for `make pdf`."""
    if path := browser():
        yield Finding("ok", f"Chromium: {path}")
    else:
        found = f"no Chromium on PATH ({', '.join(BROWSERS)}): tests of the pages are skipped, make pdf cannot print"
        yield Finding("warning", found, "apt-get install chromium, or what your system calls it")


def lab() -> Iterator[Finding]:
    """The extensions that make a chapter in JupyterLab look like its page."""
    for name, package in EXTENSIONS.items():
        if (LAB / name / "package.json").is_file():
            yield Finding("ok", f"JupyterLab: {name}")
        else:
            yield Finding("problem", f"JupyterLab has no {name}", f"pip install --force-reinstall {package}")


CHECKS = (*doctor.CHECKS, pins, chromium, lab)
