"""What ``ActivePatches`` does, by C++ (``active_patches.cpp``): on a CPU with a compiler."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from rarefy.core.compilation import built
from rarefy.core.threads import in_parts

_WORTH_A_THREAD = 1 << 24
"""Products of a neuron's weights and a patch, if all were shown all."""


@dataclass(frozen=True)
class BuiltPatches:
    """patches: (run, set, slot, sample, d), the last axis a row; features: of each set, -1 for
    none; rows: (run, neuron, d); level: their biases; spare: how far above its threshold noise may
    lift a neuron, both (run, neuron); strongest: bound of the strength of features."""

    library: ctypes.CDLL
    patches: Tensor
    features: Sequence[int]
    rows: Tensor
    level: Tensor
    spare: Tensor
    strongest: float
    open: Tensor
    """(run, neuron, set, word): a bit for each patch; filled by ``scores``"""

    @classmethod
    def of(
        cls,
        patches: Tensor,
        features: Sequence[int] | None,
        rows: Tensor,
        level: Tensor,
        spare: Tensor,
        strongest: float,
    ) -> BuiltPatches | None:
        """None where it cannot be: no compiler, or numbers of another kind."""
        usable = rows.device.type == "cpu" and rows.dtype == patches.dtype == torch.float32
        library = built(Path(__file__).with_name("active_patches.cpp")) if usable else None
        if library is None:
            return None
        sets, slots, samples, _ = patches.shape[1:]
        words = -(-slots * samples // 64)
        opened = torch.zeros(*rows.shape[:2], sets, words, dtype=torch.int64)
        patches = patches if patches.stride(4) == 1 else patches.contiguous()
        given = rows.contiguous(), level.contiguous(), spare.contiguous()
        return cls(library, patches, features or [-1] * sets, *given, strongest, opened)

    def scores(self, outputs: int, m: int) -> Tensor:
        """Sum over an output's m neurons and a sample's patches: (run, output, n)."""
        sets, _, samples, _ = self.patches.shape[1:]
        found = self.rows.new_zeros(len(self.rows), outputs, sets * samples)
        features = (ctypes.c_int64 * sets)(*self.features)
        also = features, ctypes.c_float(self.strongest)
        tensors = self.rows, self.level, self.spare, self.patches, found, self.open
        self._call(self.library.rarefy_show, outputs, m, also, tensors)
        return found

    def add_gradient(self, total: Tensor, residual: Tensor, m: int, linear: bool) -> None:
        """To ``total``, (run * neuron, d), the sum of residual times patch over patches that a
        neuron is open on; residual: (run, output, n). (None is ``linear`` here.)"""
        whole = total.view(self.rows.shape)
        tensors = residual.contiguous(), self.patches, self.open, whole
        self._call(self.library.rarefy_combine, residual.shape[1], m, (), tensors)

    def _call(
        self,
        function: Callable[..., None],
        outputs: int,
        m: int,
        also: Sequence[object],
        tensors: Sequence[Tensor],
    ) -> None:
        shape = (ctypes.c_int64 * 3)(*self.patches.shape[1:4])
        strides = (ctypes.c_int64 * 4)(*self.patches.stride()[:4])

        def some(runs: slice) -> None:
            count, sizes = len(self.rows[runs]), (outputs, m, self.rows.shape[2])
            places = (ctypes.c_void_p(tensor[runs].data_ptr()) for tensor in tensors)
            function(*map(ctypes.c_int64, (count, *sizes)), shape, strides, *also, *places)

        work = self.rows[0].numel() * self.patches[0, ..., 0].numel()
        in_parts(some, len(self.rows), len(self.rows) * work // _WORTH_A_THREAD)
