"""A small Vision Transformer (Dosovitskiy et al. 2021) for images of few pixels.

Patches are embedded by one convolution, positions are learnt, blocks normalise first, and the mean
of all tokens is classified. Every weight matrix is an ``nn.Linear`` or the convolution, attention's
three projections being one of them, so a pruner finds all of them by type. There is no dropout:
training draws nothing from global random state.
"""

from __future__ import annotations

from torch import Tensor, nn, zeros
from torch.nn import functional

from rarefy.core.errors import bad_value

MOST_TOKENS = 64
PLACE_SPREAD = 1.0
"""Standard deviation of the initial positions: that of an embedded patch, or tokens do not know for
a long time where they are. With the usual 0.02 the same network reaches 69 % instead of 91 % on
validation images of MNIST after 234 updates, and 32 % if all weights begin with std 0.02, which is
made for networks ten times as wide."""


def default_patch(size: int) -> int:
    """The smallest power of two, from 2 on, that makes at most 64 tokens: 2 for digits of 8 x 8
    (16 tokens), 4 for 28 x 28 (49) and 32 x 32 (64), 8 for 64 x 64."""
    patch = 2
    while tokens_per_side(size, patch) ** 2 > MOST_TOKENS:
        patch *= 2
    return patch


def default_depth(size: int) -> int:
    """3 blocks below 16 pixels, where there are few tokens to relate; else 6."""
    return 3 if size < 16 else 6


def tokens_per_side(size: int, patch: int) -> int:
    """Patches from edge to edge; the last one may hang over."""
    return -(-size // patch)


class ViT(nn.Module):
    """``depth`` blocks of ``heads`` heads on tokens of ``width`` numbers; ``ratio``: hidden units
    of a block's perceptron, in widths. Images are filled up with zeros to whole patches."""

    def __init__(
        self,
        channels: int,
        size: int,
        classes: int,
        patch: int | None = None,
        width: int = 64,
        depth: int | None = None,
        heads: int = 4,
        ratio: int = 4,
    ) -> None:
        super().__init__()
        patch = default_patch(size) if patch is None else patch
        depth = default_depth(size) if depth is None else depth
        if not 1 <= patch <= size:
            raise bad_value("patch", patch, f"must be from 1 to the images' size, {size}")
        if heads < 1 or width < 1 or width % heads:
            raise bad_value("heads", heads, f"must divide the width, {width}")
        if depth < 1:
            raise bad_value("depth", depth, "must be at least 1")
        side = tokens_per_side(size, patch)
        self.missing = side * patch - size
        self.patches = nn.Conv2d(channels, width, patch, stride=patch)
        self.place = nn.Parameter(zeros(1, side**2, width))
        self.blocks = nn.Sequential(*(_Block(width, heads, ratio) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)
        self._initialise()

    def _initialise(self) -> None:
        nn.init.normal_(self.place, std=PLACE_SPREAD)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Conv2d)) and module.bias is not None:
                inputs = module.weight[0].numel()
                nn.init.normal_(module.weight, std=inputs**-0.5)
                nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> Tensor:
        if self.missing:
            images = functional.pad(images, (0, self.missing, 0, self.missing))
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.place
        answers: Tensor = self.head(self.norm(self.blocks(tokens)).mean(dim=1))
        return answers


class _Block(nn.Module):
    """Attention, then a perceptron for each token; both see normalised tokens and add to them."""

    def __init__(self, width: int, heads: int, ratio: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = _Attention(width, heads)
        self.wide, self.narrow = nn.Linear(width, ratio * width), nn.Linear(ratio * width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.attention(self.before(tokens))
        found: Tensor = tokens + self.narrow(functional.gelu(self.wide(self.between(tokens))))
        return found


class _Attention(nn.Module):
    """Every token looks at all tokens; queries, keys and values come from one linear layer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        three = self.inward(tokens).unflatten(-1, (3, self.heads, -1))  # (batch, token, 3, head, d)
        query, key, value = three.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value)
        found: Tensor = self.outward(seen.transpose(1, 2).flatten(2))
        return found
