"""LeNet: two convolutions and three linear layers, after LeCun et al. 1998 (LeNet-5).

With ReLU and max-pooling, as it is used today, and zeros around both convolutions, so that images
of 8 x 8 still have four places left before the linear layers.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from rarefy.core.errors import bad_value

SMALLEST = 4
"""Two poolings halve the image twice."""


class LeNet(nn.Module):
    """Convolutions with 6 and 16 filters of 5 x 5, linear layers of 120, 84 and ``classes``."""

    def __init__(self, channels: int, size: int, classes: int) -> None:
        super().__init__()
        if size < SMALLEST:
            raise bad_value("size", size, f"must be at least {SMALLEST} pixels for LeNet")
        self.first = nn.Conv2d(channels, 6, 5, padding=2)
        self.second = nn.Conv2d(6, 16, 5, padding=2)
        self.third = nn.Linear(16 * (size // 4) ** 2, 120)
        self.fourth = nn.Linear(120, 84)
        self.head = nn.Linear(84, classes)

    def forward(self, images: Tensor) -> Tensor:
        found = functional.max_pool2d(functional.relu(self.first(images)), 2)
        found = functional.max_pool2d(functional.relu(self.second(found)), 2)
        found = functional.relu(self.third(found.flatten(1)))
        answers: Tensor = self.head(functional.relu(self.fourth(found)))
        return answers
