"""The digits of Chapter 1, whose checks see what is learnt."""

import torch

from bilevel_book.digits import Digits
from bilevel_core.directions import hessian_vector


def test_lower_level_is_strongly_convex():
    digits = Digits(n=200)
    y, u = torch.randn(2, 1970, generator=torch.Generator().manual_seed(0))
    x = torch.full((200,), -20.0)  # hardly any weight: only the ridge is left
    assert u @ hessian_vector(digits, x, y, u, None) >= 2 * digits.C * (u @ u) * 0.999
