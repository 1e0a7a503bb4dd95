"""Problems and comparisons that the tests of runs share."""

import pandas as pd
import torch
from torch.utils._pytree import tree_flatten

from bilevel_core.problems import Quadratic

CLOCKS = ["cpu_seconds", "wall_seconds"]
quiet = {"progress": False}


def same_state(one, other):
    """Whether two states are equal, to the bit."""
    (parts, shape), (others, other_shape) = (tree_flatten([*vars(state).values()]) for state in (one, other))
    pairs = zip(parts, others, strict=True)
    equal = (torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs)
    return type(one) is type(other) and shape == other_shape and all(equal)


def same_history(one, other):
    """Whether two histories are equal but for their clocks; an AssertionError says where they are not."""
    pd.testing.assert_frame_equal(one.drop(columns=CLOCKS), other.drop(columns=CLOCKS), check_exact=True)
    return True


def quadratic():
    return Quadratic(noise=0.5)


def interrupt():
    raise KeyboardInterrupt


class Ticking(Quadratic):
    """Does something at its n-th draw after the start."""

    def __init__(self, when=None, what=interrupt):
        super().__init__(noise=0.5)
        self.when, self.what = when, what

    def start(self, generator):
        self.drawn = 0
        return super().start(generator)

    def sample(self, generator):
        self.drawn += 1
        if self.drawn == self.when:
            self.what()
        return super().sample(generator)


class Drifting(Quadratic):
    """A problem that each draw changes, and that can be put back."""

    def start(self, generator):
        self.shift = torch.zeros(1, dtype=torch.float64)
        return super().start(generator)

    def sample(self, generator):
        self.shift += torch.rand(1, generator=generator, dtype=torch.float64)
        return super().sample(generator)

    def upper(self, x, y, batch):
        return super().upper(x, y, batch) + (self.shift * y).sum()

    def state_dict(self):
        return {"shift": self.shift}

    def load_state_dict(self, state):
        self.shift = state["shift"].clone()
