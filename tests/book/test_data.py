"""MNIST is checked byte by byte before use; other datasets are read where torchvision keeps them."""

import gzip
import shutil
import sys
from unittest.mock import patch

import pytest
import torch

from bilevel_book.__main__ import main
from bilevel_book.experiments import read
from bilevel_book.mnist import HyperRepresentation, data, load_images, vision
from bilevel_book.mnist.data import BadData, load_mnist, pixel_moments
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
    assert pixel_moments(mnist.train_images) == (0.1307, 0.3081)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda whole: None, "is missing: expected the gzipped MNIST file .*git checkout data/mnist"),
        (lambda whole: gzip.compress(whole)[:1000], "is damaged .*expected 60008 bytes once unzipped"),
        (lambda whole: gzip.compress(b"short"), "is of another size: expected 60008 bytes once unzipped, got 5"),
        (lambda whole: gzip.compress(bytes(10**6))[:-9], "is of another size: .*more than 60008"),  # it stops early
        (lambda whole: gzip.compress(whole[:-1] + b"9"), "is altered: expected md5 a25bea736e30d166cdddb491f175f624"),
    ],
    ids=["missing", "damaged", "truncated", "bomb", "altered"],
)
@pytest.mark.slow
def test_file_that_is_not_mnist_is_named(copy, change, told):
    path = copy / "train-labels-idx1-ubyte.gz"
    content = change(gzip.decompress(path.read_bytes()))
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(BadData, match=rf"train-labels-idx1-ubyte\.gz {told}"):
        load_mnist(copy)


def idx(values: torch.Tensor) -> bytes:
    """Bytes as the files of MNIST have them: two zeros, 8 for bytes, how many dimensions, and each of them."""
    return bytes([0, 0, 8, values.dim()]) + b"".join(n.to_bytes(4) for n in values.shape) + values.numpy().tobytes()


@pytest.fixture
def fashion(tmp_path, monkeypatch):
    """A generated dataset where torchvision looks for FashionMNIST: images as bright as their label."""
    folder = tmp_path / "FashionMNIST" / "raw"
    folder.mkdir(parents=True)
    for half, n in {"train": 52_000, "t10k": 500}.items():
        labels = (torch.arange(n) % 10).byte()
        (folder / f"{half}-labels-idx1-ubyte").write_bytes(idx(labels))
        (folder / f"{half}-images-idx3-ubyte").write_bytes(idx((20 * labels)[:, None, None].expand(n, 28, 28)))
    monkeypatch.setattr(data, "DATA", tmp_path)


@pytest.mark.slow
def test_other_dataset_takes_the_place_of_mnist(fashion, tmp_path, capsys):
    images = load_images("FashionMNIST")
    assert [len(part) for part in images] == [52_000, 52_000, 500, 500]
    assert (images.train_images == 20 * images.train_labels[:, None, None]).all()
    mean, spread = pixel_moments(images.train_images)
    assert (mean, spread) == (round(90 / 255, 4), round(20 * 8.25**0.5 / 255, 4))
    problem = HyperRepresentation(data="FashionMNIST", held_out=True)
    assert [len(problem.sets[name].targets) for name in ("upper", "lower", "test")] == [42_000, 10_000, 500]
    assert (problem.mean, problem.std) == (mean, spread)

    given = ["hyper-cleaning", "--data", "FashionMNIST", "--group", "slow", "--results", str(tmp_path)]
    assert main(["reproduce", *given]) == 0
    assert main(["verify", *given]) == 0
    assert "1 of 1 runs" in capsys.readouterr().out
    assert read("hyper-cleaning", "slow", tmp_path / "FashionMNIST" / "smoke").test_accuracy.iloc[-1] > 0.15


def test_missing_dataset_is_told_with_its_place(tmp_path):
    where = tmp_path / "KMNIST" / "raw"
    with pytest.raises(BadData, match=rf'KMNIST is not in {where}: .*load_images\("KMNIST", download=True\)'):
        load_images("KMNIST", tmp_path)
    with pytest.raises(BadData, match="data must be one of MNIST, FashionMNIST, KMNIST, CIFAR10, got 'SVHN'"):
        load_images("SVHN")


def test_colour_images_become_grey_and_small():
    green = torch.zeros(2, 32, 32, 3, dtype=torch.uint8)
    green[..., 1] = 200
    small = data._small_and_grey(green.numpy())
    assert small.shape == (2, 28, 28)
    assert torch.equal(small, torch.full_like(small, 117))  # 0.587 of 200


@pytest.mark.parametrize("has_operators", [True, False])
def test_torchvision_is_repaired_only_where_its_operators_are_missing(tmp_path, monkeypatch, has_operators):
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("from torchvision import _meta_registrations, extension\n")
    failing = "raise RuntimeError('operator torchvision::nms does not exist')"
    (package / "_meta_registrations.py").write_text("real = True\n" if has_operators else failing)
    (package / "extension.py").write_text(f"def _has_ops(): return {has_operators}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with patch.dict(sys.modules):
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        assert vision.has_operators() == has_operators
        assert hasattr(sys.modules[vision.DESCRIPTIONS], "real") == has_operators
