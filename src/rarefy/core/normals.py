"""Pairs of normal random numbers from 64-bit words, three times with the same bits on a CPU: by
torch for a GPU, by numpy for a CPU, by C++ (``normals.cpp``) for a CPU with a compiler.

Box and Muller's transform written with additions, multiplications, divisions and square roots only.
Those are rounded the same way by every CPU path (logarithm, cosine and sine are not: vendor
libraries differ in the last place).

numpy for a CPU: what torch does to int64 or chooses by ``where`` takes three to twenty times as
long on processors without AVX-512.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rarefy.core.compilation import built, compiled
from rarefy.core.settings import compiler_present
from rarefy.core.threads import in_parts

MULTIPLIER_1 = 0xBF58476D1CE4E5B9
MULTIPLIER_2 = 0x94D049BB133111EB
_MASK = (1 << 64) - 1
_CHUNK = 1 << 18
"""Words at once in numpy. Fewer would stay in a nearer cache, but threads wait for each other at
Python's lock once per operation: with an eighth of this, two threads took twice as long."""
_WORTH_BUILDING = 1 << 20  # numbers at a time
_WORTH_A_THREAD = 1 << 18
"""Words."""

# Radius: -2 log(u) with u = (upper 32 bits + 1/2) / 2^32. The exponent and mantissa of the
# float are taken apart so that the mantissa lies in [sqrt(1/2), sqrt(2)); then
# log(mantissa) = 2 atanh((mantissa-1)/(mantissa+1)) by its series (error under 1e-7).
_ROOT = 0x3F3504F3
_MANTISSA = 0x7FFFFF
_LOG_2 = math.log(2)
_LOGARITHM = (2.0, 2 / 3, 2 / 5, 2 / 7, 2 / 9)
_LEAST = 1e-30
# Angle: uniform in the quarter turn around 0, then a random swap and two random signs make it
# uniform on the circle; in a quarter turn short series of sin and cos are exact to float32.
_STEP = (math.pi / 2) * 2.0**-24
_FIRST_ANGLE = math.pi / 4 - _STEP / 2
_SINE = (1.0, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880)
_COSINE = (1.0, -0.5, 1 / 24, -1 / 720, 1 / 40320)


def signed(value: int) -> int:
    """The two's-complement int64 with the same 64 bits; torch has no full uint64 arithmetic."""
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def mix(z: Tensor) -> Tensor:
    """SplitMix64's finaliser on int64; each shift is masked because ``>>`` keeps the sign."""
    z = (z ^ ((z >> 30) & ((1 << 34) - 1))) * signed(MULTIPLIER_1)
    z = (z ^ ((z >> 27) & ((1 << 37) - 1))) * signed(MULTIPLIER_2)
    return z ^ ((z >> 31) & ((1 << 33) - 1))


def words(start: Tensor, stride: Tensor, count: int) -> Tensor:
    """``count`` 64-bit words a run, shape (run, count)."""
    index = torch.arange(count, dtype=torch.int64, device=start.device)
    return mix(index * stride[:, None] + start[:, None])


