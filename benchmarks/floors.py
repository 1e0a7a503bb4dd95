"""What a step of each method cannot do without, written as data, and run with bare torch.

On LeNet a floor is a number of passes over a batch, when the features are computed once for each (x, batch) and
whatever can share a pass does:

    features     a forward pass of the features, of which nothing is kept: enough for derivatives in y
    through      a forward and a backward pass of the features: a derivative in x, of any combination of losses in f or
                 in g, which meet before the features
    gradients    of the last layer at given features, forward and backward; several y are one pass
    products     of the last layer at given features: grad_y g, H v, and J v as far as the features

On hyper-cleaning a floor is gathers of pixels, once for each batch, and products of them with a 10 x 785 matrix:
forwards (scores, or what they change by along v) and backwards (a gradient or H v). f does not depend on x there, so
grad_x f costs nothing, and J v has no backward product: it ends at the weights of the samples.

s are the options of a solver. k is how many H v a step takes where that is random: the mean of the steps measured.
"""

import copy
import itertools
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bilevel_book.mnist import HyperCleaning, HyperRepresentation
from bilevel_core.networks import Labelled
from bilevel_core.problem import Samples
from bilevel_core.solvers import Solver

Floors = dict[str, Callable[[Solver, float], np.ndarray]]


# LeNet


def passes(features: float = 0, through: float = 0, gradients: float = 0, products: float = 0) -> np.ndarray:
    return np.array([features, through, gradients, products])


def estimate(q: float) -> np.ndarray:
    """G = grad_x f - J v and grad_y g at one point, v from q factors I - eta H_j, each on a batch of its own."""
    return passes(features=q, through=2, gradients=1, products=q + 1)


def double_loop(inner: int, q: float) -> np.ndarray:
    """`inner` steps of y and q products H v, each on a batch of its own; then grad f, and J v."""
    return passes(features=inner + q, through=2, gradients=inner + 1, products=q + 1)


LENET: Floors = {
    # Two points, f and g at each. g at y, y + delta v and y - delta v is one pass.
    "FdeHBO": lambda s, k: passes(through=4, gradients=4),
    # Two points, f and g at each; g_y, H v and J v are one double backward.
    "FMBO": lambda s, k: passes(through=4, gradients=2, products=2),
    "SOBA": lambda s, k: passes(through=2, gradients=1, products=1),
    # At x_t the features of one draw serve grad_y g(y_t), H v_t and grad f at y_{t+1}, and J v_{t+1}; D' at x_{t-1}.
    "FSLA": lambda s, k: passes(through=4, gradients=3, products=3),
    "AID-FP": lambda s, k: double_loop(s.inner, s.K - 1),
    # All products are on one batch at one y, whose graph is kept: each after the first is half of one.
    "AID-CG": lambda s, k: passes(features=s.inner, through=2, gradients=s.inner + 1, products=1 + k / 2),
    # The features of each batch are kept from the forward loop for the backward one; H a and J a are one product.
    "reverse": lambda s, k: passes(features=s.inner - s.K, through=s.K + 1, gradients=s.inner + 1, products=s.K),
    "stocBiO": lambda s, k: double_loop(s.inner, s.Q),
    "BSA": lambda s, k: double_loop(s.inner, k),
    "AmIGO": lambda s, k: double_loop(s.inner, s.Q),
    "MRBO": lambda s, k: 2 * estimate(s.Q),
    # The first difference is between two x; those of the inner loop share x, thus the features and the way back
    # through them. `large` estimates once a period.
    "VRBO": lambda s, k: (
        2 * estimate(s.Q)
        + s.inner * (estimate(s.Q) + passes(gradients=1, products=s.Q + 1))
        + s.large / s.period * estimate(s.Q)
    ),
    "SUSTAIN": lambda s, k: 2 * estimate(k / 2),
    "PZOBO-S": lambda s, k: passes(features=(1 + s.Q) * s.inner, through=1, gradients=(1 + s.Q) * s.inner + 1),
    # Every gradient is on a draw of its own.
    "F2SA": lambda s, k: passes(features=3 * s.inner, through=3, gradients=3 * s.inner + 3),
    # In y, f and g at two x; in x, f and g(y) - g(z) at two x.
    "F3SA": lambda s, k: passes(features=4, through=4, gradients=8),
    "alternating": lambda s, k: passes(features=1, through=1, gradients=2),
}


