"""What a run was done with: processor, threads, versions, commit."""

import os
import platform
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import bilevel_core


def environment() -> dict[str, Any]:
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    versions["bilevel_core"] = bilevel_core.__version__
    return {"threads": 1, "cpu": processor(), "versions": versions, "commit": commit()}


@contextmanager
def one_thread() -> Iterator[None]:
    """torch on one thread, as every run of an experiment is."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def processor() -> str:
    """Its name, family and model, as far as the system tells, and the instructions that torch uses."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    told = dict(re.findall(r"^(model name|cpu family|model)\s*:\s*(.+)$", text, re.M))
    name = ", ".join(told.values()) or platform.processor() or platform.machine()
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}, {os.cpu_count()} cores"


@lru_cache(maxsize=1)
def commit() -> str | None:
    """The commit of the checkout that the code is in, "-dirty" if code of it was changed; None outside of one."""
    core, book = str(Path(bilevel_core.__file__).parent), str(Path(__file__).parents[1])

    def git(*arguments: str) -> str:
        command = ["git", "-C", core, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # a checkout of something else may lie around us
        changed = git("status", "--porcelain", "--untracked-files=no", "--", core, book)  # not in results
        return git("rev-parse", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None
