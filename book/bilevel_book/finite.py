"""The quadratic problem on a data set: its noise comes from a few stored draws, so that one can look at all of them.

A sample is one of `n` draws of `Quadratic(noise)`, shifted together so that their mean is no noise: the mean loss
over the data is the loss without noise, and y*, v*, the hypergradient and the minimiser are those of `Quadratic`.
`looks` counts the times that somebody asked for all the data, which costs n times as much as a sample.
"""

import torch

from bilevel_core.checks import COUNT
from bilevel_core.problem import Samples, seeded
from bilevel_core.problems import LowerNoise, Quadratic, UpperNoise


class FiniteQuadratic(Quadratic):
    def __init__(self, n: int = 20, noise: float = 0.5, seed: int = 0):
        COUNT.check(n=n)
        super().__init__(noise=noise, seed=seed)
        generator = seeded(seed)
        drawn = [super(FiniteQuadratic, self).sample(generator) for _ in range(n)]
        rows = [(*draw.upper, *draw.lower) for draw in drawn]
        centred = [torch.stack(part) - torch.stack(part).mean(0) for part in zip(*rows, strict=True)]
        self.draws = [
            Samples(UpperNoise(f_x, f_y), LowerNoise(1 + z, g_y)) for f_x, f_y, z, g_y in zip(*centred, strict=True)
        ]
        self.looks = 0

    def sample(self, generator: torch.Generator) -> Samples:
        return self.draws[int(torch.randint(len(self.draws), (), generator=generator))]

    def full(self) -> Samples:
        self.looks += 1
        return super().full()
