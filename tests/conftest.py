"""One thread and one device for all tests, so that they say the same everywhere."""

import sys

import pytest
import torch
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

# jsonschema makes dozens of grammars with it when nbformat is imported, 1.6 s of each process; no notebook has an IRI.
sys.modules["rfc3987_syntax"] = None

torch.set_num_threads(1)

# Ranks, a cluster's imports, a small sweep, a server, wheels and judged claims are made once; a chapter has one kernel.
TOGETHER = (
    "test_cluster.py", "test_distributed.py", "test_house.py", "test_lab.py", "test_ledger.py", "test_selection.py",
    ".ipynb",
)  # fmt: skip

# Derandomised: a test that passes here passes in CI. Deadlines would time the machine, not the code.
settings.register_profile("book", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("book")


def pytest_xdist_make_scheduler(config, log):
    """The tests of a file that shares something slow go to one process, and start first; all others go one by one.

    The groups of xdist 3.8 (`--dist loadgroup`) say the same and have no effect with pytest 9.
    """

    class Scheduler(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if file.endswith(TOGETHER) else nodeid

    return Scheduler(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """The kernel of a chapter, and nothing else, leaves the frames of sliders undrawn."""
    with pytest.MonkeyPatch.context() as patch:
        if item.path.suffix == ".ipynb":
            patch.setenv("JPY_SESSION_NAME", "a test")  # as if somebody looked
        return (yield)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request) -> torch.dtype:
    return request.param


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