def normal_pairs(
    start: Tensor,
    stride: Tensor,
    scale: Tensor,
    shape: Sequence[int],
    offset: Tensor | None,
    compile_kernels: bool,
) -> Tensor:
    """Points of the plane, normal with std ``scale`` (run,), plus ``offset``, (run, 1 or 2, ...),
    broadcast to them: (run, 2, *shape), float32. start, stride: (run,), of the words."""
    if start.device.type != "cpu":
        draw = compiled(by_torch) if compile_kernels else by_torch
        return draw(start, stride, scale, shape, offset)
    out = torch.empty(len(start), 2, *shape)
    if offset is not None:
        offset = offset.float().expand_as(out)
    # (the same bits; built in half a second, which many numbers pay for whatever else is compiled)
    build = compile_kernels or (out.numel() >= _WORTH_BUILDING and compiler_present())
    by_cpp = built(Path(__file__).with_name("normals.cpp")) if build else None

    def draw_some(some: slice) -> None:
        shift = None if offset is None else offset[some]
        given = start[some], stride[some], scale[some], shift, out[some]
        _by_numpy(*given) if by_cpp is None else _by_cpp(by_cpp, *given)

    in_parts(draw_some, len(start), out.numel() // 2 // _WORTH_A_THREAD)
    return out


def by_torch(
    start: Tensor, stride: Tensor, scale: Tensor, shape: Sequence[int], offset: Tensor | None
) -> Tensor:
    """Compiled, one pass over memory does it all."""
    word = words(start, stride, math.prod(shape))
    bits = (((word >> 32) & 0xFFFFFFFF).to(torch.float32) + 0.5).view(torch.int32) - _ROOT
    exponent = (bits >> 23).to(torch.float32)
    mantissa = ((bits & _MANTISSA) + _ROOT).view(torch.float32)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    series = _polynomial(ratio * ratio, _LOGARITHM)
    minus_log = 32 * _LOG_2 - (exponent * _LOG_2 + ratio * series)
    twice = torch.clamp(2.0 * minus_log, min=_LEAST)
    radius = twice * torch.rsqrt(twice) * scale[:, None]
    angle = ((word >> 8) & 0xFFFFFF).to(torch.float32) * _STEP - _FIRST_ANGLE
    square = angle * angle
    sine, cosine = angle * _polynomial(square, _SINE), _polynomial(square, _COSINE)
    flags = word.to(torch.int32)
    swap = (flags & 1) == 1
    first = torch.where(swap, sine, cosine) * radius
    second = torch.where(swap, cosine, sine) * radius
    first = torch.where((flags & 2) == 2, -first, first).reshape(-1, *shape)
    second = torch.where((flags & 4) == 4, -second, second).reshape(-1, *shape)
    if offset is not None:
        # added before stacking: afterwards the compiler would compute both coordinates everywhere
        first, second = first + offset[:, 0], second + offset[:, -1]
    return torch.stack([first, second], dim=1)


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    value = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        value = x * (value + coefficient)
    return value + coefficients[0]


def _by_numpy(
    start: Tensor, stride: Tensor, scale: Tensor, offset: Tensor | None, out: Tensor
) -> None:
    found = out.flatten(2).numpy()
    count = found.shape[2]
    runs = max(_CHUNK // max(count, 1), 1)
    first, step = (given.numpy().view(np.uint64)[:, None] for given in (start, stride))
    for some in (slice(at, at + runs) for at in range(0, len(found), runs)):
        for at in range(0, count, _CHUNK):
            index = np.arange(at, min(at + _CHUNK, count), dtype=np.uint64)
            word = index * step[some]
            word += first[some]
            _plane_points(_mixed(word), scale[some, None].numpy(), found[some, :, at : at + _CHUNK])
        if offset is not None:
            out[some] += offset[some]


def _mixed(z: np.ndarray) -> np.ndarray:
    """``mix`` in place."""
    shifted = np.empty_like(z)
    for bits, multiplier in ((30, MULTIPLIER_1), (27, MULTIPLIER_2)):
        z ^= np.right_shift(z, np.uint64(bits), out=shifted)
        z *= np.uint64(multiplier)
    z ^= np.right_shift(z, np.uint64(31), out=shifted)
    return z


def _plane_points(word: np.ndarray, scale: np.ndarray, out: np.ndarray) -> None:
    """Normals (run, 2, count) of so many words, (run, count)."""
    upper, lower = (1, 0) if sys.byteorder == "little" else (0, 1)
    halves = word.view(np.uint32).reshape(*word.shape, 2)
    value = halves[..., upper].astype(np.float32)
    value += 0.5
    bits = value.view(np.int32)
    bits -= _ROOT
    radius = (bits >> 23).astype(np.float32)
    radius *= _LOG_2
    bits &= _MANTISSA
    bits += _ROOT
    ratio = value + 1.0
    value -= 1.0
    np.divide(value, ratio, out=ratio)
    radius += np.multiply(_horner(np.multiply(ratio, ratio, out=value), _LOGARITHM), ratio)
    np.subtract(32 * _LOG_2, radius, out=radius)
    radius *= 2.0
    np.maximum(radius, _LEAST, out=radius)
    np.divide(1.0, np.sqrt(radius, out=value), out=value)
    radius *= value
    radius *= scale
    flags = halves[..., lower].astype(np.uint32)
    angle = (flags >> 8).view(np.int32).astype(np.float32)
    angle *= _STEP
    angle -= _FIRST_ANGLE
    square = np.multiply(angle, angle, out=value)
    sine, cosine = _horner(square, _SINE), _horner(square, _COSINE)
    sine *= angle
    # a choice between two numbers, and a sign, are bits: many times faster than np.where
    s, c = sine.view(np.uint32), cosine.view(np.uint32)
    swap = s ^ c
    swap &= np.negative(flags & 1)
    for number, bit, place in ((c, 2, 30), (s, 4, 29)):
        number ^= swap
        number.view(np.float32)[:] *= radius
        number ^= (flags & bit) << place
    out[:, 0], out[:, 1] = cosine, sine


def _horner(x: np.ndarray, coefficients: Sequence[float]) -> np.ndarray:
    """``_polynomial``, without a new array for every operation."""
    value = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        value += coefficient
        value *= x
    value += coefficients[0]
    return value


def shown_pairs(
    start: Tensor,
    stride: Tensor,
    scale: Tensor,
    shape: Sequence[int],
    offset: Tensor,
    weights: Tensor,
) -> tuple[Tensor, Tensor, Tensor] | None:
    """What neurons, (run, neuron, width), see of ``normal_pairs`` of shape (sample, token, width):
    inner products with them, (run, 2, sample, token, neuron), those of a sample's tokens with each
    other, (run, 2, sample, token, token), and of the first view the numbers themselves. The second
    view never leaves the processor's cache. None where there is no compiler."""
    library = built(Path(__file__).with_name("normals.cpp"))
    if library is None:
        return None
    runs, (samples, tokens, width) = len(start), shape
    neurons = weights.shape[1]
    weights = functional.pad(weights, (0, 0, 0, -neurons % 8)).contiguous()
    offset = offset.float().expand(runs, 2, *shape)
    offset = offset if offset.stride(-1) == 1 else offset.contiguous()
    seen = torch.empty(runs, 2, samples, tokens, weights.shape[1])
    products = torch.empty(runs, 2, samples, tokens, tokens)
    first = torch.empty(runs, *shape)
    start, stride, scale = start.contiguous(), stride.contiguous(), scale.contiguous()

    def show_some(some: slice) -> None:
        parts = start[some], stride[some], scale[some], offset[some]
        sizes = len(parts[0]), samples, tokens, width, weights.shape[1]
        library.rarefy_shown_normals(
            *map(ctypes.c_int64, sizes),
            *(ctypes.c_void_p(part.data_ptr()) for part in parts),
            (ctypes.c_int64 * 4)(*offset.stride()[:4]),
            *(ctypes.c_void_p(t[some].data_ptr()) for t in (weights, seen, products, first)),
        )

    in_parts(show_some, runs, first.numel() // _WORTH_A_THREAD)
    return seen[..., :neurons], products, first


def _by_cpp(
    library: ctypes.CDLL,
    start: Tensor,
    stride: Tensor,
    scale: Tensor,
    offset: Tensor | None,
    out: Tensor,
) -> None:
    outer, width = (out.shape[2], out.shape[-1]) if out.dim() > 3 else (1, out.shape[2])
    shape = len(out), outer, math.prod(out.shape[3:-1]), width
    if offset is not None:
        offset = offset.reshape(len(out), 2, *shape[1:])  # a copy only if there are more axes
        offset = offset if offset.stride(-1) == 1 else offset.contiguous()
    strides = (ctypes.c_int64 * 4)(*([0] * 4 if offset is None else offset.stride()[:4]))
    start, stride, scale = start.contiguous(), stride.contiguous(), scale.contiguous()
    library.rarefy_normals(
        *map(ctypes.c_int64, shape),
        *(ctypes.c_void_p(tensor.data_ptr()) for tensor in (start, stride, scale)),
        None if offset is None else ctypes.c_void_p(offset.data_ptr()),
        strides,
        ctypes.c_void_p(out.data_ptr()),
    )
