"""The digits of Chapter 1."""

import pytest
import torch

from bilevel_book.digits import Digits
from bilevel_book.methods import SOLVERS
from bilevel_book.walk import walk
from bilevel_core import FdeHBO
from bilevel_core.directions import grad_y, hessian_vector


@pytest.fixture(scope="module")
def digits():
    return Digits(n=200)


@pytest.fixture(scope="module")
def path(digits):
    return walk(digits, FdeHBO(alpha=100.0, beta=1.0, lam=1.0, eta=0.5, r_v=100.0), 40)


def test_three_labels_in_ten_are_wrong(digits):
    assert digits.wrong.sum() == 60
    assert digits.wrong.equal(digits.given != digits.true)
    assert digits.pixels.shape == digits.trusted[0].shape == (200, 197)
    assert not any((digits.pixels == row).all(1).any() for row in digits.trusted[0])


def test_lower_level_is_strongly_convex(digits):
    draw = torch.Generator().manual_seed(0)
    y, u = torch.randn(2, 1970, generator=draw)
    x = torch.full((200,), -20.0)  # hardly any weight: only the ridge is left
    assert u @ hessian_vector(digits, x, y, u, None) >= 2 * digits.C * (u @ u) * 0.999
    assert torch.allclose(grad_y(digits.lower, x, y, None), 2 * digits.C * y, atol=1e-6)


def test_wrong_labels_lose_weight(digits, path):
    weights = path[-1].x.sigmoid()
    assert weights[digits.wrong].mean() < 0.35
    assert weights[~digits.wrong].mean() > 0.65
    assert not walk(digits, SOLVERS["alternating"](alpha=100.0, beta=1.0), 3)[-1].x.any()
