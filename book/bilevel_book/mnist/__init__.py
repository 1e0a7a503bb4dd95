"""MNIST and the two experiments of the paper on it."""

from bilevel_book.mnist.data import load_mnist
from bilevel_book.mnist.hyper_cleaning import HyperCleaning
from bilevel_book.mnist.hyper_representation import HyperRepresentation

__all__ = ["HyperCleaning", "HyperRepresentation", "load_mnist"]
