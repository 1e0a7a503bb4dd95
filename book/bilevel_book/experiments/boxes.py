"""Boxes: ranges { low, high } of options, in which every trial has a point."""

from collections.abc import Callable
from typing import Any

import torch

from bilevel_book.experiments.checking import typed

Options = dict[str, Any]


def at_trial(options: Options, trial: int) -> Options:
    """Options with every box { low, high } in them replaced by a number: together a point of a Sobol sequence.

    Equal numbers of boxes have the same points. A box is logarithmic, low^(1 - u) high^u to three digits, and gives
    whole numbers if its ends are such.
    """
    if trial < 0:
        raise ValueError(f"trial must be a whole number from 0 on, got {trial}")
    engine = torch.quasirandom.SobolEngine(max(1, len(boxes_in(options))), scramble=True, seed=0)
    u = iter(engine.draw(trial + 1, dtype=torch.float64)[trial].tolist())
    return _filled(options, lambda box: _between(**box, u=next(u)))


def boxes_in(options: Options) -> list[Options]:
    """The boxes in options, and in the schedules among them."""
    found: list[Options] = []
    _filled(options, found.append)
    return found


def _filled(value: Any, fill: Callable[[Options], Any]) -> Any:
    if not isinstance(value, dict):
        return value
    return fill(value) if value.keys() == {"low", "high"} else {key: _filled(part, fill) for key, part in value.items()}


def _between(low: Any, high: Any, u: float) -> float:
    if not 0 < typed("low", low, float) < typed("high", high, float):
        raise ValueError(f"a box needs 0 < low < high, got low = {low}, high = {high}")
    value = low ** (1 - u) * high**u
    return round(value) if isinstance(low, int) and isinstance(high, int) else float(f"{value:.3g}")
