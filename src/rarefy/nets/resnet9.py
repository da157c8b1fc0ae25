"""ResNet-9 (Page 2018, "How to train your ResNet"): eight convolutions, two residual pairs.

Two thirds of the multiply-adds of a ResNet-18 and two thirds of the numbers between its layers; it
learns CIFAR-10 in fewer epochs. The last layer's answers are made smaller, so that the first steps
at a large rate do not overshoot.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from rarefy.nets.image_cnn import Convolution

ANSWERS = 0.125


class ResNet9(nn.Module):
    """``width`` filters in the first convolution, then 2, 4 and 8 times as many; images of at least
    8 pixels are halved three times. 6.6 million parameters at width 64."""

    def __init__(self, channels: int, size: int, classes: int, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            Convolution(channels, width),
            Convolution(width, 2 * width, halve=True),
            _Residual(2 * width),
            Convolution(2 * width, 4 * width, halve=True),
            Convolution(4 * width, 8 * width, halve=True),
            _Residual(8 * width),
        )
        self.left = -(-size // 8)
        self.head = _SmallAnswers(8 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        features = functional.max_pool2d(self.layers(images), self.left)
        answers: Tensor = self.head(features.flatten(1))
        return answers


class _SmallAnswers(nn.Linear):
    """A layer of its own, so that a backbone without it has the features as they are."""

    def forward(self, features: Tensor) -> Tensor:
        return ANSWERS * super().forward(features)


class _Residual(nn.Module):
    """Two convolutions beside nothing."""

    def __init__(self, filters: int) -> None:
        super().__init__()
        self.first, self.second = Convolution(filters, filters), Convolution(filters, filters)

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = images + self.second(self.first(images))
        return found
