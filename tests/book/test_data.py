"""MNIST is checked byte by byte before use: what is missing, cut or altered is named, or fetched again."""

import gzip
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import torch

from bilevel_book.mnist.data import FILES, BadData, load_mnist
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
        (lambda whole: None, "is missing: expected the gzipped MNIST file .*download=True"),
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


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args): ...


@pytest.mark.slow
def test_download_fetches_what_is_wrong(copy, tmp_path, monkeypatch):
    """A server on this machine plays the mirror."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=MNIST))
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr("bilevel_book.mnist.data.MIRROR", f"http://127.0.0.1:{server.server_port}")
    kept = (copy / "t10k-images-idx3-ubyte.gz").stat().st_mtime_ns
    (copy / "t10k-labels-idx1-ubyte.gz").unlink()
    (copy / "train-labels-idx1-ubyte.gz").write_bytes(b"broken")
    assert load_mnist(copy, download=True).test_labels[:3].tolist() == [7, 2, 1]
    assert (copy / "t10k-images-idx3-ubyte.gz").stat().st_mtime_ns == kept
    assert {path.name for path in copy.iterdir()} == {*(f"{name}.gz" for name in FILES), "README.md"}
    server.shutdown()
    server.server_close()
    with pytest.raises(BadData, match=r"train-images-idx3-ubyte.gz could not be fetched from http://127.*: .*refused"):
        load_mnist(tmp_path / "other", download=True)