class LeNetFloor:
    """The passes, with the layers of the problem itself as plain modules that hold x and y."""

    def __init__(self, problem: HyperRepresentation, x: Tensor, y: Tensor, v: Tensor):
        self.features_of, self.head = (copy.deepcopy(part.module) for part in (problem.outer, problem.inner))
        nn.utils.vector_to_parameters(x, self.features_of.parameters())
        nn.utils.vector_to_parameters(y, self.head.parameters())
        self.weights, self.last = list(self.features_of.parameters()), list(self.head.parameters())
        self.v = [part.view_as(weight) for part, weight in zip(split(v, self.last), self.last, strict=True)]
        self.data, self.mean, self.std = problem.lower_data, problem.mean, problem.std
        generator = torch.Generator().manual_seed(0)
        self.batches = itertools.cycle([problem.sample(generator).lower for _ in range(20)])
        batch = next(self.batches)
        with torch.no_grad():
            self.kept, self.targets = self.features(self.data, batch), self.data.targets[batch]

    def features(self, data: Labelled, batch: Tensor) -> Tensor:
        return self.features_of((data.inputs.index_select(0, batch) / 255 - self.mean) / self.std)

    def through(self, features: Tensor, cotangent: Tensor) -> tuple[Tensor, ...]:
        """The backward pass: from a derivative in the features to one in x."""
        return torch.autograd.grad(features, self.weights, cotangent)

    def gradient(self, features: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        """Of the loss, in y; also in the features, where there is a way back through them."""
        inputs = [*self.last, features] if features.requires_grad else self.last
        return torch.autograd.grad(cross_entropy(self.head(features), targets), inputs)

    def product(self, features: Tensor, targets: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The gradient in y; then H v, and the derivative of <grad_y, v> in the features, as above."""
        inputs = [*self.last, features] if features.requires_grad else self.last
        g_y = torch.autograd.grad(cross_entropy(self.head(features), targets), self.last, create_graph=True)
        along = sum((a * b).sum() for a, b in zip(g_y, self.v, strict=True))
        return g_y, torch.autograd.grad(along, inputs, retain_graph=True)

    @torch.no_grad()
    def forward(self) -> None:
        self.features(self.data, next(self.batches))

    def passes(self) -> dict[str, Callable[[], object]]:
        return {
            "features": self.forward,
            "through": lambda: self.through(self.features(self.data, next(self.batches)), self.kept),
            "head gradients": lambda: self.gradient(self.kept, self.targets),
            "head products": lambda: self.product(self.kept, self.targets),
        }

    def named(self, counts: np.ndarray) -> dict[str, float]:
        return dict(zip(self.passes(), counts, strict=True))

    def run(self, counts: np.ndarray) -> None:
        for call, n in zip(self.passes().values(), counts, strict=True):
            for _ in range(round(n)):
                call()


def split(vector: Tensor, like: list[Tensor]) -> tuple[Tensor, ...]:
    return vector.split([part.numel() for part in like])


# Hyper-cleaning


def upper(gathers: float, forwards: float, backwards: float) -> np.ndarray:
    return np.array([[gathers, forwards, backwards], [0, 0, 0]])


def lower(gathers: float, forwards: float, backwards: float) -> np.ndarray:
    return np.array([[0, 0, 0], [gathers, forwards, backwards]])


def fresh_batches(inner: int, q: float) -> np.ndarray:
    """`inner` gradients and q products H v, each on a batch of its own; then grad_y f, and J v."""
    return inner * lower(1, 1, 1) + q * lower(1, 2, 1) + upper(1, 1, 1) + lower(1, 2, 0)


def pixels_of(q: float) -> np.ndarray:
    """The gathers of an estimate, which serve any number of points: a draw, and a lower batch for each of q H v."""
    return upper(1, 0, 0) + lower(q + 1, 0, 0)


def products_of(q: float) -> np.ndarray:
    """The products of an estimate at one point: grad_y f, q times H v, then J v and grad_y g together."""
    return upper(0, 1, 1) + (q + 1) * lower(0, 2, 1)


CLEANING: Floors = {
    # Two points on one draw: g_y at y, y + delta v and y - delta v, and f_y.
    "FdeHBO": lambda s, k: lower(1, 6, 6) + upper(1, 2, 2),
    # Two points on one draw: scores of y and of v; g_y, H v and f_y.
    "FMBO": lambda s, k: lower(1, 4, 4) + upper(1, 2, 2),
    "SOBA": lambda s, k: lower(1, 2, 2) + upper(1, 1, 1),
    # Scores of y_t, y_{t+1}, v_t and v_{t+1}: those of D' are among them. g_y at y_t, H v and f_y at y_{t+1}.
    "FSLA": lambda s, k: lower(1, 4, 2) + upper(1, 1, 1),
    # On all the data, so nothing is gathered, and the scores of the last y serve every H v and J v.
    "AID-FP": lambda s, k: lower(0, s.inner + 1 + s.K, s.inner + s.K - 1) + upper(0, 1, 1),
    # The products are on the batch of J v.
    "AID-CG": lambda s, k: s.inner * lower(1, 1, 1) + upper(1, 1, 1) + lower(1, k + 2, k),
    # As AID-FP; the scores of each y are kept for the way back.
    "reverse": lambda s, k: lower(0, s.inner + s.K, s.inner + s.K - 1) + upper(0, 1, 1),
    "stocBiO": lambda s, k: fresh_batches(s.inner, s.Q),
    "BSA": lambda s, k: fresh_batches(s.inner, k),
    "AmIGO": lambda s, k: fresh_batches(s.inner, s.Q),
    "MRBO": lambda s, k: pixels_of(s.Q) + 2 * products_of(s.Q),
    "VRBO": lambda s, k: (
        (1 + s.inner) * (pixels_of(s.Q) + 2 * products_of(s.Q))
        + s.large / s.period * (pixels_of(s.Q) + products_of(s.Q))
    ),
    "SUSTAIN": lambda s, k: pixels_of(k / 2) + 2 * products_of(k / 2),
    # The batches are the same for every perturbed x.
    "PZOBO-S": lambda s, k: lower(s.inner, (1 + s.Q) * s.inner, (1 + s.Q) * s.inner) + upper(1, 1, 1),
    # grad_x g at y and at z are on draws of their own.
    "F2SA": lambda s, k: s.inner * (2 * lower(1, 1, 1) + upper(1, 1, 1)) + 2 * lower(1, 1, 0),
    # Two points: g_y at z and at y, f_y at y on one draw; then on another g_x at y and at z.
    "F3SA": lambda s, k: lower(1, 4, 4) + upper(1, 2, 2) + lower(1, 4, 0),
    "alternating": lambda s, k: lower(1, 1, 1),
}


class CleaningFloor:
    """Gathers by index_select, and products as they are usually written, over which the goals were set. On a batch
    (W pixels')' takes half the time of pixels W', so a problem that uses it can come closer to 1 than sharing brings
    it."""

    def __init__(self, problem: HyperCleaning, y: Tensor):
        self.W = y.view(10, -1)
        self.sets = Samples(problem.upper_set.pixels, problem.lower_set.pixels)
        generator = torch.Generator().manual_seed(0)
        self.draws = itertools.cycle([problem.sample(generator) for _ in range(12)])

    def named(self, counts: np.ndarray) -> dict[str, float]:
        return dict(zip(("gathers", "forwards", "backwards"), counts.sum(0), strict=True))

    def run(self, counts: np.ndarray) -> None:
        for which, pixels in enumerate(self.sets):
            gathers, forwards, backwards = (round(n) for n in counts[which])
            parts = (gathers or 1) if forwards else 0
            for i in range(parts):  # each has its even share of the products, right after its gather
                part = pixels.index_select(0, next(self.draws)[which]) if gathers else pixels
                for _ in range(i, forwards, parts):
                    scores = part @ self.W.T
                for _ in range(i, backwards, parts):
                    scores.T @ part


def bare_products(problem: HyperCleaning, y: Tensor, v: Tensor, samples: Samples) -> list[Tensor]:
    """The floor of a point of FMBO as it is written most simply: pixels[batch] and pixels @ W.T, six products."""
    below, above = problem.lower_set.pixels[samples.lower], problem.upper_set.pixels[samples.upper]
    W, V = y.view(10, -1), v.view(10, -1)
    forward = below @ W.T, above @ W.T, below @ V.T
    return [a.T @ pixels for a, pixels in zip(forward, (below, above, below), strict=True)]
