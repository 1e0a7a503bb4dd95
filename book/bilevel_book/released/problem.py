"""Hyper-cleaning as released code has it: each defect is a switch, and with all switches off this is `HyperCleaning`.

    renoise       a draw is a use, and each use shifts int(noise * B) labels of its batch by 1..9 modulo 10, in place.
                  After k uses a label is wrong with probability  0.9 (1 - (1 - 10 noise / 9)^k)
    upper_from    "clean": training images 40000..44999. "mixed": the batches -0, -1, .., -4 of 1000, and -0 is 0, so
                  one of the five is of training images. "training": the lower set. Training images have noisy labels
    averaged      the batch loss is averaged before it is weighted: every image in a batch has the same weight
    unseeded      start and draws use the global generator; the seed names the run and nothing else

With `renoise` the labels are state that the problem changes, so it is not pure. `start` puts them back, hence equal
runs are equal, and `state_dict` holds them, hence a run that is resumed from a checkpoint goes on as if never stopped.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from bilevel_book.mnist.data import load_mnist, pixel_moments
from bilevel_book.mnist.hyper_cleaning import LOWER, UPPER, HyperCleaning, log_likelihoods, prepared, rows
from bilevel_core.problem import Samples

# Where upper batches come from: a part of MNIST's training file with true labels, and how much of the lower set.
POOLS = {"clean": (UPPER, 0), "mixed": (slice(56_000, 60_000), 1_000), "training": (slice(0), LOWER.stop)}


class ReleasedCleaning(HyperCleaning):
    def __init__(
        self,
        renoise: bool = False,
        upper_from: str = "clean",
        averaged: bool = False,
        unseeded: bool = False,
        noise: float = 0.1,
        seed: int = 0,
        batch_size: int = 100,
        C: float = 0.001,
    ):
        if upper_from not in POOLS:
            raise ValueError(f"upper_from must be one of {', '.join(POOLS)}, got {upper_from!r}")
        super().__init__(noise, seed, batch_size, C)
        self.renoise, self.averaged, self.unseeded, self.noise, self.seed = renoise, averaged, unseeded, noise, seed
        own, self.shared = POOLS[upper_from]
        mnist, pixels = load_mnist(), self.lower_set.pixels
        own = prepared(
            mnist.train_images[own], mnist.train_labels[own], pixel_moments(mnist.train_images), pixels.dtype
        )
        self.pool, self.true_part = torch.cat((own.pixels, pixels[: self.shared])), own.labels
        self.drawn_once = self.noisy_labels

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        self.noisy_labels = self.lower_set.labels.clone() if self.renoise else self.drawn_once
        self.is_noisy = self.noisy_labels != self.lower_set.labels
        self.shifts = torch.Generator().manual_seed(self.seed)  # its own, so that batches are those of a correct run
        return super().start(self._source(generator))

    def state_dict(self) -> dict[str, Tensor]:
        """How the labels stand, and the generator that shifts them."""
        return {"labels": self.noisy_labels, "shifts": self.shifts.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.noisy_labels = state["labels"]
        self.shifts.set_state(state["shifts"])

    def sample(self, generator: torch.Generator) -> Samples:
        generator, size = self._source(generator), (self.batch_size,)
        upper = torch.randint(len(self.pool), size, generator=generator)
        return Samples(upper, self.use(torch.randint(len(self.noisy_labels), size, generator=generator)))

    def full(self) -> Samples:
        return Samples(slice(0, len(self.pool)), self.use(slice(0, len(self.noisy_labels))))

    def use(self, batch: Tensor | slice) -> Tensor | slice:
        """The batch itself; with `renoise`, after int(noise * B) of its labels were shifted where they are stored."""
        if self.renoise:
            images = torch.arange(len(self.noisy_labels))[batch]
            hit = images[torch.randperm(len(images), generator=self.shifts)[: int(self.noise * len(images))]]
            shift = torch.randint(1, 10, hit.shape, generator=self.shifts)
            self.noisy_labels[hit] = (self.noisy_labels[hit] + shift) % 10
        return batch

    def upper_at(self, x: Tensor, batch: Tensor | slice) -> Callable[[Tensor], Tensor]:
        labels = rows(torch.cat((self.true_part, self.noisy_labels[: self.shared])), batch)
        pixels = rows(self.pool, batch)
        return lambda y: log_likelihoods(y, pixels, labels).mean().neg()

    def lower_at(self, x: Tensor, batch: Tensor | slice) -> Callable[[Tensor], Tensor]:
        if not self.averaged:
            return super().lower_at(x, batch)
        pixels, labels = rows(self.lower_set.pixels, batch), rows(self.noisy_labels, batch)
        weight = torch.sigmoid(rows(x, batch)).mean()
        return lambda y: self.C * (y @ y) - weight * log_likelihoods(y, pixels, labels).mean()

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """Also `wrong`, the fraction of lower labels that are wrong now. `upper_loss` is on the clean set always."""
        self.is_noisy = self.noisy_labels != self.lower_set.labels
        return super().evaluate(x, y) | {"wrong": self.is_noisy.double().mean().item()}

    def _source(self, generator: torch.Generator) -> torch.Generator:
        return torch.default_generator if self.unseeded else generator


def wrong_after(uses: int | Tensor, noise: float) -> float | Tensor:
    """P(a label is wrong after so many uses). Each use keeps it with probability 1 - noise, else it moves to one of
    nine others: the distance to the uniform distribution shrinks by 1 - 10 noise / 9."""
    return 0.9 * (1 - (1 - 10 * noise / 9) ** uses)
