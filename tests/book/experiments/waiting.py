"""A problem that comes to a halt, and goes on once a file is there: a run that is still under way when it is killed."""

import time
from pathlib import Path

from bilevel_core.problems import Quadratic


class Waiting(Quadratic):
    def __init__(self, gate: str, after: int, noise: float = 0.5, seed: int = 0):
        super().__init__(noise=noise, seed=seed)
        self.gate, self.after, self._drawn = Path(gate), after, 0

    def sample(self, generator):
        self._drawn += 1
        while self._drawn > self.after and not self.gate.exists():
            time.sleep(0.01)
        return super().sample(generator)
