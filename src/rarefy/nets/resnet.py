"""ResNet-18 (He et al. 2016) for small images: a 3 x 3 stem, no pooling before the first stage."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (64, 128, 256, 512)
"""Filters of the four stages; the images are halved at the beginning of all but the first."""


class ResNet18(nn.Module):
    """Eight residual blocks of two convolutions; 11.2 million parameters and, at 32 x 32, 555
    million multiply-adds. Any ``size`` will do: the last mean is over all places.

    zero_last: the last normalisation of every block begins with factor 0, so that each block begins
        as its shortcut (Goyal et al. 2017). The convolutions of a block then have gradient 0 in the
        very first step: switch it off to look at first gradients.
    """

    def __init__(self, channels: int, size: int, classes: int, zero_last: bool = True) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, WIDTHS[0], 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(WIDTHS[0])
        blocks: list[nn.Module] = []
        narrow = WIDTHS[0]
        for wide in WIDTHS:
            stride = 1 if narrow == wide else 2
            blocks += [_Residual(narrow, wide, stride), _Residual(wide, wide)]
            narrow = wide
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(narrow, classes)
        self._initialise(zero_last)

    def _initialise(self, zero_last: bool) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, _Residual) and zero_last:
                nn.init.zeros_(module.second_norm.weight)

    def forward(self, images: Tensor) -> Tensor:
        found = self.blocks(functional.relu(self.norm(self.stem(images))))
        answers: Tensor = self.head(found.mean(dim=(2, 3)))
        return answers


class _Residual(nn.Module):
    """Two convolutions beside a shortcut, which is a 1 x 1 convolution where the shape changes."""

    def __init__(self, narrow: int, wide: int, stride: int = 1) -> None:
        super().__init__()
        self.first = nn.Conv2d(narrow, wide, 3, stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(wide)
        self.second = nn.Conv2d(wide, wide, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(wide)
        self.shortcut = (
            nn.Identity()
            if narrow == wide
            else nn.Sequential(nn.Conv2d(narrow, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))
        )

    def forward(self, images: Tensor) -> Tensor:
        found = functional.relu(self.first_norm(self.first(images)))
        return functional.relu(self.second_norm(self.second(found)) + self.shortcut(images))
