"""The check of a fill-in task: it says what is off, and by how much.

def slope(x):
    return ...  # your line

check(slope(x), valley.hypergradient(x))
"""

from typing import Any

import torch


def check(yours: Any, expected: Any, tolerance: float = 1e-6) -> None:
    """Print whether a number or tensor is the expected one; if not, the likeliest slip and the largest difference."""
    print(verdict(yours, expected, tolerance))


def verdict(yours: Any, expected: Any, tolerance: float) -> str:
    if yours is ... or yours is None:
        return "To do: replace the dots above and run this cell again."
    try:
        got, right = (torch.as_tensor(value).detach().double() for value in (yours, expected))
    except (TypeError, ValueError):
        return f"Not yet: expected a number or a tensor, got {yours!r}."
    if got.shape != right.shape and got.numel() == right.numel() == 1:
        got = got.reshape(right.shape)  # a number and a tensor with one entry
    if got.shape != right.shape:
        return f"Not yet: expected the shape {tuple(right.shape)}, got {tuple(got.shape)}."
    off, scale = (got - right).abs(), right.abs().max()
    if off.max() <= tolerance * scale.clamp(min=1e-3):
        return "Right."
    if (got + right).abs().max() <= tolerance * scale:
        return "Not yet: the size is right, the sign is wrong."
    share = (got.flatten() @ right.flatten() / right.square().sum()).item()
    if right.numel() > 1 and share and (got - share * right).abs().max() <= tolerance * scale:
        return f"Not yet: yours is {share:.5g} times what it should be."
    k = int(off.argmax())
    where = f" at entry {k}" if right.numel() > 1 else ""
    return f"Not yet: off by {off.max():.3g}{where}, got {got.flatten()[k]:.5g} instead of {right.flatten()[k]:.5g}."
