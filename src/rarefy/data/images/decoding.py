"""One image file to pixels: decoded completely, turned upright, made square, 8 bits per channel."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

FORMATS = ("AVIF", "BMP", "DIB", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""What is tried on a file, whatever its name says; others may start programs (EPS). An older
Pillow has fewer."""
MOST_PIXELS = 89_478_485
"""Above this Pillow suspects a decompression bomb: a small file that fills the memory."""
MOST_BYTES = 512 * 1024**2
NATIVE = 64
"""Square images up to this side can stay as they are."""
FALLBACK = 32
"""Side to which images are brought that have no such size in common."""


class BadImage(Exception):
    """A file that cannot be used; the text says why."""


@dataclass(frozen=True)
class DecodedImage:
    """An image and what deciding about the whole set needs."""

    pixels: NDArray[np.uint8]
    """(height, width) if grey, else (height, width, 3)"""
    side: int | None
    """Its own side, if it is square and small."""
    key: str
    """Hash of the file's bytes."""


def decode(path: Path, size: int | None) -> DecodedImage:
    """Read a file and bring it to ``size``; without one, small squares are left as they are and
    others are brought to the size that is used when there is none in common."""
    content = _content(path)
    try:
        with Image.open(io.BytesIO(content), formats=_formats()) as image:
            if image.width * image.height > MOST_PIXELS:
                raise BadImage(f"{image.width} x {image.height} pixels, suspiciously large")
            if image.format == "PNG":
                _check_png(content)
            upright = _upright(image, size)
            square = upright.width == upright.height <= NATIVE
            side = upright.width if square else None
            target = size if size is not None else (side or FALLBACK)
            pixels = np.asarray(fit_to_square(grey_or_colour(upright), target))
    except BadImage:
        raise
    except Image.DecompressionBombError:
        raise BadImage("suspiciously large") from None
    except Image.UnidentifiedImageError:
        raise BadImage("not an image" if content else "empty file") from None
    except MemoryError:
        raise BadImage("too large for the memory") from None
    except Exception as error:  # decoders fail in many ways, and one file must not end a run
        raise BadImage(" ".join(str(error).split())[:80] or type(error).__name__) from None
    if pixels.ndim == 3 and (pixels == pixels[:, :, :1]).all():
        pixels = pixels[:, :, 0]
    return DecodedImage(pixels, side, hashlib.blake2b(content, digest_size=16).hexdigest())


def fit_to_square(image: Image.Image, side: int) -> Image.Image:
    """Cut from the middle to a square, and resized without aliasing."""
    if image.size == (side, side):
        return image
    return ImageOps.fit(image, (side, side), Image.Resampling.BILINEAR)


@cache
def _formats() -> tuple[str, ...]:
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _content(path: Path) -> bytes:
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise BadImage("not a regular file")
        if status.st_size > MOST_BYTES:
            raise BadImage(f"{status.st_size} bytes, suspiciously large")
        return path.read_bytes()
    except OSError as error:
        reason = "broken link" if path.is_symlink() and not path.exists() else error.strerror
        raise BadImage(str(reason)) from None


def _check_png(content: bytes) -> None:
    """Every block of a PNG has a checksum, and the last one a name; decoding alone passes over
    some of them."""
    with Image.open(io.BytesIO(content), formats=("PNG",)) as image:
        image.verify()


def _upright(image: Image.Image, size: int | None) -> Image.Image:
    """Decoded, the first picture of several, turned as its EXIF note says."""
    wanted = 4 * (size or FALLBACK)
    if min(image.size) > wanted:
        # a JPEG can be decoded at a half, a quarter or an eighth: far quicker, still all of it
        image.draft(None, (wanted, wanted))
    image.load()
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # the note is damaged, the picture is not
        return image


def grey_or_colour(image: Image.Image) -> Image.Image:
    """Mode L or RGB. What is transparent shows white paper; 16-bit grey keeps its upper 8 bits."""
    if image.mode in ("L", "RGB"):
        if "transparency" not in image.info:
            return image
    elif image.mode == "1":
        return image.convert("L")
    elif image.mode.startswith("I"):
        values = np.asarray(image).astype(np.int64)
        return Image.fromarray((np.clip(values, 0, 65535) >> 8).astype(np.uint8))
    elif image.mode == "F":
        raise BadImage("floating-point pixels, which have no agreed range")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        clear = image.convert("RGBA")
        paper = Image.new("RGBA", clear.size, "white")
        return Image.alpha_composite(paper, clear).convert("RGB")
    return image.convert("RGB")
