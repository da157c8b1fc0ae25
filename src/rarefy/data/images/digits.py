"""Handwritten digits that scikit-learn carries: 1,797 images of 8 x 8, nothing to download."""

from __future__ import annotations

import numpy as np
import torch

from rarefy.data.images.ids import choose_by_content
from rarefy.data.images.image_set import ImageData, ImageSet

TEST_SHARE = 0.2


def load_digits() -> ImageData:
    """A fifth of each class, chosen by content, is for testing: the same split everywhere."""
    from sklearn.datasets import load_digits as bundled

    digits = bundled()
    # their values are whole numbers from 0 to 16
    pixels = ((digits.images.astype(np.int64) * 255 + 8) // 16).astype(np.uint8)
    whole = ImageSet(
        torch.from_numpy(pixels[:, None]),
        torch.from_numpy(digits.target.astype(np.int64)),
        tuple(str(name) for name in digits.target_names),
    )
    test = torch.tensor(choose_by_content(whole.ids, whole.labels.tolist(), TEST_SHARE))
    return ImageData("digits", whole.take(~test), whole.take(test), "scikit-learn's bundled digits")
