"""Data hyper-cleaning that a reader can watch: few digits, many of them mislabelled, cleaned in a second.

    f(x, y) = mean over the trusted digits of  CE(pixels y, label)
    g(x, y) = mean over the other digits of    sigmoid(x_i) CE(pixels_i y, given label_i)  +  C ||y||^2

y is a linear classifier, 10 numbers for each of 14 x 14 pixels and a constant. Both means are over all digits, so there
is no noise but that of the labels. The paper's experiment, with 20000 digits, is `bilevel_book.mnist.HyperCleaning`.
"""

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, cross_entropy, pad

from bilevel_book.mnist.data import load_mnist
from bilevel_book.mnist.hyper_cleaning import mislabel
from bilevel_core.problem import BilevelProblem, Samples, seeded


class Digits(BilevelProblem):
    __doc__ = __doc__

    def __init__(self, n: int = 600, noise: float = 0.3, seed: int = 0, C: float = 0.002):
        mnist = load_mnist()
        self.images, self.true = mnist.train_images[:n], mnist.train_labels[:n]
        self.given = mislabel(self.true, noise, seeded(seed))
        self.wrong = self.given != self.true
        self.trusted = features(mnist.train_images[-n:]), mnist.train_labels[-n:]
        self.test = features(mnist.test_images), mnist.test_labels
        self.pixels, self.C = features(self.images), C

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Every digit weighs 1/2, and the classifier knows nothing."""
        return torch.zeros(len(self.images)), torch.zeros(self.pixels.shape[1] * 10)

    def sample(self, generator: torch.Generator) -> Samples:
        return Samples(upper=None, lower=None)

    def upper(self, x: Tensor, y: Tensor, batch: None) -> Tensor:
        pixels, labels = self.trusted
        return cross_entropy(pixels @ y.view(-1, 10), labels)

    def lower(self, x: Tensor, y: Tensor, batch: None) -> Tensor:
        losses = cross_entropy(self.pixels @ y.view(-1, 10), self.given, reduction="none")
        return (torch.sigmoid(x) * losses).mean() + self.C * (y @ y)

    def accuracy(self, y: Tensor) -> float:
        """The share of MNIST's 10000 test digits that the classifier reads correctly."""
        pixels, labels = self.test
        return ((pixels @ y.view(-1, 10)).argmax(1) == labels).double().mean().item()


def features(images: Tensor) -> Tensor:
    """Half the resolution, from 0 to 1, and a constant: (n, 28, 28) becomes (n, 197)."""
    return pad(avg_pool2d(images[:, None] / 255, 2).flatten(1), (0, 1), value=1.0)
