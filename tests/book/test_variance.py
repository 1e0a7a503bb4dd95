"""The variance of the direction of x over fresh draws, on a problem where it is known."""

import pytest
import torch

from bilevel_book.experiments.variance import variances
from bilevel_core import FMBO, BilevelProblem, Samples

SIZE, DEVIATION, ETA = 3, 0.5, 0.6


class Noisy(BilevelProblem):
    """f = ||x - n||^2 / 2 with normal n, so that d_x = x - n has the variance SIZE DEVIATION^2; g = ||y||^2 / 2."""

    def start(self, generator):
        return torch.ones(SIZE, dtype=torch.float64), torch.zeros(SIZE, dtype=torch.float64)

    def sample(self, generator):
        return Samples(*(DEVIATION * torch.randn(2, SIZE, generator=generator, dtype=torch.float64)))

    def upper(self, x, y, batch):
        return (x - batch).square().sum() / 2 + 0 * y.sum()

    def lower(self, x, y, batch):
        return y.square().sum() / 2 + 0 * x.sum()


def found(eta, draws=2000):
    solver = FMBO(alpha=0.1, beta=0.1, lam=0.1, eta=eta)
    state = solver.step(Noisy(), solver.init(Noisy(), seed=1))
    return state, variances(Noisy(), solver, state, draws)


def test_momentum_keeps_the_share_eta_squared_and_inherits_the_last_error():
    state, numbers = found(ETA)
    assert numbers["plain"] == pytest.approx(SIZE * DEVIATION**2, rel=0.1)
    assert numbers["momentum"] == pytest.approx(ETA**2 * numbers["plain"], rel=1e-9)
    error = state.h.x - state.before.x  # E d_x = x
    assert numbers["inherited"] == pytest.approx((1 - ETA) ** 2 * error.square().sum().item(), abs=0.02)


def test_without_momentum_the_estimate_is_the_plain_direction():
    _, numbers = found(1.0, draws=50)
    assert numbers["momentum"] == numbers["plain"] > 0
    assert numbers["inherited"] == 0
