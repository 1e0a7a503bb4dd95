"""How well colours can be told from their ground, as WCAG has it; colours have entries in [0, 1] on the last axis."""

import numpy as np


def luminance(colours):
    parts = np.asarray(colours)
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def contrast(one, other):
    """From 1, the same, to 21, black on white: 4.5 for words, 3 for lines."""
    low, high = np.sort([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)
