"""What slopes say about a rate, on curves whose slope is known."""

import numpy as np
import pandas as pd
import pytest

from bilevel_book.rates import SEEDS, horizons
from bilevel_book.verdicts.cells import Outcome, cell, verdict_on_rate
from bilevel_book.verdicts.deciding import Verdict

CLAIMED = -2 / 3


def curves(before, late, spread=0.01, seed=0):
    """Eight curves with one slope up to T = 10^4 and another from there on, each seed a little off."""
    T = np.array(horizons(10, 1e5), float)
    off = np.random.default_rng(seed).normal(0, spread, SEEDS)
    off -= off.mean()
    power = [(T / 1e4) ** (np.where(T < 1e4, before, late) + o) for o in off]
    return pd.DataFrame(np.transpose(power), index=T.astype(int), columns=[str(s) for s in range(SEEDS)])


@pytest.mark.parametrize(
    ("runs", "control", "outcome"),
    [
        (curves(-0.67, -0.67), curves(-0.3, -0.3), Outcome.SUPPORTS),
        (curves(-0.67, -0.67), curves(-0.67, -0.67), Outcome.NOTHING),
        (curves(-0.5, -0.49), curves(-0.3, -0.3), Outcome.AGAINST),
        (curves(-0.3, -0.5), curves(-0.3, -0.3), Outcome.SILENT),  # it still bends down
        (curves(-0.62, -0.62, 0.1), curves(-0.3, -0.3), Outcome.SILENT),  # the interval reaches over the line
        (curves(-0.67, -0.67), curves(-0.62, -0.62, 0.1), Outcome.SUPPORTS),  # the control is not below for certain
    ],
)
def test_a_cell_follows_from_its_two_slopes(runs, control, outcome):
    found = cell(runs, control, CLAIMED)
    assert found.outcome == outcome
    assert found.low < found.slope < found.high


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ([Outcome.SUPPORTS] * 3, Verdict.HOLDS),
        ([Outcome.SUPPORTS] * 2, Verdict.UNDECIDED),
        ([Outcome.SUPPORTS] * 9 + [Outcome.AGAINST], Verdict.UNDECIDED),
        ([Outcome.AGAINST] * 3 + [Outcome.SILENT], Verdict.FAILS),
    ],
)
def test_the_verdict_on_a_rate_follows_from_its_cells(outcomes, verdict):
    assert verdict_on_rate(outcomes) == verdict
