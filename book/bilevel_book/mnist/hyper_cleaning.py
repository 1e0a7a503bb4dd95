"""Data hyper-cleaning on MNIST: the upper level weighs the training samples, some of which are mislabelled.

    f(x, y) = mean over the clean upper set of  CE(y . image, label)
    g(x, y) = mean over the noisy lower set of  sigmoid(x_i) CE(y . image_i, label_i)  +  C ||y||^2

Lower set: training images 0..19999, of which exactly noise * 20000 carry a wrong label, drawn once.
Upper set: training images 40000..44999 with their true labels. Test set: MNIST's test file. Settings are selected on
training images 45000..49999, which no run sees and no figure shows.
y is a linear classifier on 784 normalised pixels and a constant, 10 x 785, flat; f does not depend on x. The paper
writes lambda and w. Its text swaps the names of the two sets; its formula, followed here, weighs the noisy one.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from bilevel_book.mnist.data import load_images, pixel_moments
from bilevel_core.checks import COUNT, POSITIVE, UNIT
from bilevel_core.problem import BilevelProblem, Samples, seeded

LOWER, UPPER, SELECTION = slice(0, 20_000), slice(40_000, 45_000), slice(45_000, 50_000)
REJECTED = -100.0  # an x_i whose sigmoid is nothing beside 1/2


class Images(NamedTuple):
    pixels: Tensor  # (n, 785), the last column is 1
    labels: Tensor


class HyperCleaning(BilevelProblem):
    __doc__ = __doc__

    def __init__(
        self,
        noise: float = 0.1,
        seed: int = 0,
        batch_size: int = 100,
        C: float = 0.001,
        zero_start: bool = False,
        oracle: bool = False,
        dtype: torch.dtype = torch.float32,
        data: str = "MNIST",  # or another name that `load_images` takes
    ):
        COUNT.check(batch_size=batch_size)
        UNIT.check(noise=noise)
        POSITIVE.check(C=C)  # or the lower level is not strongly convex
        self.batch_size, self.C, self.zero_start, self.oracle = batch_size, C, zero_start, oracle
        images = load_images(data)
        moments = pixel_moments(images.train_images)
        self.lower_set, self.upper_set, self.selection_set = (
            prepared(images.train_images[part], images.train_labels[part], moments, dtype)
            for part in (LOWER, UPPER, SELECTION)
        )
        self.test_set = prepared(images.test_images, images.test_labels, moments, dtype)
        self.noisy_labels = mislabel(self.lower_set.labels, noise, seeded(seed))
        self.is_noisy = self.noisy_labels != self.lower_set.labels

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """x = 0 (all weights 1/2); y normal with variance 2/10 (Kaiming, fan-out), as in the code of the peers.

        With `zero_start` y is 0. With `oracle` the mislabelled images weigh nothing from the start.
        """
        pixels = self.lower_set.pixels
        y = torch.randn(10 * pixels.shape[1], generator=generator, dtype=pixels.dtype) * (2 / 10) ** 0.5
        x = torch.zeros(len(pixels), dtype=pixels.dtype)
        if self.oracle:
            x[self.is_noisy] = REJECTED
        return x, torch.zeros_like(y) if self.zero_start else y

    def sample(self, generator: torch.Generator) -> Samples:
        sets, size = (self.upper_set, self.lower_set), (self.batch_size,)
        return Samples(*(torch.randint(len(images.labels), size, generator=generator) for images in sets))

    def full(self) -> Samples:
        return Samples(slice(0, len(self.upper_set.labels)), slice(0, len(self.lower_set.labels)))

    def size(self, batch: Tensor | slice) -> int:
        return batch.stop if isinstance(batch, slice) else len(batch)

    def upper_at(self, x: Tensor, batch: Tensor | slice) -> Callable[[Tensor], Tensor]:
        pixels, labels = rows(self.upper_set.pixels, batch), rows(self.upper_set.labels, batch)
        return lambda y: log_likelihoods(y, pixels, labels).mean().neg()

    def lower_at(self, x: Tensor, batch: Tensor | slice) -> Callable[[Tensor], Tensor]:
        pixels, labels = rows(self.lower_set.pixels, batch), rows(self.noisy_labels, batch)
        weights = torch.sigmoid(rows(x, batch))
        return lambda y: self.C * (y @ y) - (weights * log_likelihoods(y, pixels, labels)).mean()

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """Losses and accuracy of y on true labels; mean weights of noisy and clean; how low weights find the noisy:
        AUC, and F1 if as many are called noisy as there are."""
        own = {"train": self.lower_set, "upper": self.upper_set}
        sets = own | {"test": self.test_set, "selection": self.selection_set}
        logits = {name: class_scores(y, images.pixels).T for name, images in sets.items()}
        losses = {f"{name}_loss": cross_entropy(logits[name], images.labels) for name, images in sets.items()}
        weights = torch.sigmoid(x)
        numbers = losses | {
            "test_accuracy": (logits["test"].argmax(1) == self.test_set.labels).double().mean(),
            "sigma_noisy": weights[self.is_noisy].mean(),
            "sigma_clean": weights[~self.is_noisy].mean(),
            "auc": area_under_curve(-x[self.is_noisy], -x[~self.is_noisy]),
            "f1": self.is_noisy[x.argsort(stable=True)[: int(self.is_noisy.sum())]].double().mean(),
        }
        return {name: number.item() for name, number in numbers.items()}


def mislabel(labels: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """A copy in which exactly round(noise * n) labels are wrong: each shifted by 1..9 modulo 10, at random."""
    wrong = torch.randperm(len(labels), generator=generator)[: round(noise * len(labels))]
    shift = torch.randint(1, 10, wrong.shape, generator=generator)
    return labels.index_put((wrong,), (labels[wrong] + shift) % 10)


def area_under_curve(positive: Tensor, negative: Tensor) -> Tensor:
    """P(score of a positive > score of a negative) + P(equal) / 2: 1/2 is chance, 1 perfect; nan if one is empty."""
    ordered = negative.sort().values
    below = torch.searchsorted(ordered, positive, right=False)
    not_above = torch.searchsorted(ordered, positive, right=True)
    return (below + not_above).double().mean() / (2 * len(negative))


def class_scores(y: Tensor, pixels: Tensor) -> Tensor:
    """One row a class: Y pixels', which is twice as fast as its transpose for a Y of few rows."""
    return y.view(10, -1) @ pixels.T


def log_likelihoods(y: Tensor, pixels: Tensor, labels: Tensor) -> Tensor:
    """The logarithm of the probability of each label, minus its cross-entropy; cheap to differentiate twice."""
    return class_scores(y, pixels).log_softmax(0).gather(0, labels[None]).squeeze(0)


def rows(table: Tensor, batch: Tensor | slice) -> Tensor:
    """The rows of a batch; `index_select` gathers twice as fast as an index in brackets."""
    return table[batch] if isinstance(batch, slice) else table.index_select(0, batch)


def prepared(images: Tensor, labels: Tensor, moments: tuple[float, float], dtype: torch.dtype) -> Images:
    mean, std = moments
    pixels = (images.flatten(1).to(dtype) / 255 - mean) / std
    return Images(torch.cat((pixels, torch.ones_like(pixels[:, :1])), 1), labels)
