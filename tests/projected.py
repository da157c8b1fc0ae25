"""Coefficients of 002 Def. 5.1 from the weights alone."""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.data.patches import PatchSamples
from rarefy.measure.coefficients import Coefficients, accumulated_coefficients
from rarefy.nets.patch_cnn import responses


def projected_coefficients(initial: Tensor, filters: Tensor, samples: PatchSamples) -> Coefficients:
    """By least squares on the patches, in float64, where nothing was pruned and the patches are
    linearly independent."""
    names = ("noise", "features", "noise_scale", "strength")
    wide = PatchSamples(samples.labels, *(getattr(samples, name).double() for name in names))
    patches = wide.patches()
    gram = patches @ patches.transpose(1, 2)
    seen = responses((filters - initial).to(torch.float64), patches)
    found = torch.linalg.solve(gram[:, None], seen.transpose(2, 3)).transpose(2, 3)
    return accumulated_coefficients(found, wide)
