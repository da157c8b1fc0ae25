"""A convolutional network with batch normalisation for small images: strong for what it costs.

One convolution at full size, then three stages of two convolutions with 2, 4 and 4 times as many
filters, all 3 x 3. Images are halved before the normalisation of a stage's first convolution: that
one still sees the finer grid, everything after it pays a quarter. At 32 x 32 x 3 and width 64 a
forward pass takes 70 million multiply-adds (a ResNet-18: 555 million), and every convolution but
the first has multiples of 64 channels, which tensor cores want.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from rarefy.core.errors import bad_value

STAGES = (2, 4, 4)
"""Filters of the stages after the first convolution, in widths."""
LEAST = 2
"""Images are halved only while this many pixels per side are left for the last, global pooling."""


def default_width(size: int) -> int:
    """Filters of the first convolution, by the images' size.

    16 below 16 pixels: digits of 8 x 8 are learnt in a second on one CPU core and a wider network
    gains nothing there; 32 below 32 pixels: MNIST is as easy; 64 from 32 pixels on: photographs
    need it, and tensor cores are filled.
    """
    return 16 if size < 16 else 32 if size < 32 else 64


def halvings(size: int) -> int:
    """How often an image is halved (7 pixels become 4, nothing is lost at the border): at most once
    for the first convolution and once a stage, and never to less than ``LEAST`` pixels."""
    count = 0
    while count <= len(STAGES) and (size + 1) // 2 >= LEAST:
        size, count = (size + 1) // 2, count + 1
    return count


class ImageCNN(nn.Module):
    """``width`` filters in the first convolution, 2, 4 and 4 times as many in the stages."""

    def __init__(self, channels: int, size: int, classes: int, width: int | None = None) -> None:
        super().__init__()
        width = default_width(size) if width is None else width
        if width < 1:
            raise bad_value("width", width, "must be at least 1")
        times = halvings(size)
        self.left = -(-size // 2**times)
        layers: list[nn.Module] = [Convolution(channels, width, halve=times > 0)]
        narrow = width
        for stage, factor in enumerate(STAGES, start=1):
            wide = factor * width
            layers += [Convolution(narrow, wide, halve=times > stage), Convolution(wide, wide)]
            narrow = wide
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(narrow, classes)

    def forward(self, images: Tensor) -> Tensor:
        # the largest response anywhere, since an object may stand anywhere; by a pooling and not by
        # amax(), so that filters of zeros can be followed through it and removed
        found = functional.max_pool2d(self.layers(images), self.left)
        answers: Tensor = self.head(found.flatten(1))
        return answers


class Convolution(nn.Module):
    """Convolution, halving if asked for, normalisation, ReLU. No bias: the normalisation has one.

    Halving before the normalisation and not after it: the maximum of what is not yet cut off at
    zero tells more, and normalisation and ReLU then have a quarter of the pixels.
    """

    def __init__(self, narrow: int, wide: int, halve: bool = False) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(narrow, wide, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(wide)
        self.halve = halve
        nn.init.kaiming_normal_(self.convolution.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        found = self.convolution(images)
        if self.halve:
            found = functional.max_pool2d(found, 2, ceil_mode=True)
        return functional.relu(self.norm(found))
