"""What the check of a problem allows, and what it leaves alone. What it refuses is in inputs/library.toml."""

import numpy as np
import pytest
import torch

from bilevel_book.methods import SOLVERS
from bilevel_book.mnist import HyperCleaning
from bilevel_core import Samples, hypergradient, run
from bilevel_core.problem import check_problem, seeded
from bilevel_core.problems import Quadratic, Valley
from core.families import LogCosh


class Separate(Quadratic):
    """g does not know x, so the problem has one level: grad Phi(x) = grad_x f = rho x."""

    def lower(self, x, y, batch):
        return super().lower(torch.zeros_like(x), y, batch)


class Constant(Quadratic):
    """No batches at all."""

    def sample(self, generator):
        return Samples(None, None)

    def upper(self, x, y, batch):
        return super().upper(x, y, self.full().upper)

    def lower(self, x, y, batch):
        return super().lower(x, y, self.full().lower)


@pytest.mark.parametrize("problem", [Separate(), Constant(), Valley(c=0.0), LogCosh(noise=1.0), HyperCleaning()])
def test_what_is_right_passes(problem):
    check_problem(problem, 0)


def test_a_lower_level_without_x_has_the_hypergradient_of_f_alone():
    problem = Separate()
    torch.testing.assert_close(hypergradient(problem, problem.x0).gradient, problem.rho * problem.x0)


@pytest.mark.parametrize("seed", [0, 7, 2**64 - 1])
def test_a_seed_of_numpy_is_the_same_seed(seed):
    kind = np.uint64 if seed > 2**63 else np.int64
    one, two = (run(Quadratic(noise=0.5), "FMBO", s, steps=5, progress=False).state.x for s in (seed, kind(seed)))
    assert torch.equal(one, two)
    assert torch.equal(seeded(seed).get_state(), torch.Generator().manual_seed(seed).get_state())


def test_the_check_takes_nothing_from_the_randomness_of_the_run():
    problem, generator = LogCosh(noise=1.0), torch.Generator().manual_seed(5)
    everywhere = torch.get_rng_state()
    state = SOLVERS["FMBO"]().init(problem, 5)
    problem.start(generator)
    assert torch.equal(state.rng, generator.get_state())
    assert torch.equal(torch.get_rng_state(), everywhere)


class Growing(Quadratic):
    """A lower loss that grows a little whenever it is asked."""

    def __init__(self, by):
        super().__init__()
        self.factor, self.by = 1.0, by

    def lower(self, x, y, batch):
        self.factor += self.by
        return super().lower(x, y, batch) * self.factor


def test_a_small_error_of_rounding_is_not_randomness():
    check_problem(Growing(1e-12), 0)
    with pytest.raises(ValueError, match="lower returned a different value on a second call"):
        check_problem(Growing(1e-6), 0)


def test_a_problem_that_can_be_put_back_may_change():
    class Restored(Growing):
        def state_dict(self):
            return {"factor": self.factor}

    check_problem(Restored(1.0), 0)


def test_randomness_shows_in_a_gradient_where_the_loss_is_blind():
    """At y = 0 a linear layer on top of dropout has the same loss whatever is dropped."""

    class Dropping(Quadratic):
        def lower(self, x, y, batch):
            return super().lower(x, y, batch) + torch.dropout(torch.ones_like(y), 0.5, True) @ y

    with pytest.raises(ValueError, match="as dropout does"):
        check_problem(Dropping(), 0)
