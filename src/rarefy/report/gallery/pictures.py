"""Small pictures of samples as data addresses.

Each is made once, kept as text, and shown by a style rule of its own: then one copy serves every
place of the page where the sample appears, with scripts or without.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rarefy.core.errors import RunError, bad_value

Thumbnail = Callable[[int], NDArray[np.uint8]]

SIDE = 96
"""No picture is larger than this."""
QUALITIES = ((SIDE, None), (SIDE, 85), (SIDE, 75), (56, 75))
"""Best first: the largest side and WebP's quality; None, for small images, keeps every pixel."""
MOST_PICTURE = 3_800
"""Characters of a picture, which takes the first quality that stays below."""
PIXELS_SEEN = 48
"""An image of at most so many pixels per side is enlarged with its pixels left square."""
_TILE, _LARGE = 80, 240  # CSS pixels: a tile has at least, an opened sample at most so many


@dataclass
class Pictures:
    """Makes and keeps pictures by row."""

    thumbnail: Thumbnail | None = None
    unreadable: set[int] = field(default_factory=set)
    enlarged: bool = True
    _made: dict[int, tuple[str, int]] = field(default_factory=dict)

    def address(self, row: int) -> str:
        """``data:image/...``, or nothing where there is no picture."""
        if self.thumbnail is None:
            return ""
        if row not in self._made:
            self._made[row] = self._make(row)
        return self._made[row][0]

    def side(self) -> int:
        """How large a tile is in CSS pixels: small images in whole steps, so that their pixels
        stay square; 0 without pictures."""
        largest = self._largest()
        if not largest or not self.enlarged:
            return SIDE if largest else 0
        return largest * -(-_TILE // largest)

    def large(self) -> int:
        """The same for the picture of an opened sample."""
        if not self.enlarged:
            return _LARGE
        return (largest := self._largest() or _LARGE) * max(1, _LARGE // largest)

    def _largest(self) -> int:
        return max((side for _, side in self._made.values()), default=0)

    def _make(self, row: int) -> tuple[str, int]:
        """The address and the longer side."""
        assert self.thumbnail is not None
        try:
            image = as_image(self.thumbnail(row), row)
        except (OSError, RunError):  # one broken file must not cost the other pictures
            self.unreadable.add(row)
            return "", 0
        small = max(image.size) <= PIXELS_SEEN
        self.enlarged = self.enlarged and small
        address = ""
        for side, quality in QUALITIES[0 if small else 1 :]:
            image.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=3.0)
            address = _address(image, quality)
            if len(address) <= MOST_PICTURE:
                break
        return address, max(image.size)


def as_image(pixels: NDArray[np.uint8], row: int) -> Image.Image:
    """(height, width) or (height, width, channels), as PIL has it."""
    pixels = np.asarray(pixels)
    shape = f"shape {pixels.shape}, {pixels.dtype} for row {row}"
    if pixels.dtype != np.uint8:
        raise bad_value("thumbnail", shape, "must give uint8 pixels from 0 to 255")
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    fits = pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))
    if not fits or 0 in pixels.shape:
        raise bad_value("thumbnail", shape, "must be (height, width) or (height, width, 1, 3 or 4)")
    return Image.fromarray(np.ascontiguousarray(pixels))


def _address(image: Image.Image, quality: int | None) -> str:
    """WebP: a quarter smaller than PNG where every pixel is kept (28 x 28 digits: 203 against 272
    bytes; 32 x 32 photographs: 1,319 against 1,802), and smaller than JPEG where not."""
    stream = io.BytesIO()
    if quality is None:
        image.save(stream, format="WEBP", lossless=True, method=4)
    else:
        image.save(stream, format="WEBP", quality=quality, method=4)
    return "data:image/webp;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
