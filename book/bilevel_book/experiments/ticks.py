"""Steps and seconds of the clock: costs are [step, median, quartiles] at points of a run, see clock.py."""

from typing import Any

import numpy as np

Costs = list[list[float]]


def seconds_at(costs: Costs, steps: Any) -> np.ndarray:
    """What the clock says after so many steps."""
    return np.interp(steps, *_knots(costs))


def steps_within(costs: Costs, seconds: float) -> int:
    """How many steps are taken until the clock says so many seconds."""
    steps, clock = _knots(costs)
    return max(1, int(np.ceil(np.interp(seconds, clock, steps) - 1e-9)))


def _knots(costs: Costs) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and the seconds there, between which the clock runs evenly."""
    steps = np.array([0.0, *(at for at, *_ in costs[1:]), 1e12])
    clock = np.concatenate([[0.0], np.cumsum(np.diff(steps) * [cost for _, cost, *_ in costs])])
    return steps, clock
