import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy


def data(n, generator):
    return torch.randn(n, 4, generator=generator), torch.randint(3, (n,), generator=generator)


@pytest.fixture
def parts(generator):
    torch.manual_seed(0)
    outer, inner = nn.Sequential(nn.Linear(4, 5), nn.Tanh()), nn.Linear(5, 3)
    return outer, inner, cross_entropy, data(40, generator), data(30, generator)
