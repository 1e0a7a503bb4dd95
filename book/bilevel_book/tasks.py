"""Three small problems on which methods are compared in Chapter 16, under one roof: `Task("penalties", seed=0)`.

    quadratic   `FiniteQuadratic`: closed form, 20 stored draws, batches of one. A seed is another problem
    penalties   a weight exp(x_i) on y_i^2 for each of 30 features, in a logistic regression of 569 breast tumours,
                malignant or benign (Wolberg, Street, Mangasarian, 1993, "Breast cancer Wisconsin (diagnostic)", UCI,
                CC BY 4.0, as scikit-learn 1.9.1 ships it); a seed is another split
    cleaning    `HyperCleaning` on 300 images of MNIST, 30 % of them with a wrong label, and 200 clean ones

Every task tells two numbers: `score`, by which methods are compared (the slope of Phi, or the loss on a test set), and
`selection_loss`, by which settings are chosen and which no figure shows (the gap of Phi, or the loss on a third set).
All the data at once cost as much as the batches that they make: a method that looks at them pays for that.
"""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from bilevel_book.finite import FiniteQuadratic
from bilevel_book.mnist.hyper_cleaning import HyperCleaning, Images, mislabel, rows
from bilevel_core.counting import count
from bilevel_core.problem import BilevelProblem, Samples, seeded

TUMOURS = Path(__file__).with_name("breast_cancer.csv.gz")


class SmallQuadratic(FiniteQuadratic):
    batches = 20  # that make up the data

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        gap = self.objective(x) - self.objective(self.minimiser)
        return {"score": self.hypergradient(x).norm().item(), "selection_loss": gap.item()}


class Penalties(BilevelProblem):
    batch_size, batches = 20, 10

    def __init__(self, seed: int = 0):
        with gzip.open(TUMOURS, "rt", encoding="utf-8") as file:
            table = torch.as_tensor(np.loadtxt(file, delimiter=",", skiprows=1))
        table = table[torch.randperm(len(table), generator=seeded(seed))]
        features, labels = table[:, :-1], table[:, -1]
        mean, spread = features[:200].mean(0), features[:200].std(0)
        features = torch.cat(((features - mean) / spread, torch.ones(len(table), 1)), 1)
        self.signed = features * (2 * labels - 1)[:, None]  # a margin is one inner product
        self.lower_set, self.upper_set, self.selection_set, self.test_set = self.signed.split([200, 150, 100, 119])

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Every penalty exp(-4), y = 0."""
        return torch.full((30,), -4.0, dtype=torch.float64), torch.zeros(31, dtype=torch.float64)

    def sample(self, generator: torch.Generator) -> Samples:
        sets, size = (self.upper_set, self.lower_set), (self.batch_size,)
        return Samples(*(torch.randint(len(points), size, generator=generator) for points in sets))

    def full(self) -> Samples:
        return Samples(slice(0, len(self.upper_set)), slice(0, len(self.lower_set)))

    def upper(self, x: Tensor, y: Tensor, batch: Tensor | slice) -> Tensor:
        return logistic(y, rows(self.upper_set, batch))

    def lower(self, x: Tensor, y: Tensor, batch: Tensor | slice) -> Tensor:
        """The constant has a penalty too, a small one, so that g is strongly convex."""
        return logistic(y, rows(self.lower_set, batch)) + (x.exp() @ y[:-1] ** 2 + 0.01 * y[-1] ** 2) / 2

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        sets = {"score": self.test_set, "selection_loss": self.selection_set}
        return {name: logistic(y, points).item() for name, points in sets.items()}


def logistic(y: Tensor, signed: Tensor) -> Tensor:
    return softplus(-(signed @ y)).mean()


class SmallCleaning(HyperCleaning):
    batches = 6

    def __init__(self, seed: int = 0):
        super().__init__(seed=seed, batch_size=50, C=0.01, zero_start=True)
        for name, size in {"lower_set": 300, "upper_set": 200, "selection_set": 500, "test_set": 1000}.items():
            setattr(self, name, Images(*(part[:size].clone() for part in getattr(self, name))))
        self.noisy_labels = mislabel(self.lower_set.labels, 0.3, seeded(seed))
        self.is_noisy = self.noisy_labels != self.lower_set.labels

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        told = super().evaluate(x, y)
        return {"score": told["test_loss"], "selection_loss": told["selection_loss"], "auc": told["auc"]}


TASKS: dict[str, Callable[..., Any]] = {
    "quadratic": lambda seed: SmallQuadratic(n=20, noise=0.5, seed=seed), "penalties": Penalties,
    "cleaning": SmallCleaning,
}  # fmt: skip


class Task(BilevelProblem):
    __doc__ = __doc__

    def __init__(self, task: str = "quadratic", seed: int = 0):
        if task not in TASKS:
            raise ValueError(f"task must be one of {', '.join(TASKS)}, got {task!r}")
        self.own = TASKS[task](seed=seed)

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return self.own.start(generator)

    def sample(self, generator: torch.Generator) -> Samples:
        return self.own.sample(generator)

    def full(self) -> Samples:
        """All the data, at the price of a step on so many batches: 3 gradients, H v and J v on each but one."""
        more = self.own.batches - 1
        count(gradients=3 * more, Hv=more, Jv=more)
        return self.own.full()

    def upper_at(self, x: Tensor, batch: Any) -> Callable[[Tensor], Tensor]:
        return self.own.upper_at(x, batch)

    def lower_at(self, x: Tensor, batch: Any) -> Callable[[Tensor], Tensor]:
        return self.own.lower_at(x, batch)

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        return self.own.evaluate(x, y)
