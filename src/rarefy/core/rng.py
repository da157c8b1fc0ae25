"""Counter-based random numbers: a draw depends on (cell, stream, step, index) and nothing else.

Each (cell, stream, step) owns a 64-bit start and an odd 64-bit stride; number ``index`` is the
SplitMix64 finaliser (Steele, Lea, Flood 2014) of ``start + index * stride``. There is no state, so
a cell draws the same numbers alone, in any batch, in any order and on any thread.

Normals come from Box and Muller's transform written with additions, multiplications, divisions
and ``rsqrt`` only. Those are rounded the same way by every CPU path, so eager and compiled code
give the same bits (``torch.log``, ``cos`` and ``sqrt`` do not: vendor libraries differ in the last
place). Draws have float32 resolution in every dtype: a float64 run sees the same numbers.
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

from rarefy.core.compilation import compiled
from rarefy.core.errors import bad_value

_MASK = (1 << 64) - 1
_BLOCK = 64
_GOLDEN = 0x9E3779B97F4A7C15
_MULTIPLIER_1 = 0xBF58476D1CE4E5B9
_MULTIPLIER_2 = 0x94D049BB133111EB


def _signed(value: int) -> int:
    """The two's-complement int64 with the same 64 bits; torch has no full uint64 arithmetic."""
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def _mix(z: Tensor) -> Tensor:
    """SplitMix64's finaliser on int64; each shift is masked because ``>>`` keeps the sign."""
    z = (z ^ ((z >> 30) & ((1 << 34) - 1))) * _signed(_MULTIPLIER_1)
    z = (z ^ ((z >> 27) & ((1 << 37) - 1))) * _signed(_MULTIPLIER_2)
    return z ^ ((z >> 31) & ((1 << 33) - 1))


