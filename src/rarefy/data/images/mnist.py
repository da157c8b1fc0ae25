"""MNIST in its official idx files, gzipped or not, as torchvision lays them out or loose."""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.data.images.image_set import ImageData, ImageSet
from rarefy.data.images.unpack_limit import LimitedGzip

FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
CLASSES = tuple("0123456789")
RAW = Path("MNIST", "raw")
"""torchvision's place for the four files."""


def find_mnist(folder: Path) -> dict[str, Path]:
    """Those of the four files that are there, by official name."""
    found: dict[str, Path] = {}
    for name in FILES:
        # some copies spell it train-images.idx3-ubyte
        stem, _, kind = name.rpartition("-idx")
        for place in (folder / RAW, folder):
            spelled = [f"{stem}{mark}idx{kind}{end}" for end in ("", ".gz") for mark in "-."]
            paths = [place / spelling for spelling in spelled if (place / spelling).is_file()]
            if paths:
                found[name] = paths[0]
                break
    return found


def load_mnist(folder: Path) -> ImageData:
    """Read the set from a folder in which ``find_mnist`` finds all four files."""
    paths = find_mnist(folder)
    splits = []
    for images_name, labels_name in (FILES[:2], FILES[2:]):
        images = read_idx(paths[images_name], 3)
        labels = read_idx(paths[labels_name], 1)
        if len(images) != len(labels):
            raise UsageError(
                f"{paths[labels_name]}: {len(labels)} labels for the {len(images)} images of "
                f"{paths[images_name].name}"
            )
        if not len(images):
            raise UsageError(f"{paths[images_name]}: no images in it")
        if int(labels.max()) >= len(CLASSES):
            place = int(labels.argmax())
            raise UsageError(
                f"{paths[labels_name]}: label {int(labels[place])} at position {place}; "
                f"must be from 0 to {len(CLASSES) - 1}"
            )
        splits.append(ImageSet(images[:, None], labels.long(), CLASSES))
    train, test = splits
    if train.images.shape[1:] != test.images.shape[1:]:
        sides = [tuple(split.images.shape[2:]) for split in splits]
        raise UsageError(f"{paths[FILES[2]]}: images of {sides[1]}, those for training {sides[0]}")
    return ImageData("mnist", train, test, str(paths[FILES[0]].parent))


def read_idx(path: Path, dimensions: int) -> Tensor:
    """The uint8 array of an idx file: two zero bytes, 8 for uint8, the number of dimensions, each
    size as a big-endian 32-bit number, then the values."""
    try:
        with LimitedGzip(path) if path.suffix == ".gz" else path.open("rb") as stream:
            return torch.from_numpy(_values(cast(BinaryIO, stream), path, dimensions))
    except (EOFError, zlib.error) as error:
        raise UsageError(f"{path}: truncated or damaged gzip file ({error})") from None
    except OSError as error:  # a file that is no gzip is one of these too
        raise UsageError(f"{path}: cannot be read ({error.strerror or error})") from None


def _values(stream: BinaryIO, path: Path, dimensions: int) -> NDArray[np.uint8]:
    header = stream.read(4 + 4 * dimensions)
    if not header:
        raise UsageError(f"{path}: empty file")
    magic = bytes((0, 0, 8, dimensions))
    if header[:4] != magic:
        raise UsageError(
            f"{path}: starts with {header[:4].hex()}, an idx file of {dimensions} dimensions "
            f"with {magic.hex()}"
        )
    if len(header) < 4 + 4 * dimensions:
        raise UsageError(f"{path}: truncated within its header")
    shape = struct.unpack(f">{dimensions}I", header[4:])
    size = math.prod(shape)
    content = bytearray()
    # in pieces: a header that promises too much must not ask for the memory at once
    while len(content) <= size:
        piece = stream.read(min(size + 1 - len(content), 1 << 24))
        if not piece:
            break
        content += piece
    if len(content) != size:
        found = "more" if len(content) > size else f"only {len(content)}"
        word = "damaged" if len(content) > size else "truncated"
        raise UsageError(f"{path}: {word}, {found} bytes where its header promises {size}")
    if not size:  # (sizes beside a zero may be any)
        return np.zeros((0,) * dimensions, dtype=np.uint8)
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)
