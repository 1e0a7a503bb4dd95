"""Images by torchvision: MNIST, bundled with the project and checked byte by byte, and datasets of the same shape."""

import gzip
import hashlib
import os
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilevel_book.mnist.vision import import_torchvision
from bilevel_book.paths import DATA, MNIST

# md5 and length of the four canonical idx files, uncompressed.
FILES = {
    "train-images-idx3-ubyte": ("6bbc9ace898e44ae57da46a324031adb", 47_040_016),
    "train-labels-idx1-ubyte": ("a25bea736e30d166cdddb491f175f624", 60_008),
    "t10k-images-idx3-ubyte": ("2646ac647ad5339dbf082846283269ea", 7_840_016),
    "t10k-labels-idx1-ubyte": ("27ae3e4e09519cfbb04c329615203637", 10_008),
}
DATASETS = ("MNIST", "FashionMNIST", "KMNIST", "CIFAR10")  # ten classes, at least 50000 images to learn from


class Mnist(NamedTuple):
    """Images as uint8 of shape (n, 28, 28), labels as int64 of shape (n,); MNIST's, or those of another dataset."""

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


class BadData(ValueError):
    """A data file is missing, truncated or altered."""


def load_mnist(root: str | os.PathLike[str] | None = None) -> Mnist:
    """The 60000 training and 10000 test images, a copy of them; `root` has the four files, gzipped (default: ours)."""
    return load_images("MNIST", root)


def load_images(data: str = "MNIST", root: str | os.PathLike[str] | None = None, download: bool = False) -> Mnist:
    """A dataset of torchvision by its name, a copy of it, in the shape of MNIST: colour images become grey, and small.

    `root` is torchvision's own, the folder around FashionMNIST/raw (default: data/). MNIST is the bundled copy.
    """
    if data not in DATASETS:
        raise BadData(f"data must be one of {', '.join(DATASETS)}, got {data!r}")
    place = Path(root) if root is not None else MNIST if data == "MNIST" else DATA
    return Mnist(*(part.clone() for part in _load(data, place, download)))


def pixel_moments(images: Tensor) -> tuple[float, float]:
    """Mean and standard deviation of a pixel between 0 and 1, to four digits as is usual: 0.1307, 0.3081 for MNIST."""
    sums = [(part.sum().item(), (part @ part).item()) for part in (p.flatten().float() for p in images.split(500))]
    mean, square = (sum(each) / images.numel() / 255**k for k, each in enumerate(zip(*sums, strict=True), 1))
    return round(mean, 4), round((square - mean**2) ** 0.5, 4)


@lru_cache(maxsize=1)
def _load(data: str, root: Path, download: bool) -> Mnist:
    datasets = import_torchvision("datasets")  # not above: its import takes a second
    kind = _bundled(datasets.MNIST) if data == "MNIST" else getattr(datasets, data)
    try:
        halves = [kind(root, train=train, download=download) for train in (True, False)]
    except RuntimeError as error:  # torchvision's own, "Dataset not found"
        where = root / data / "raw" if issubclass(kind, datasets.MNIST) else root
        fetch = f'bilevel_book.mnist.load_images("{data}", download=True)'
        raise BadData(f"{data} is not in {where}: put its unzipped files there, or fetch them by {fetch}") from error
    return Mnist(*(part for half in halves for part in (_small_and_grey(half.data), torch.as_tensor(half.targets))))


def _bundled(kind: Any) -> Any:
    """torchvision's MNIST, which reads the four gzipped files of its root, each after its checksum."""

    class Bundled(kind):
        def _check_exists(self) -> bool:
            return True

        def _load_data(self) -> tuple[Tensor, Tensor]:
            half = "train" if self.train else "t10k"
            images, labels = (_read(Path(self.root) / f"{half}-{n}-ubyte.gz") for n in ("images-idx3", "labels-idx1"))
            # The header of an idx file is 16 bytes for images, 8 for labels; what follows are plain bytes.
            return images[16:].view(-1, 28, 28), labels[8:].long()

    return Bundled


def _small_and_grey(images: Any) -> Tensor:
    """Images of MNIST's shape as they are; colour images of any size, colours last, as 28 x 28 grey ones."""
    images = torch.as_tensor(images)
    if images.shape[1:] == (28, 28):
        return images
    functional = import_torchvision("transforms.v2.functional")
    parts = images.movedim(-1, 1).split(1000)
    return torch.cat([functional.resize(functional.rgb_to_grayscale(part), [28, 28]) for part in parts]).squeeze(1)


def _read(path: Path) -> Tensor:
    md5, length = FILES[path.stem]
    advice = "restore it: git checkout data/mnist, or install the book again"
    content = bytearray()
    try:
        with gzip.open(path) as file:
            while len(content) <= length and (piece := file.read(2**16)):  # all at once would be in memory twice
                content += piece
    except FileNotFoundError:
        raise BadData(f"{path} is missing: expected the gzipped MNIST file {path.stem}; {advice}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise BadData(f"{path} is damaged ({error}): expected {length} bytes once unzipped; {advice}") from None
    if len(content) != length:
        size = f"more than {length}" if len(content) > length else len(content)
        raise BadData(f"{path} is of another size: expected {length} bytes once unzipped, got {size}; {advice}")
    if (found := hashlib.md5(content).hexdigest()) != md5:
        raise BadData(f"{path} is altered: expected md5 {md5} once unzipped, got {found}; {advice}")
    return torch.frombuffer(content, dtype=torch.uint8)
