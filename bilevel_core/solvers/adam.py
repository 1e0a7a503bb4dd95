"""Adam as a pure function, for the released variant of PZOBO-S.

Kingma, Ba (2015), "Adam: a method for stochastic optimization", Algorithm 1, with its default constants.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Adam(NamedTuple):
    t: int
    m: Tensor
    s: Tensor

    @classmethod
    def zeros(cls, like: Tensor) -> "Adam":
        return cls(0, torch.zeros_like(like), torch.zeros_like(like))

    def update(self, gradient: Tensor) -> tuple[Tensor, "Adam"]:
        """The direction to step along, to be multiplied by the learning rate, and the moments after it."""
        t = self.t + 1
        m = 0.9 * self.m + 0.1 * gradient
        s = 0.999 * self.s + 0.001 * gradient**2
        direction = (m / (1 - 0.9**t)) / ((s / (1 - 0.999**t)).sqrt() + 1e-8)
        return direction, Adam(t, m, s)
