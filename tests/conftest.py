"""One thread and one device for all tests, so that they say the same everywhere."""

import sys

import pytest
import torch
from hypothesis import settings

# jsonschema makes dozens of grammars with it when nbformat is imported, 1.6 s of each process; no notebook has an IRI.
sys.modules["rfc3987_syntax"] = None

torch.set_num_threads(1)

# Derandomised: a test that passes here passes in CI. Deadlines would time the machine, not the code.
settings.register_profile("book", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("book")


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request) -> torch.dtype:
    return request.param


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
