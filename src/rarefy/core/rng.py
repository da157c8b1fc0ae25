"""Counter-based random numbers: a draw depends on (cell, stream, step, index) and nothing else.

Each (cell, stream, step) owns a 64-bit start and an odd 64-bit stride; number ``index`` is the
SplitMix64 finaliser (Steele, Lea, Flood 2014) of ``start + index * stride``. There is no state, so
a cell draws the same numbers alone, in any batch, in any order and on any thread.

Normals (``rarefy.core.normals``) are the same bits with and without compiled code. Draws have
float32 resolution in every dtype: a float64 run sees the same numbers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from copy import copy
from functools import cache

import numpy as np
import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.normals import mix, normal_pairs, shown_pairs, signed, words

_BLOCK = 64
_GOLDEN = 0x9E3779B97F4A7C15


def key(*parts: object) -> int:
    """A stable 64-bit key of anything with a stable ``repr``: names, numbers, tuples of them."""
    text = "\x1f".join(_spell(part) for part in parts)
    return signed(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big"))


def _spell(part: object) -> str:
    # 1 and 1.0, numpy and Python values must name the same cell
    if isinstance(part, np.generic | np.ndarray):
        part = part.tolist()
    if isinstance(part, bool | str):
        return repr(part)
    if isinstance(part, int | float):
        return repr(float(part))
    if isinstance(part, Sequence):
        return "(" + ",".join(_spell(item) for item in part) + ")"
    return repr(part)


@cache
def _stream_key(stream: str) -> int:
    return key("stream", stream)


def _midpoints(word: Tensor) -> Tensor:
    """The upper 24 bits as the middle of one of 2^24 cells of (0, 1), rounded to float32."""
    middle = (((word >> 40) & 0xFFFFFF).to(torch.float32) + 0.5) * 2.0**-24
    return torch.clamp(middle, max=1 - 2.0**-24)  # the last would be rounded up to 1


class Draws:
    """Random numbers for a batch of runs; ``keys`` has one 64-bit key a run.

    A run draws the same numbers alone, in any batch, and in any order. Methods: ``uniform``,
    ``normal``, ``sign``, ``integers`` take a ``stream`` that names the purpose ("noise",
    "support"), a ``shape`` and a training ``step``, and return a tensor (run, *shape).

    Arguments:
        keys: a whole number per run.
        device, dtype: of the tensors.
        compile_kernels: whether normals are drawn by compiled code.

    Example:
        >>> draws = rarefy.lab.Draws(range(3))  # three runs
        >>> draws.normal("noise", (4, 5), step=7).shape
        torch.Size([3, 4, 5])
        >>> alone = rarefy.lab.Draws([2]).normal("noise", (4, 5), step=7)
        >>> bool((alone[0] == draws.normal("noise", (4, 5), step=7)[2]).all())
        True
        >>> draws.per_run(0.1)
        tensor([0.1000, 0.1000, 0.1000])
    """

    def __init__(
        self,
        keys: np.ndarray | Sequence[int] | Tensor,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        compile_kernels: bool = False,
    ) -> None:
        self.keys = torch.as_tensor(np.asarray(keys, dtype=np.int64)).to(device)
        self.dtype = dtype
        self.compile_kernels = compile_kernels
        self._origins: dict[tuple[str, int], tuple[Tensor, Tensor]] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def spawn(self, purpose: str) -> Draws:
        """Draws of the same runs for another purpose, independent of these."""
        other = copy(self)
        other._origins = {}
        other.keys = mix(self.keys + _stream_key(f"spawn {purpose}"))
        return other

    def per_run(self, value: float) -> Tensor:
        """A hyper-parameter that is alike in all runs, (run,)."""
        return torch.full((len(self),), value, dtype=self.dtype, device=self.keys.device)

    def _origin(self, stream: str, step: int) -> tuple[Tensor, Tensor]:
        """Start and stride of every run, (run,) each. Computed for a block of steps at a time: on
        tensors this small a step's thirty operations would cost more than its noise."""
        block = step // _BLOCK
        if (stream, block) not in self._origins:
            steps = torch.arange(block * _BLOCK + 1, (block + 1) * _BLOCK + 1, dtype=torch.int64)
            name = _stream_key(stream)
            salt = (steps * signed(_GOLDEN) + name).to(self.keys.device)
            start = mix(mix(self.keys ^ salt[:, None]) + name)
            stride = mix(start + signed(_GOLDEN)) | 1
            self._origins = {k: v for k, v in self._origins.items() if k[0] != stream}
            self._origins[stream, block] = start, stride
        start, stride = self._origins[stream, block]
        return start[step % _BLOCK], stride[step % _BLOCK]

    def _bits(self, stream: str, step: int, shape: Sequence[int]) -> Tensor:
        start, stride = self._origin(stream, step)
        return words(start, stride, math.prod(shape)).reshape(len(self), *shape)

    def uniform(self, stream: str, shape: Sequence[int], step: int = 0) -> Tensor:
        """Uniform on (0, 1): 24-bit midpoints rounded to float32, never 0 or 1."""
        return _midpoints(self._bits(stream, step, shape)).to(self.dtype)

    def normal(
        self, stream: str, shape: Sequence[int], step: int = 0, scale: Tensor | None = None
    ) -> Tensor:
        """Normal with mean 0 and std ``scale``, one value a run (1 if not given)."""
        count = math.prod(shape)
        std = torch.ones(len(self), device=self.keys.device) if scale is None else scale
        pairs = self._pairs(stream, ((count + 1) // 2,), step, std).reshape(len(self), -1)
        return pairs[:, :count].reshape(len(self), *shape).to(self.dtype)

    def normal_views(
        self, stream: str, shape: Sequence[int], step: int, scale: Tensor, offset: Tensor
    ) -> Tensor:
        """Two views, (run, 2, *shape): normal noise of std ``scale`` (run,), as ``normal`` gives it
        for the shape (2, *shape), plus ``offset``, (run, 1 or 2, ...), broadcast to them."""
        if self.dtype == torch.float32:
            return self._pairs(stream, shape, step, scale, offset)
        return self._pairs(stream, shape, step, scale).to(self.dtype) + offset

    def shown_views(
        self,
        stream: str,
        shape: Sequence[int],
        step: int,
        scale: Tensor,
        offset: Tensor,
        weights: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        """What neurons see of ``normal_views``: as ``shown_pairs``; None where that cannot be."""
        here = self.keys.device.type == "cpu" and self.compile_kernels
        if not here or not self.dtype == weights.dtype == torch.float32:
            return None
        return shown_pairs(*self._origin(stream, step), scale, shape, offset, weights)

    def _pairs(
        self,
        stream: str,
        shape: Sequence[int],
        step: int,
        scale: Tensor,
        offset: Tensor | None = None,
    ) -> Tensor:
        origin = self._origin(stream, step)
        return normal_pairs(*origin, scale.float(), shape, offset, self.compile_kernels)

    def sign_with_chance(
        self, stream: str, chance: Tensor, shape: Sequence[int], step: int
    ) -> Tensor:
        """0, or with probability ``chance`` (broadcasts to (run, *shape)) -1 or 1, equally."""
        word = self._bits(stream, step, shape)
        present = _midpoints(word) < chance
        return (present * (1 - 2 * (word & 1))).to(self.dtype)

    def sign(self, stream: str, shape: Sequence[int], step: int = 0) -> Tensor:
        """-1 or 1 with equal probability."""
        return torch.where(self._bits(stream, step, shape) < 0, -1.0, 1.0).to(self.dtype)

    def integers(self, stream: str, high: int, shape: Sequence[int], step: int = 0) -> Tensor:
        """Uniform on 0 .. high-1 (int64); the bias of the reduction is under high / 2^32."""
        if not 1 <= high <= 2**31:  # more would overflow the product below
            raise bad_value("high", high, "must be in 1..2^31")
        word = (self._bits(stream, step, shape) >> 32) & 0xFFFFFFFF
        return (word * high) >> 32
