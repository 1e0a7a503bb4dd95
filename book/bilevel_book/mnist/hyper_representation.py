"""Hyper-representation on MNIST: the upper level learns LeNet's features, the lower level its last layer.

    f(x, y) = mean cross-entropy of  y . features_x(image)  over the upper set
    g(x, y) = the same over the lower set + ridge ||y||^2

x holds everything up to the 84 features (60856 numbers), y the last linear layer (850). The paper states neither the
sets nor a ridge. As in the code that it follows, the upper set is MNIST's training file (60000) and the lower set its
test file (10000), so nothing is held out; `held_out=True` splits the training file into 50000 and 10000 instead and
keeps the test file for testing. Without a ridge g is convex but not strongly convex.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bilevel_book.mnist.data import load_images, pixel_moments
from bilevel_book.mnist.vision import import_torchvision
from bilevel_core.checks import COUNT
from bilevel_core.networks import Labelled, Modules


def lenet() -> tuple[nn.Sequential, nn.Linear]:
    """The features of LeNet-5 on 32 x 32 images, with ReLU and max pooling, and its last layer.

    Its third convolution covers the whole of a 5 x 5 image, so it is a linear layer; the first weights are the same.
    Pooling comes before ReLU, which changes nothing but leaves fewer numbers to work on.
    """
    features = nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(),
        nn.Linear(120, 84), nn.ReLU(),
    )  # fmt: skip
    return features, nn.Linear(84, 10)


class HyperRepresentation(Modules):
    __doc__ = __doc__

    def __init__(
        self,
        batch_size: int = 256,
        ridge: float = 0.0,
        held_out: bool = False,
        zero_head: bool = True,  # y_0 = 0, else PyTorch's own start
        evaluation_size: int = 10_000,  # how many images of each set, from its front, `evaluate` uses
        data: str = "MNIST",  # or another name that `load_images` takes
    ):
        COUNT.check(evaluation_size=evaluation_size)
        images = load_images(data)
        self.mean, self.std = pixel_moments(images.train_images)
        upper = Labelled(_resize(images.train_images), images.train_labels)
        lower = test = Labelled(_resize(images.test_images), images.test_labels)
        if held_out:
            upper, lower = (Labelled(*(t[part] for t in upper)) for part in (slice(-10_000), slice(-10_000, None)))
        super().__init__(*lenet(), cross_entropy, upper, lower, batch_size, ridge)
        self.zero_head, self.evaluation_size = zero_head, evaluation_size
        back = Labelled(*(t[-10_000:] for t in upper))  # for selecting settings: figures show the front of each set
        self.sets = {"upper": upper, "lower": lower, "selection": back} | ({"test": test} if held_out else {})

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """PyTorch's own initialisation of the features; a last layer of zeros, unless `zero_head` is off."""
        seed = torch.randint(2**62, (), generator=generator).item()
        with torch.random.fork_rng(devices=[]):  # layers initialise themselves from the global generator only
            torch.manual_seed(seed)
            x, y = (nn.utils.parameters_to_vector(net.parameters()).detach() for net in lenet())
        return x, torch.zeros_like(y) if self.zero_head else y

    def features(self, x: Tensor, inputs: Tensor) -> Tensor:
        # Images are kept as bytes, a quarter of the memory, and normalised a batch at a time.
        return super().features(x, ((inputs / 255 - self.mean) / self.std).to(x.dtype))

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """Loss and accuracy on the front of each set."""
        numbers = {}
        for name, data in self.sets.items():
            images, labels = data.inputs[: self.evaluation_size], data.targets[: self.evaluation_size]
            with torch.no_grad():
                logits = torch.cat([self.predict(x, y, part) for part in images.split(250)])
            numbers[f"{name}_loss"] = cross_entropy(logits, labels).item()
            numbers[f"{name}_accuracy"] = (logits.argmax(1) == labels).double().mean().item()
        return numbers


def _resize(images: Tensor) -> Tensor:
    """28 x 28 to 32 x 32 by bilinear interpolation, as bytes, with a channel axis."""
    return import_torchvision("transforms.v2.functional").resize(images[:, None], [32, 32])
