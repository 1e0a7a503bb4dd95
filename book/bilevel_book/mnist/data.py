"""MNIST, bundled with the project and checked byte by byte before use."""

import gzip
import hashlib
import os
import zlib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from bilevel_book.paths import MNIST

# md5 and length of the four canonical idx files, uncompressed.
FILES = {
    "train-images-idx3-ubyte": ("6bbc9ace898e44ae57da46a324031adb", 47_040_016),
    "train-labels-idx1-ubyte": ("a25bea736e30d166cdddb491f175f624", 60_008),
    "t10k-images-idx3-ubyte": ("2646ac647ad5339dbf082846283269ea", 7_840_016),
    "t10k-labels-idx1-ubyte": ("27ae3e4e09519cfbb04c329615203637", 10_008),
}


class Mnist(NamedTuple):
    """Images as uint8 of shape (n, 28, 28), labels as int64 of shape (n,)."""

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


class BadData(ValueError):
    """A data file is missing, truncated or altered."""


def load_mnist(root: str | os.PathLike[str] | None = None) -> Mnist:
    """The 60000 training and 10000 test images, a copy of them; `root` has the four files, gzipped (default: ours)."""
    return Mnist(*(part.clone() for part in _load(Path(root) if root is not None else MNIST)))


@lru_cache(maxsize=1)
def _load(root: Path) -> Mnist:
    contents = (_read(root / f"{name}.gz") for name in FILES)
    # The header of an idx file is 16 bytes for images, 8 for labels; what follows are plain bytes.
    return Mnist(*(z[16:].view(-1, 28, 28) if k % 2 == 0 else z[8:].long() for k, z in enumerate(contents)))


def _read(path: Path) -> Tensor:
    md5, length = FILES[path.stem]
    advice = "restore it: git checkout data/mnist, or install the book again"
    content = bytearray()
    try:
        with gzip.open(path) as file:
            while piece := file.read(2**16):  # all at once would be in memory twice
                content += piece
    except FileNotFoundError:
        raise BadData(f"{path} is missing: expected the gzipped MNIST file {path.stem}; {advice}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise BadData(f"{path} is damaged ({error}): expected {length} bytes once unzipped; {advice}") from None
    if len(content) != length:
        raise BadData(f"{path} is truncated: expected {length} bytes once unzipped, got {len(content)}; {advice}")
    if (found := hashlib.md5(content).hexdigest()) != md5:
        raise BadData(f"{path} is altered: expected md5 {md5} once unzipped, got {found}; {advice}")
    return torch.frombuffer(content, dtype=torch.uint8)
