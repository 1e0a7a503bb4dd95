"""The digits of Chapter 1, whose checks see what is learnt."""

import torch

from bilevel_book.digits import Digits
from bilevel_core.directions import hessian_vector


def test_lower_level_is_strongly_convex():
    digits, (y, u) = Digits(n=200), torch.randn(2, 1970, generator=torch.Generator().manual_seed(0))
    Hu = hessian_vector(digits, torch.full((200,), -20.0), y, u, None)  # hardly any weight: only the ridge is left
    assert u @ Hu >= 2 * digits.C * (u @ u) * 0.999
