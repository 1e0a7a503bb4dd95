import gzip
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import torch

from bilevel_book.mnist.data import FILES, BadData, load_mnist
from bilevel_book.paths import MNIST


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args): ...


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(MNIST, tmp_path / "mnist", ignore=shutil.ignore_patterns("__pycache__"))


@pytest.mark.slow
def test_the_bundled_images():
    mnist = load_mnist()
    assert mnist.train_images.shape == (60000, 28, 28)
    assert mnist.test_images.shape == (10000, 28, 28)
    assert mnist.train_images.dtype == mnist.test_images.dtype == torch.uint8
    assert mnist.train_labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert torch.bincount(mnist.train_labels).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert torch.bincount(mnist.test_labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    mean = mnist.train_images.double().mean().item() / 255
    assert mean == pytest.approx(0.1307, abs=5e-5)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(copy, name):
    (copy / f"{name}.gz").unlink()
    with pytest.raises(BadData, match=rf"{name}\.gz is missing: expected .*{name}; .*download=True"):
        load_mnist(copy)


@pytest.mark.slow
def test_a_truncated_file_is_named(copy):
    path = copy / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(BadData, match=r"t10k-images-idx3-ubyte\.gz is damaged .*expected 7840016 bytes"):
        load_mnist(copy)
    path.write_bytes(gzip.compress(b"short"))
    with pytest.raises(BadData, match=r"is truncated: expected 7840016 bytes once unzipped, got 5"):
        load_mnist(copy)
    path.write_bytes(b"not gzip at all")
    with pytest.raises(BadData, match="is damaged"):
        load_mnist(copy)


@pytest.mark.slow
def test_an_altered_file_is_named(copy):
    path = copy / "train-labels-idx1-ubyte.gz"
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[100] ^= 1
    path.write_bytes(gzip.compress(bytes(content)))
    with pytest.raises(BadData, match="is altered: expected md5 a25bea736e30d166cdddb491f175f624 once unzipped, got"):
        load_mnist(copy)


@pytest.mark.slow  # reads MNIST several times
def test_download_fetches_what_is_wrong(copy, tmp_path, monkeypatch):
    """A server on this machine plays the mirror."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=MNIST))
    Thread(target=server.serve_forever, daemon=True).start()
    mirror = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr("bilevel_book.mnist.data.MIRROR", mirror)
    kept = (copy / "t10k-images-idx3-ubyte.gz").stat().st_mtime_ns
    (copy / "t10k-labels-idx1-ubyte.gz").unlink()
    (copy / "train-labels-idx1-ubyte.gz").write_bytes(b"broken")
    assert load_mnist(copy, download=True).test_labels[:3].tolist() == [7, 2, 1]
    assert (copy / "t10k-images-idx3-ubyte.gz").stat().st_mtime_ns == kept
    assert sorted(p.name for p in copy.iterdir()) == sorted([*(f"{n}.gz" for n in FILES), "README.md", "__init__.py"])
    assert load_mnist(tmp_path / "new", download=True).train_labels[0] == 5
    server.shutdown()
    server.server_close()
    with pytest.raises(BadData, match=f"train-images-idx3-ubyte.gz could not be fetched from {mirror}: .*refused"):
        load_mnist(tmp_path / "other", download=True)


def test_whoever_edits_the_images_edits_a_copy():
    mnist = load_mnist()
    for part in mnist:
        part.zero_()
    mnist.train_labels.numpy()[:] = 7
    again = load_mnist()
    assert again.train_labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert again.test_labels[:3].tolist() == [7, 2, 1]
    assert all(images.any() for images in (again.train_images, again.test_images))
