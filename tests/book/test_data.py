"""MNIST is checked byte by byte before use: what is missing, cut or altered is named."""

import gzip
import shutil

import pytest
import torch

from bilevel_book.mnist.data import BadData, load_mnist
from bilevel_book.paths import MNIST


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(MNIST, tmp_path / "mnist")


@pytest.mark.slow
def test_bundled_images_are_mnist_and_a_copy_for_each_caller():
    load_mnist().train_labels.zero_()
    mnist = load_mnist()
    assert mnist.train_images.shape == (60000, 28, 28)
    assert mnist.test_images.shape == (10000, 28, 28)
    assert torch.bincount(mnist.train_labels).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert mnist.test_labels[:3].tolist() == [7, 2, 1]
    assert mnist.train_images.double().mean().item() / 255 == pytest.approx(0.1307, abs=5e-5)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda whole: None, "is missing: expected the gzipped MNIST file .*git checkout data/mnist"),
        (lambda whole: gzip.compress(whole)[:1000], "is damaged .*expected 60008 bytes once unzipped"),
        (lambda whole: gzip.compress(b"short"), "is truncated: expected 60008 bytes once unzipped, got 5"),
        (lambda whole: gzip.compress(whole[:-1] + b"9"), "is altered: expected md5 a25bea736e30d166cdddb491f175f624"),
    ],
    ids=["missing", "damaged", "truncated", "altered"],
)
@pytest.mark.slow
def test_file_that_is_not_mnist_is_named(copy, change, told):
    path = copy / "train-labels-idx1-ubyte.gz"
    content = change(gzip.decompress(path.read_bytes()))
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(BadData, match=rf"train-labels-idx1-ubyte\.gz {told}"):
        load_mnist(copy)