def key(*parts: object) -> int:
    """A stable 64-bit key of anything with a stable ``repr``: names, numbers, tuples of them."""
    text = "\x1f".join(_spell(part) for part in parts)
    return _signed(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big"))


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


def _words(start: Tensor, stride: Tensor, count: int) -> Tensor:
    """``count`` 64-bit words a run, shape (run, count)."""
    index = torch.arange(count, dtype=torch.int64, device=start.device)
    return _mix(index * stride[:, None] + start[:, None])


def _midpoints(word: Tensor) -> Tensor:
    """The upper 24 bits as the middle of one of 2^24 cells of (0, 1), rounded to float32."""
    middle = (((word >> 40) & 0xFFFFFF).to(torch.float32) + 0.5) * 2.0**-24
    return torch.clamp(middle, max=1 - 2.0**-24)  # the last would be rounded up to 1


def _plane_points(
    start: Tensor, stride: Tensor, scale: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """``count`` points of the plane, normal with std ``scale`` (run,): two arrays (run, count)."""
    word = _words(start, stride, count)
    # Radius: -2 log(u) with u = (upper 32 bits + 1/2) / 2^32. The exponent and mantissa of the
    # float are taken apart so that the mantissa lies in [sqrt(1/2), sqrt(2)); then
    # log(mantissa) = 2 atanh((mantissa-1)/(mantissa+1)) by its series (error under 1e-7).
    bits = (((word >> 32) & 0xFFFFFFFF).to(torch.float32) + 0.5).view(torch.int32) - 0x3F3504F3
    exponent = (bits >> 23).to(torch.float32)
    mantissa = ((bits & 0x7FFFFF) + 0x3F3504F3).view(torch.float32)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    series = 2.0 + square * (2 / 3 + square * (2 / 5 + square * (2 / 7 + square * (2 / 9))))
    minus_log = 32 * math.log(2) - (exponent * math.log(2) + ratio * series)
    twice = torch.clamp(2.0 * minus_log, min=1e-30)
    radius = twice * torch.rsqrt(twice) * scale[:, None]
    # Angle: uniform in the quarter turn around 0, then a random swap and two random signs make it
    # uniform on the circle; in a quarter turn short series of sin and cos are exact to float32.
    step = (math.pi / 2) * 2.0**-24
    angle = ((word >> 8) & 0xFFFFFF).to(torch.float32) * step - (math.pi / 4 - step / 2)
    a2 = angle * angle
    sine = angle * (1.0 + a2 * (-1 / 6 + a2 * (1 / 120 + a2 * (-1 / 5040 + a2 * (1 / 362880)))))
    cosine = 1.0 + a2 * (-0.5 + a2 * (1 / 24 + a2 * (-1 / 720 + a2 * (1 / 40320))))
    flags = word.to(torch.int32)
    swap = (flags & 1) == 1
    first = torch.where(swap, sine, cosine) * radius
    second = torch.where(swap, cosine, sine) * radius
    first = torch.where((flags & 2) == 2, -first, first)
    second = torch.where((flags & 4) == 4, -second, second)
    return first, second


def _normal_pairs(start: Tensor, stride: Tensor, scale: Tensor, count: int) -> Tensor:
    """Both coordinates of the points: (run, 2, count)."""
    return torch.stack(_plane_points(start, stride, scale, count), dim=1)


def _shifted_pairs(
    start: Tensor, stride: Tensor, scale: Tensor, offset: Tensor, shape: Sequence[int]
) -> Tensor:
    """Normals (run, 2, *shape) plus ``offset``: compiled, one pass over memory does both."""
    first, second = _plane_points(start, stride, scale, math.prod(shape))
    # added before stacking: afterwards the compiler would compute both coordinates everywhere
    first = first.reshape(-1, *shape) + offset[:, 0]
    second = second.reshape(-1, *shape) + offset[:, -1]
    return torch.stack([first, second], dim=1)


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
        other.keys = _mix(self.keys + _stream_key(f"spawn {purpose}"))
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
            salt = (steps * _signed(_GOLDEN) + name).to(self.keys.device)
            start = _mix(_mix(self.keys ^ salt[:, None]) + name)
            stride = _mix(start + _signed(_GOLDEN)) | 1
            self._origins = {k: v for k, v in self._origins.items() if k[0] != stream}
            self._origins[stream, block] = start, stride
        start, stride = self._origins[stream, block]
        return start[step % _BLOCK], stride[step % _BLOCK]

    def _bits(self, stream: str, step: int, shape: Sequence[int]) -> Tensor:
        start, stride = self._origin(stream, step)
        return _words(start, stride, math.prod(shape)).reshape(len(self), *shape)

    def uniform(self, stream: str, shape: Sequence[int], step: int = 0) -> Tensor:
        """Uniform on (0, 1): 24-bit midpoints rounded to float32, never 0 or 1."""
        return _midpoints(self._bits(stream, step, shape)).to(self.dtype)

    def normal(
        self, stream: str, shape: Sequence[int], step: int = 0, scale: Tensor | None = None
    ) -> Tensor:
        """Normal with mean 0 and std ``scale``, one value a run (1 if not given)."""
        count = math.prod(shape)
        start, stride = self._origin(stream, step)
        std = torch.ones(len(self), device=self.keys.device) if scale is None else scale.float()
        draw = compiled(_normal_pairs) if self.compile_kernels else _normal_pairs
        pairs = draw(start, stride, std, (count + 1) // 2).reshape(len(self), -1)
        return pairs[:, :count].reshape(len(self), *shape).to(self.dtype)

    def normal_views(
        self, stream: str, shape: Sequence[int], step: int, scale: Tensor, offset: Tensor
    ) -> Tensor:
        """Two views, (run, 2, *shape): normal noise of std ``scale`` (run,), as ``normal`` gives it
        for the shape (2, *shape), plus ``offset``, (run, 1 or 2, ...), broadcast to them."""
        start, stride = self._origin(stream, step)
        std = scale.float()
        if self.dtype == torch.float32:
            draw = compiled(_shifted_pairs) if self.compile_kernels else _shifted_pairs
            return draw(start, stride, std, offset, shape)
        pairs = _normal_pairs(start, stride, std, math.prod(shape)).to(self.dtype)
        return pairs.reshape(len(self), 2, *shape) + offset

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
