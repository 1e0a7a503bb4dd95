"""What may be given: numbers of every kind, and what only looks like one."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from bilevel_book.methods import SOLVERS
from bilevel_core.checks import COUNT, POSITIVE, RADIUS, SEED, SHARE, SWITCH, UNIT
from bilevel_core.problems import Quadratic

NOT_NUMBERS = [True, None, "1", [1], 1j, math.nan, torch.tensor(1.0)]
ALLOWED = {
    POSITIVE: ([1, 1e-300, np.int8(3)], [0, -1, math.inf]),
    UNIT: ([0, Fraction(1, 3), np.float32(0.5), 1], [-1e-9, 1.0001]),
    SHARE: ([0, 0.999], [1, -0.1]),
    RADIUS: ([1e-9, math.inf], [0, -1]),
    COUNT: ([1, 10**30, np.int64(2)], [0, -1, 1.0, 2.5, np.float64(2)]),
    SEED: ([0, 2**64 - 1, np.uint8(7)], [-1, 2**64, 1.0]),
}


@pytest.mark.parametrize("allowed", ALLOWED, ids=lambda allowed: allowed.words)
def test_a_condition_tells_numbers_from_what_looks_like_one(allowed):
    good, bad = ALLOWED[allowed]
    allowed.check(**{f"value_{i}": value for i, value in enumerate(good)})
    for value in [*bad, *NOT_NUMBERS]:
        with pytest.raises(ValueError, match="size must be ") as caught:
            allowed.check(fine=good[0], size=value)
        assert str(caught.value) == f"size must be {allowed.words}, got {value!r}"


def test_a_value_that_need_not_be_given_may_be_none_and_nothing_else():
    COUNT.or_none().check(first=None, second=2)
    with pytest.raises(ValueError, match="third must be a whole number of at least 1, got 0"):
        COUNT.or_none().check(first=None, third=0)
    assert [SWITCH.test(value) for value in (True, False, 1, None)] == [True, True, False, False]


def test_a_count_of_numpy_is_a_count_in_every_method():
    problem = Quadratic(noise=0.1)
    ours, numpys = (SOLVERS["BSA"](inner=kind(2), K=kind(3)) for kind in (int, np.int64))
    assert torch.equal(*(solver.step(problem, solver.init(problem)).x for solver in (ours, numpys)))
