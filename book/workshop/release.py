"""A release, made and tried: the source distribution is built, the wheel from it, and twine looks at both.

Then each Python that the library supports gets an empty environment with the wheel and what it needs, in the versions
of requirements.txt. There, in an empty folder and without a network, the examples of README.md must run.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from workshop import ROOT

DIST, HOMES = ROOT / "_build" / "dist", ROOT / "_build" / "release"
PYTHONS = ("python3.11", "python3.12", "python3.13")  # as in .github/workflows/ci.yml
TRIAL = """
import doctest, socket, sys

def refuse(*_, **__):
    raise OSError("a release is tried without a network")

socket.socket.connect = socket.getaddrinfo = refuse
failed, tried = doctest.testfile(sys.argv[1], module_relative=False)
print(f"README.md: {tried} examples, {failed} failed")
sys.exit(failed or not tried)
"""


def release(*pythons: str) -> None:
    """Build, check, and try with each Python."""
    build()
    absent = [name for name in pythons or PYTHONS if not tried(name)]
    print(f"In {DIST}: {', '.join(sorted(path.name for path in DIST.iterdir()))}")
    if absent:
        print(f"Not tried, since they are not on this machine: {', '.join(absent)}")


def build() -> None:
    """The source distribution, and from it the wheel, as those have it who download them."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, ROOT)
    run(sys.executable, "-m", "twine", "check", "--strict", *DIST.iterdir())


def tried(python: str) -> bool:
    """Whether this Python is here; the wheel is then installed and tried, and what fails ends the release."""
    ask = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        number = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):  # a name may be there and not run
        return False
    home = HOMES / number
    print(f"\nPython {number}, an empty environment in {home}", flush=True)
    run(python, "-m", "venv", "--clear", home)
    own = home / "bin" / "python"
    run(own, "-m", "pip", "install", "--quiet", "-c", ROOT / "requirements.txt", *DIST.glob("*.whl"))
    with TemporaryDirectory() as empty:
        run(own, "-c", TRIAL, shutil.copy(ROOT / "README.md", empty), cwd=empty)
    return True


def run(*command: str | Path, cwd: str | Path = ROOT) -> None:
    around = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, check=True, cwd=cwd, env=around)
