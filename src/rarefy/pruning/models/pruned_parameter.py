"""One pruned weight: what acts is in the model, what waits is here.

The model's own parameter always holds the weights that act: it is zero where they are left out.
Forward and backward pass, tied layers, attention's fast path, autocast, torch.compile, copies and
state dicts then need to know nothing. The dense weights wait here, and go back into the parameter
for the moment of the optimiser's update:

    dense     before an update all weights go back, afterwards those left out wait again
    masked    what is left out waits and is not touched; its gradient is zero
    project   nothing waits: what is left out is zero from now on, and is trained on

(The backward pass at the weights that act gives the gradient of *all* entries, also of the zeros:
that is the update of 000 Algorithm 1.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from rarefy.pruning.filters import Filters
from rarefy.pruning.models.prunable import Prunable


class PrunedParameter:
    """``kept``: 1 where the weight acts and 0 elsewhere, in the parameter's type, because on a CPU
    a product is thirty times faster than a choice by truth values; ``waiting``: the dense weight,
    None where nothing waits. ``zeroes``: whether the parameter is zero where it is left out (not so
    if masks act elsewhere: on activations, or in a second branch)."""

    def __init__(
        self, parameter: nn.Parameter, filters: Filters, update: str, zeroes: bool
    ) -> None:
        self.parameter, self.filters, self.update = parameter, filters, update
        self.zeroes = zeroes and update != "project"
        # in the memory layout of the parameter (channels last, say): products are then fast
        self.kept = torch.ones_like(parameter, requires_grad=False)
        self.bits: Tensor | None = None
        """The same in whole numbers, where ``together`` has asked for them."""
        waits = self.zeroes or update == "masked"
        self.waiting = parameter.detach().clone() if waits else None
        self.whole_gradient = False
        """For a moment gradients of what is left out are wanted too: a score needs them."""
        self._whole: Tensor | None = None
        self._updating, self.collected = False, False
        """Whether the parameter is in the hands of the optimiser, and what it did is remembered."""
        self.projected = False
        """Whether ``project`` has set to zero what is left out, and no update came since."""
        self._hook: Any = None
        self.hook()
        self._version = parameter._version

    def hook(self) -> None:
        """Let gradients of what is left out be zero, where the rule says so."""
        # (a frozen parameter has no gradient; should it get one later, ``restore_dense`` masks it)
        if self.update == "masked" and self.parameter.requires_grad:
            self._hook = self.parameter.register_hook(self._gradient)

    def __getstate__(self) -> dict[str, Any]:
        """For copies, which must ``hook`` their own parameter."""
        return {**vars(self), "_hook": None}

    @property
    def mask(self) -> Tensor:
        """True where the weight acts."""
        return self.kept != 0

    def _gradient(self, gradient: Tensor) -> Tensor:
        return gradient if self.whole_gradient else gradient * self.kept.to(gradient)

    @property
    def gradient(self) -> Tensor | None:
        """For scores: also of what is left out, where ``whole_gradient`` asked for it."""
        return self.parameter.grad if self._whole is None else self._whole

    @torch.no_grad()
    def restore_dense(self) -> bool:
        """Before an update: the dense weights go back. Values that somebody else wrote meanwhile
        are taken over. Gives whether there are any."""
        written = self.adopt_user_write()
        if self.update == "dense" and self.zeroes and self.waiting is not None:
            self.parameter.copy_(self.waiting)
        self.enter_update()
        return written

    def enter_update(self) -> None:
        """The parameter is in the optimiser's hands from now on, and so is its gradient."""
        if self.update == "masked" and self.parameter.grad is not None:
            self._whole = self.parameter.grad.clone() if self.whole_gradient else None
            self.parameter.grad.mul_(self.kept)
        self._updating, self.collected = True, False

    @torch.no_grad()
    def collect(self) -> None:
        """After an update: remember the dense weights."""
        if self.waiting is not None:
            if self.update == "masked":
                torch.lerp(self.waiting, self.parameter, self.kept, out=self.waiting)
            else:
                self.waiting.copy_(self.parameter)
        self.collected = True

    @torch.no_grad()
    def apply_mask(self) -> None:
        """What is left out waits, and is zero in the model."""
        self.leave_update()
        if self.waiting is not None:
            if self.zeroes:
                only(self.waiting, self.kept, out=self.parameter.data)
            else:
                self.parameter.copy_(self.waiting)
        self.mark_read()

    def leave_update(self) -> None:
        """The parameter is the model's again. Said before it is written: if that is interrupted,
        ``restore`` must not take zeros for dense weights."""
        self._whole, self._updating = None, False

    @torch.no_grad()
    def project(self) -> None:
        """Set to zero what is left out."""
        only(self.parameter.detach(), self.kept, out=self.parameter.detach())
        self.projected = True

    def restore(self) -> None:
        """Masks in force again, wherever an update was broken off, or after somebody wrote."""
        if self._updating and not self.collected:
            self.collect()
        if self.projected:
            self.project()
        self.apply_mask()

    def adopt_user_write(self) -> bool:
        """Somebody wrote into the parameter, which a person sees as the weight: what stands there
        counts, also in places that were left out and are no longer zero. Gives whether masks have
        to be put in force again."""
        self.match_device()
        if self._updating:
            return False
        seen = self.parameter.detach()
        if self.waiting is None:
            return self.projected and self.touched() and self._outside(seen)
        if not self.zeroes:
            changed = self.touched() and not same(seen, self.waiting)
            self.waiting.copy_(seen)
            return changed
        if self.touched() and not same(seen, only(self.waiting, self.kept)):
            self.waiting.copy_(torch.where(self._theirs(seen), seen, self.waiting))
            return True
        if seen.is_cuda:  # written through .data? without asking, which would wait for the GPU
            torch.where(seen != 0, seen, self.waiting, out=self.waiting)
        return False

    def _theirs(self, seen: Tensor) -> Tensor:
        """What somebody wrote. A zero in a place that is left out may be theirs or the mask's: it
        is theirs if all that acted in its filter has changed, as it does when a layer, or a row of
        it, is begun anew or loaded."""
        assert self.waiting is not None
        out = self.kept == 0
        changed = seen != only(self.waiting, self.kept)
        whole = self.filters.rows(changed | out).all(dim=1, keepdim=True)
        rows = self.filters.rows(changed | ~out) | whole
        return self.filters.weights(rows).reshape(seen.shape)

    def _outside(self, seen: Tensor) -> bool:
        """Whether something that is left out is not zero. (Asked twice: the first is fast.)"""
        zeroed = torch.equal(seen, only(seen, self.kept))
        return not zeroed and bool(((seen != 0) & (self.kept == 0)).any())

    @torch.no_grad()
    def loaded(self, before: Tensor) -> bool:
        """Another state was loaded into the model: all of it counts, if it is another. Loading what
        is there, as a resumed training does after the pruner's state, changes nothing."""
        self.match_device()
        seen = self.parameter.detach()
        if same(seen, before.to(seen)):
            return False
        if self.waiting is not None:
            self.waiting.copy_(seen)
        return True

    def match_device(self) -> None:
        """The model may have gone to another type or device."""
        kept, like = self.kept, self.parameter
        # (a tensor cannot change where it lies: what fits together stays so)
        if kept.dtype == like.dtype and kept.device == like.device:
            return
        with torch.inference_mode(False):  # (inside one, these would be of no use in training)
            self.kept, self.bits = kept.to(like), None
            if self.waiting is not None:
                self.waiting = self.waiting.to(like)

    def touched(self) -> bool:
        """Whether somebody may have written. Writing through ``.data`` leaves no trace but the
        values: they are compared where that is cheap."""
        return self.parameter._version != self._version or not self.parameter.is_cuda

    def dense(self) -> Tensor:
        """The dense weights: those that act and those that wait."""
        self.adopt_user_write()
        return self.parameter.detach() if self.waiting is None else self.waiting

    @torch.no_grad()
    def compare(self, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """How many weights each filter keeps, would keep with another mask, and keeps with both:
        (filter,) each."""
        both = self.filters.sums(self.kept * mask)
        return self.filters.sums(self.kept), self.filters.sums(mask), both

    @torch.no_grad()
    def set_mask(self, mask: Tensor) -> None:
        """A new mask."""
        self.kept.copy_(mask)
        self.bits = None
        if self.update == "project":
            self.project()

    def neurons(self) -> Tensor:
        """Which filters have a weight that acts: (filter,)."""
        return self.filters.sums(self.kept) != 0

    def mark_read(self) -> None:
        """What stands in the parameter now is known."""
        self._version = self.parameter._version

    @property
    def saved(self) -> bool:
        """Whether a state has the weights: with ``project`` too, a new pruner's first choice would
        be lost on them."""
        return self.waiting is not None or self.update == "project"

    def state(self) -> dict[str, Tensor | None]:
        return {"mask": self.mask, "waiting": self.dense().clone() if self.saved else None}

    @torch.no_grad()
    def load(self, state: dict[str, Tensor | None]) -> None:
        """Take over a saved mask and, where weights wait, the dense weights."""
        mask, waiting = state["mask"], state["waiting"]
        assert mask is not None
        self.kept.copy_(mask)
        self.bits = None
        self.match_device()
        if waiting is not None:
            (self.parameter if self.waiting is None else self.waiting).copy_(waiting)
        self.projected = self.update == "project" and not self._outside(self.parameter.detach())
        self.apply_mask()

    def release(self) -> None:
        """Put the dense weights back for good."""
        with torch.no_grad():
            if self.waiting is not None:
                self.parameter.copy_(self.dense())
        if self._hook is not None:
            self._hook.remove()


def biases(found: Iterable[Prunable], update: str, zeroes: bool) -> dict[str, PrunedParameter]:
    """A neuron whose incoming weights are gone but whose bias is there is not off."""
    return {
        each.name: PrunedParameter(each.bias, Filters((each.filters.count, 1)), update, zeroes)
        for each in found
        if each.bias is not None
    }


def only(values: Tensor, kept: Tensor, out: Tensor | None = None) -> Tensor:
    """The values where ``kept`` is 1 and zero elsewhere, whatever they are there: NaN times zero is
    NaN. (It is the backward pass of ReLU: on a CPU as fast as a product, ``where`` takes twenty
    times as long.)"""
    choose = torch.ops.aten.threshold_backward
    if out is None:
        return choose(values, kept, 0.5)
    return choose.grad_input(values, kept, 0.5, grad_input=out)


def same(first: Tensor, second: Tensor) -> bool:
    """Equal, where NaN is equal to NaN: a training that went wrong was not written by hand."""
    if torch.equal(first, second):
        return True
    return bool(((first == second) | (first.isnan() & second.isnan())).all())
