"""Loss of the patch network and the coefficient of each patch in its gradient, from responses: by
torch, compiled for a GPU; by C++ (``patch_coefficients.cpp``) for a CPU with a compiler."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rarefy.core.compilation import built, compiled
from rarefy.core.threads import in_parts
from rarefy.nets.patch_cnn import class_scores, pooled
from rarefy.train.optimisers import Rate

_WORTH_A_THREAD = 1 << 26
"""Multiply-adds; of a response where there is no product, as many as take its time."""


def patch_loss(seen: Tensor, scales: Tensor, one_hot: Tensor, output_scale: float) -> Tensor:
    """Cross-entropy, (run,), from responses to all patches, (run, classes, m, patch)."""
    pool = pooled(seen) * scales[:, None, :]
    log_p = torch.log_softmax(output_scale * _scores(pool, one_hot), dim=1)
    return -_at_label(log_p, one_hot).mean(dim=1)


def patch_coefficients(
    seen: Tensor,
    scales: Tensor,
    one_hot: Tensor,
    factor: Rate,
    output_scale: float,
    open_at_zero: bool = True,
    compile_kernels: bool = False,
    sums: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Loss, (run,), and the coefficient of each patch in the gradient of each filter times the
    run's factor, (run, classes, m, patch): l'_ki [<w, xi_i> >= 0] for a noise patch, the sum of
    l'_ki over a class's samples times [<w, u> >= 0] for its feature; l'_ki = softmax_k - [y_i = k]
    (002 Sec. 3).

    scales: (run, patch); one_hot: (run or 1, n, classes). Patches beyond n + classes are empty.
    From ``sums``, if given, coefficients are subtracted, as many as it has.
    """
    factors = _per_each(factor, seen)
    if compile_kernels and seen.device.type == "cpu" and seen.dtype == torch.float32:
        if library := built(Path(__file__).with_suffix(".cpp")):
            given = seen, scales, one_hot, factors, output_scale, open_at_zero, sums
            return _by_cpp(library, *given)
    function = compiled(_by_torch) if compile_kernels and seen.is_cuda else _by_torch
    loss, parts = function(seen, scales, one_hot, factors, output_scale, open_at_zero)
    if sums is not None:
        sums -= parts[..., : sums.shape[-1]]
    return loss, parts


def _per_each(factor: Rate, like: Tensor) -> Tensor:
    """One factor per run, (run,)."""
    if isinstance(factor, Tensor):
        return factor.to(like).expand(len(like))
    return like.new_full((len(like),), factor)


def _by_torch(
    seen: Tensor,
    scales: Tensor,
    one_hot: Tensor,
    factors: Tensor,
    output_scale: float,
    open_at_zero: bool,
) -> tuple[Tensor, Tensor]:
    samples, classes = one_hot.shape[1:]
    pool = pooled(seen) * scales[:, None, :]
    log_p = torch.log_softmax(output_scale * _scores(pool, one_hot), dim=1)
    loss = -_at_label(log_p, one_hot).mean(dim=1)
    residual = (torch.exp(log_p) - one_hot.transpose(1, 2)) * (output_scale / samples)
    shared = one_hot[0] if len(one_hot) == 1 else one_hot  # not copied for every run
    weight = torch.cat([residual, residual @ shared], dim=2)
    if seen.shape[3] > samples + classes:
        weight = functional.pad(weight, (0, seen.shape[3] - samples - classes))
    weight = weight * (scales * factors[:, None])[:, None, :]
    is_open = seen >= 0 if open_at_zero else seen > 0
    return loss, weight[:, :, None, :] * is_open  # not ``where``: three times as slow on a CPU


def _scores(pool: Tensor, one_hot: Tensor) -> Tensor:
    """Class scores of the samples from pooled responses to all patches: (run, classes, n)."""
    samples, classes = one_hot.shape[1:]
    return class_scores(pool[..., :samples], pool[..., samples : samples + classes], one_hot)


def _at_label(values: Tensor, one_hot: Tensor) -> Tensor:
    """Each sample's entry at its own class: (run, n) from (run, classes, n)."""
    return (values * one_hot.transpose(1, 2)).sum(dim=1)


