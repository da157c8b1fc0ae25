"""What is done to every pruned weight around an update, for all layers together.

On a GPU a model of many layers spends the time of small steps on launching kernels, not on
computing: there the usual case is one launch for all layers (``torch._foreach_*``). The results are
those of ``PrunedParameter``'s own methods, which do the rest, and everything on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rarefy.pruning.models.pruned_parameter import PrunedParameter
from rarefy.pruning.models.recording import Recorded

_WHOLE = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Whole numbers by their bytes."""


@torch.no_grad()
def restore_dense(every: Sequence[PrunedParameter], recorded: Recorded) -> list[bool]:
    """``PrunedParameter.restore_dense`` of all: whether each was written by hand."""
    group = [each for each in every if is_batched(each) and not each.touched()]
    if group:
        seen, waiting = _parameters(group), _waiting(group)
        dense = [each for each in group if each.update == "dense"]

        def restore() -> None:
            # written through .data? what is not zero there counts (1 where it is not, 0 elsewhere)
            there = torch._foreach_sign(seen)
            torch._foreach_abs_(there)
            torch._foreach_lerp_(waiting, seen, there)
            if dense:
                torch._foreach_copy_(_parameters(dense), _waiting(dense))

        recorded([*seen, *waiting], restore)
        for each in group:
            each.enter_update()
    done = {id(each) for each in group}
    return [id(each) not in done and each.restore_dense() for each in every]


@torch.no_grad()
def collect(every: Sequence[PrunedParameter], recorded: Recorded) -> None:
    """``PrunedParameter.collect`` of all."""
    dense = [each for each in every if is_batched(each) and each.update == "dense"]
    if dense:
        waiting, seen = _waiting(dense), _parameters(dense)
        recorded([*waiting, *seen], lambda: torch._foreach_copy_(waiting, seen))
        for each in dense:
            each.collected = True
    done = {id(each) for each in dense}
    for each in every:
        if id(each) not in done:
            each.collect()


@torch.no_grad()
def apply_mask(every: Sequence[PrunedParameter], recorded: Recorded) -> None:
    """``PrunedParameter.apply_mask`` of all."""
    group = [each for each in every if is_batched(each)]
    if group:
        for each in group:
            each.leave_update()
        waiting, bits = _waiting(group), [_bits(each) for each in group]

        def apply() -> None:
            parameters = [each.parameter.data for each in group]
            torch._foreach_copy_(parameters, waiting)
            # the bits of a number times 1 or 0: NaN times zero would be NaN
            numbers = [each.view(like.dtype) for each, like in zip(parameters, bits, strict=True)]
            torch._foreach_mul_(numbers, bits)

        recorded([*_parameters(group), *waiting, *bits], apply)
        for each in group:
            each.mark_read()
    done = {id(each) for each in group}
    for each in every:
        if id(each) not in done:
            each.apply_mask()


@torch.no_grad()
def set_mask(every: Sequence[PrunedParameter], masks: Sequence[Tensor]) -> None:
    """``PrunedParameter.set_mask`` of all."""
    group = [place for place, each in enumerate(every) if is_batched(each)]
    if group:
        chosen = [masks[place] for place in group]
        torch._foreach_copy_([every[place].kept for place in group], chosen)
        torch._foreach_copy_([_bits(every[place]) for place in group], chosen)
    for place, (each, mask) in enumerate(zip(every, masks, strict=True)):
        if place not in group:
            each.set_mask(mask)


def chosen_tensors(every: Sequence[PrunedParameter]) -> list[Tensor]:
    """What a choice of masks reads and writes; none if a layer is not done with the others."""
    if not all(is_batched(each) for each in every):
        return []
    return [*_waiting(every), *(each.kept for each in every), *map(_bits, every)]


def is_batched(each: PrunedParameter) -> bool:
    """Whether a weight is one of those that are done together."""
    each.match_device()
    return each.parameter.is_cuda and each.zeroes and each.waiting is not None


def _bits(each: PrunedParameter) -> Tensor:
    if each.bits is None:
        each.bits = each.kept.to(_WHOLE[each.kept.element_size()])
    return each.bits


def _waiting(group: Sequence[PrunedParameter]) -> list[Tensor]:
    return [each.waiting for each in group if each.waiting is not None]


def _parameters(group: Sequence[PrunedParameter]) -> list[Tensor]:
    return [each.parameter for each in group]
