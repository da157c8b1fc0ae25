"""Linear layers with two of every four weights left, as PyTorch's semi-structured tensors: the one
sparse form of single weights that GPUs multiply faster than a dense one."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from rarefy.core.errors import UsageError

SMALLEST = {torch.float16: (32, 64), torch.bfloat16: (32, 64), torch.int8: (32, 128)}
"""Rows and columns must be multiples of these."""


def is_two_four(weight: Tensor) -> bool:
    """Whether of every four neighbouring inputs at most two have a weight that is not zero: of each
    row of a linear layer, of each filter of a convolution at each place of its kernel."""
    if weight.dim() < 2 or weight.shape[1] % 4:
        return False
    fours = (weight != 0).flatten(2) if weight.dim() > 2 else (weight != 0)[:, :, None]
    return bool((fours.unflatten(1, (-1, 4)).sum(dim=2) <= 2).all())


def to_two_four(model: nn.Module) -> tuple[nn.Module, dict[str, str]]:
    """A copy for inference whose linear layers are semi-structured where their zeros, type and
    shape allow it.

    Arguments:
        model: pruned 2:4, on a CUDA GPU.

    Returns:
        The copy; and of the layers that stay dense, by name, why.

    Example:
        >>> rarefy.pruning.to_two_four(torch.nn.Linear(64, 32))
        Traceback (most recent call last):
        ...
        rarefy.core.errors.UsageError: model: 2:4 kernels need a model on a CUDA GPU ...
    """
    parameter = next(model.parameters(), None)
    if parameter is None or not parameter.is_cuda:
        raise UsageError("model: 2:4 kernels need a model on a CUDA GPU (capability 8.0 on)")
    made, left = copy.deepcopy(model).requires_grad_(False), {}
    for name, module in made.named_modules():
        if not isinstance(module, nn.Linear):
            continue
        why = why_not_two_four(module.weight)
        if why:
            left[name] = why
            continue
        sparse = torch.sparse.to_sparse_semi_structured(module.weight.detach())
        module.weight = nn.Parameter(sparse, requires_grad=False)
    return made, left


def why_not_two_four(weight: Tensor) -> str:
    """Why a weight cannot be semi-structured; nothing if it can."""
    if not is_two_four(weight):
        return "more than two of some four weights are not zero"
    if weight.dtype not in SMALLEST:
        return f"of type {weight.dtype}: must be float16, bfloat16 or int8"
    rows, columns = SMALLEST[weight.dtype]
    if weight.shape[0] % rows or weight.shape[1] % columns:
        return f"{tuple(weight.shape)} is not a multiple of ({rows}, {columns})"
    return ""