def gram_step(
    seen: Tensor,
    sums: Tensor,
    gram: Tensor,
    inner: int,
    scales: Tensor,
    one_hot: Tensor,
    factor: Rate,
    output_scale: float,
) -> Tensor | None:
    """Descent by responses alone, by C++: the coefficients are subtracted from ``sums`` and, times
    ``gram``, (run or 1, patch, patch), from the responses themselves; patches beyond ``inner`` are
    orthonormal, and to all others. The loss before that; None where there is no compiler, or the
    numbers are of another kind: nothing is done then."""
    here = seen.device.type == "cpu" and seen.dtype == torch.float32
    library = built(Path(__file__).with_suffix(".cpp")) if here else None
    if library is None or not (_is_rows(seen) and _is_rows(sums)):
        return None
    one_hot, gram = one_hot.contiguous(), gram.contiguous()
    (samples, classes), (runs, _, m, patches) = one_hot.shape[1:], seen.shape
    loss, factors = seen.new_empty(runs), _per_each(factor, seen).contiguous()
    sizes = classes, m, samples, patches, seen.stride(2), _apart(one_hot), sums.stride(2)
    numbers = *map(ctypes.c_int64, (*sizes, inner, _apart(gram))), ctypes.c_float(output_scale)
    tensors = scales.contiguous(), one_hot, factors, gram, seen, sums, loss
    _call(library.rarefy_gram_step, numbers, tensors, inner * seen.numel() // _WORTH_A_THREAD)
    return loss


def _by_cpp(
    library: ctypes.CDLL,
    seen: Tensor,
    scales: Tensor,
    one_hot: Tensor,
    factors: Tensor,
    output_scale: float,
    open_at_zero: bool,
    sums: Tensor | None,
) -> tuple[Tensor, Tensor]:
    seen, one_hot = seen if _is_rows(seen) else seen.contiguous(), one_hot.contiguous()
    (samples, classes), (runs, _, m, patches) = one_hot.shape[1:], seen.shape
    row = seen.stride(2)
    loss, parts = seen.new_empty(runs), seen.new_empty(runs, classes, m, row)[..., :patches]
    fitting = sums if sums is not None and _is_rows(sums) else None
    summed = (0, 0) if fitting is None else (fitting.shape[3], fitting.stride(2))
    sizes = classes, m, samples, patches, row, _apart(one_hot), *summed
    how = ctypes.c_int32(open_at_zero), ctypes.c_float(output_scale)
    tensors = scales.contiguous(), one_hot, factors.contiguous(), seen, parts, loss
    _call(
        library.rarefy_patch_coefficients,
        (*map(ctypes.c_int64, sizes), *how),
        (*tensors, fitting),
        64 * seen.numel() // _WORTH_A_THREAD,
    )
    if sums is not None and fitting is None:
        sums -= parts[..., : sums.shape[-1]]
    return loss, parts


def _call(
    function: Callable[..., None],
    numbers: Sequence[Any],
    tensors: Sequence[Tensor | None],
    most: int,
) -> None:
    """For all runs of the first tensor, by ``most`` threads at most; of a tensor with one entry for
    all runs the start is given."""
    first = tensors[0]
    assert first is not None
    runs = len(first)

    def call(some: slice) -> None:
        given = (each if each is None or len(each) < runs else each[some] for each in tensors)
        places = (None if each is None else each.data_ptr() for each in given)
        count = ctypes.c_int64(some.stop - some.start)
        function(count, *numbers, *map(ctypes.c_void_p, places))

    in_parts(call, runs, most)


def _apart(values: Tensor) -> int:
    """Numbers between the runs of (run or 1, ...): none where all share one."""
    return 0 if len(values) == 1 else values[0].numel()


def _is_rows(values: Tensor) -> bool:
    """Whether the rows of (run, classes, m, patch) follow each other at one distance."""
    _, classes, m, patches = values.shape
    row = values.stride(2)
    return values.stride() == (classes * m * row, m * row, row, 1) and row >= patches
