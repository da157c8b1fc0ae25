"""Pictures of any make (Pillow, arrays, tensors) to uint8 pixels of one size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.data.images.decoding import FALLBACK, NATIVE, BadImage, fit_to_square, grey_or_colour
from rarefy.data.images.folders import planes


def is_picture(value: object) -> bool:
    """Whether this is an image: Pillow's, or uint8 of two or three axes."""
    if isinstance(value, Image.Image):
        return True
    if isinstance(value, Tensor):
        value = value.numpy()
    return isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim in (2, 3)


def side_of(picture: object, size: int | None) -> int:
    """The side that is asked for, or the picture's own if it is a small square, or 32."""
    if size is not None:
        return size
    width, height = _opened(picture).size
    return width if width == height <= NATIVE else FALLBACK


def pixels_of(picture: object, side: int, channels: int) -> NDArray[np.uint8] | None:
    """(channels, side, side); None for a coloured picture where one channel is asked for."""
    image = _opened(picture)
    pixels = np.asarray(fit_to_square(image, side))
    if pixels.ndim == 3:
        if not (pixels == pixels[:, :, :1]).all():
            return None if channels == 1 else planes(pixels, side, channels)
        pixels = pixels[:, :, 0]
    return np.repeat(pixels[None], channels, axis=0)


def _opened(picture: Any) -> Image.Image:
    """Of mode L or RGB."""
    if isinstance(picture, Tensor):
        picture = picture.numpy()
    if isinstance(picture, np.ndarray):
        if picture.ndim == 3 and picture.shape[0] in (1, 3) and picture.shape[2] not in (1, 3):
            picture = picture.transpose(1, 2, 0)
        if picture.ndim == 3 and picture.shape[2] == 1:
            picture = picture[:, :, 0]
        picture = Image.fromarray(np.ascontiguousarray(picture))
    if not isinstance(picture, Image.Image):
        raise UsageError(f"an image column must hold images, not {type(picture).__name__}")
    try:
        return grey_or_colour(picture)
    except BadImage as error:
        raise UsageError(f"an image has {error}") from None
