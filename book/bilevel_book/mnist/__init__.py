"""MNIST, datasets of its shape, and the two experiments of the paper on them."""

from bilevel_book.mnist.data import load_images, load_mnist
from bilevel_book.mnist.hyper_cleaning import HyperCleaning
from bilevel_book.mnist.hyper_representation import HyperRepresentation

__all__ = ["HyperCleaning", "HyperRepresentation", "load_images", "load_mnist"]
