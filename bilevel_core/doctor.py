"""What this installation has and what it lacks: python -m bilevel_core doctor. Nothing is fetched, nothing is kept."""

import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import bilevel_core


class Finding(NamedTuple):
    """A line of the report: "ok", "warning" or "problem", what was found, and what to do."""

    verdict: str
    found: str
    cure: str = ""


def versions() -> Iterator[Finding]:
    """Of Python, of the library and of each package that it needs."""
    yield Finding("ok", f"Python {platform.python_version()}")
    here, listed = bilevel_core.__version__, version("bilevel-core")
    again = "" if here == listed else f"pip lists {listed}: install this one again"
    yield Finding("warning" if again else "ok", f"bilevel_core {here} in {Path(bilevel_core.__file__).parent}", again)
    for needed in (line for line in requires("bilevel-core") or () if "extra ==" not in line):
        name, _, least = needed.partition(">=")
        try:
            found = version(name)
            old = least and [int(part) for part in re.findall(r"\d+", found)] < [int(part) for part in least.split(".")]
        except PackageNotFoundError:
            found, old = "is not installed", True
        yield Finding("problem" if old else "ok", f"{name} {found}", f"pip install '{needed}'" if old else "")


def data() -> Iterator[Finding]:
    """MNIST, by its checksums."""
    from bilevel_core.data import FILES, bundled, load_mnist

    load_mnist()
    yield Finding("ok", f"MNIST: {len(FILES)} files in {bundled()}, each with its checksum")


def threads() -> Iterator[Finding]:
    """Of torch, beside the cores that this process may use."""
    import torch

    taken = torch.get_num_threads()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    best = "one is best for small problems and for runs side by side: set OMP_NUM_THREADS=1 before Python starts"
    yield Finding("ok" if taken <= cores else "warning", f"threads: {taken}, cores: {cores}", best * (taken > 1))


def checkpoint() -> Iterator[Finding]:
    """A run that is stopped and resumed, against the same run in one go."""
    from bilevel_core import SOLVERS, run
    from bilevel_core.problems import Quadratic

    problem, solver = Quadratic(noise=0.5), SOLVERS["FdeHBO"]()
    with TemporaryDirectory() as folder:
        for steps in (5, 10):
            resumed = run(problem, solver, steps=steps, checkpoint=Path(folder) / "doctor.ckpt", progress=False)
    if not resumed.state.x.equal(run(problem, solver, steps=10, progress=False).state.x):
        raise ArithmeticError("a run that is resumed is not the run in one go; report this, with all the lines above")
    yield Finding("ok", "checkpoint: a run that is stopped and resumed is the run in one go")


CHECKS: tuple[Callable[[], Iterable[Finding]], ...] = (versions, data, threads, checkpoint)


def report(checks: Iterable[Callable[[], Iterable[Finding]]] = CHECKS) -> int:
    """Print what the checks find; 1 if one finds a problem, or fails, and 0 if none does."""
    verdicts = []
    for check in checks:
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
