"""What this installation has and what it lacks: python -m bilevel_book doctor. Nothing is fetched, nothing is kept."""

import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import bilevel_core
from bilevel_book.paths import MNIST, ROOT

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PINS = ROOT / "requirements.txt"
LAB = Path(sys.prefix) / "share" / "jupyter" / "labextensions"
EXTENSIONS = {"jupyterlab-myst": "jupyterlab-myst", "@jupyter-widgets/jupyterlab-manager": "ipywidgets"}


class Finding(NamedTuple):
    """A line of the report: "ok", "warning" or "problem", what was found, and what to do."""

    verdict: str
    found: str
    cure: str = ""


def pinned() -> dict[str, str]:
    """The version of each package that requirements.txt asks for; none outside the tree of the book."""
    lines = PINS.read_text(encoding="utf-8").splitlines() if PINS.is_file() else []
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def packages() -> Iterator[Finding]:
    """Python, the library, and what is installed beside what is pinned."""
    yield Finding("ok", f"Python {platform.python_version()}")
    yield Finding("ok", f"bilevel_core {bilevel_core.__version__} in {Path(bilevel_core.__file__).parent}")
    as_pinned = 0
    for name, asked in pinned().items():
        cure = f"pip install {name}=={asked}, or all of them: touch requirements.txt && make book"
        try:
            found = version(name).partition("+")[0]  # 2.13.0+cpu is 2.13.0 for one kind of machine
        except PackageNotFoundError:
            yield Finding("problem", f"{name} is pinned and not installed", cure)
            continue
        as_pinned += found == asked
        if found != asked:
            yield Finding("warning", f"{name} {found} is installed, {asked} is pinned", cure)
    if pinned():
        yield Finding("ok", f"{as_pinned} packages are installed as requirements.txt pins them")


def data() -> Iterator[Finding]:
    """torchvision, and MNIST by its checksums."""
    from bilevel_book.mnist.data import FILES, load_mnist
    from bilevel_book.mnist.vision import has_operators

    without = " without its compiled operators, as beside a torch for processors; datasets and transforms work"
    yield Finding("ok", f"torchvision {version('torchvision')}{'' if has_operators() else without}")
    load_mnist()
    yield Finding("ok", f"MNIST: {len(FILES)} files in {MNIST}, each with its checksum")


def checkpoint() -> Iterator[Finding]:
    """A run that is stopped and resumed, against the same run in one go."""
    from bilevel_core import SOLVERS, run
    from bilevel_core.problems import Quadratic

    problem, solver = Quadratic(noise=0.5), SOLVERS["FdeHBO"]()
    with TemporaryDirectory() as folder:
        for steps in (5, 10):
            resumed = run(problem, solver, steps=steps, checkpoint=Path(folder) / "doctor.ckpt", progress=False)
    if not resumed.state.x.equal(run(problem, solver, steps=10, progress=False).state.x):
        raise ArithmeticError("a resumed run differs from the run in one go; report this, with all the lines above")
    yield Finding("ok", "checkpoint: a resumed run equals the run in one go")


def browser() -> str | None:
    """The Chromium of this machine."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def chromium() -> Iterator[Finding]:
    """For the tests of the pages and for `make pdf`."""
    if path := browser():
        yield Finding("ok", f"Chromium: {path}")
    else:
        found = f"no Chromium on PATH ({', '.join(BROWSERS)}): tests of the pages are skipped, make pdf cannot print"
        yield Finding("warning", found, "apt-get install chromium, or what your system calls it")


def lab() -> Iterator[Finding]:
    """The extensions that make a chapter in JupyterLab look like its page."""
    try:
        version("jupyterlab")
    except PackageNotFoundError:
        found = "no JupyterLab: elsewhere the chapters run too, without the boxes and proofs of the page"
        yield Finding("warning", found, "pip install jupyterlab jupyterlab-myst")
        return
    for name, package in EXTENSIONS.items():
        if (LAB / name / "package.json").is_file():
            yield Finding("ok", f"JupyterLab: {name}")
        else:
            yield Finding("problem", f"JupyterLab has no {name}", f"pip install --force-reinstall {package}")


CHECKS: tuple[Callable[[], Iterable[Finding]], ...] = (packages, data, checkpoint, chromium, lab)


def report(checks: Iterable[Callable[[], Iterable[Finding]]] | None = None) -> int:
    """Print what the checks find; 1 if one finds a problem, or fails, and 0 if none does."""
    verdicts = []
    for check in CHECKS if checks is None else checks:
        try:
            findings = list(check())
        except Exception as error:  # the doctor must not die of what the patient has
            found, _, cure = f"{check.__name__}: {error}".partition("; ")
            findings = [Finding("problem", found, cure or "begin with the first problem; if this is it, report it")]
        for verdict, found, cure in findings:
            print(f"{verdict:8}{found}" + f"\n{'':8}-> {cure}" * bool(cure))
            verdicts.append(verdict)
    print(f"problems: {verdicts.count('problem')}, warnings: {verdicts.count('warning')}")
    return int("problem" in verdicts)
