"""One image file: every mode to 8-bit grey or colour, every damage to one reason."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from rarefy.data.images import decoding
from rarefy.data.images.decoding import BadImage, decode

pytestmark = pytest.mark.filterwarnings("ignore::Warning:PIL")


def _save(path: Path, image: Image.Image, **options: Any) -> Path:
    image.save(path, **options)
    return path


def _colours(height: int = 6, width: int = 6) -> Image.Image:
    random = np.random.default_rng(height * width)
    return Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8))


def test_small_squares_stay_as_they_are(tmp_path: Path) -> None:
    image = _colours()
    decoded = decode(_save(tmp_path / "a.png", image), None)
    assert decoded.side == 6
    assert np.array_equal(decoded.pixels, np.asarray(image))


@pytest.mark.parametrize(
    ("height", "width"), [(20, 60), (100, 100), (65, 65), (1, 3000), (3000, 1)]
)
def test_others_are_cut_to_a_square(tmp_path: Path, height: int, width: int) -> None:
    path = _save(tmp_path / "a.png", _colours(height, width))
    decoded = decode(path, None)
    assert decoded.side is None and decoded.pixels.shape == (32, 32, 3)
    assert decode(path, 7).pixels.shape == (7, 7, 3)


def test_the_middle_is_kept_without_aliasing(tmp_path: Path) -> None:
    wide = np.zeros((64, 192), dtype=np.uint8)
    wide[:, 64:128] = 200
    decoded = decode(_save(tmp_path / "a.png", Image.fromarray(wide)), 8)
    assert (decoded.pixels[:, 1:-1] == 200).all()
    assert (decoded.pixels > 150).all()  # smoothing sees a little of what is cut off
    stripes = np.zeros((64, 64), dtype=np.uint8)
    stripes[:, ::2] = 255
    small = decode(_save(tmp_path / "b.png", Image.fromarray(stripes)), 8).pixels
    assert abs(small.astype(int) - 127).max() <= 16  # every second column alone would give 0 or 255


def test_photographs_are_turned_upright(tmp_path: Path) -> None:
    image = np.zeros((8, 8, 3), dtype=np.uint8)
    image[:4] = (255, 0, 0)
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    path = _save(tmp_path / "a.png", Image.fromarray(image), exif=exif)
    pixels = decode(path, None).pixels
    assert (pixels[4:, :, 0] == 255).all() and (pixels[:4] == 0).all()


def test_modes_become_grey_or_colour(tmp_path: Path) -> None:
    grey = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8))
    assert decode(_save(tmp_path / "l.png", grey), None).pixels.shape == (8, 8)
    # colour files without colour are grey
    as_rgb = decode(_save(tmp_path / "g.png", grey.convert("RGB")), None).pixels
    assert np.array_equal(as_rgb, np.asarray(grey))
    ones = decode(_save(tmp_path / "1.png", grey.point(lambda v: v * 4).convert("1")), None).pixels
    assert set(np.unique(ones)) <= {0, 255}
    wide = (np.arange(64).reshape(8, 8) * 1000).astype(np.uint16)
    deep = decode(_save(tmp_path / "16.png", Image.fromarray(wide)), None).pixels
    assert np.array_equal(deep, wide >> 8)
    long = Image.fromarray(wide.astype(np.int32))
    assert np.array_equal(decode(_save(tmp_path / "i.tif", long), None).pixels, wide >> 8)
    palette = _colours().quantize(8)
    shown = np.asarray(palette.convert("RGB"))
    assert np.array_equal(decode(_save(tmp_path / "p.png", palette), None).pixels, shown)
    printed = decode(_save(tmp_path / "c.jpg", _colours(16, 16).convert("CMYK")), None).pixels
    assert printed.shape == (16, 16, 3)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "RGB"])
def test_what_is_transparent_is_white(tmp_path: Path, mode: str) -> None:
    options: dict[str, Any] = {}
    if mode in ("RGBA", "LA"):
        image = Image.new(mode, (8, 8), 0)
    else:
        image = Image.new(mode, (8, 8), 0)
        options = {"transparency": (0, 0, 0) if mode == "RGB" else 0}
    assert (decode(_save(tmp_path / "a.png", image, **options), None).pixels == 255).all()


def test_floats_have_no_range(tmp_path: Path) -> None:
    path = _save(tmp_path / "a.tif", Image.new("F", (8, 8), 0.5))
    with pytest.raises(BadImage, match="floating-point"):
        decode(path, None)


def test_a_large_jpeg_is_decoded_small_but_looks_the_same(tmp_path: Path) -> None:
    rows, columns = np.mgrid[0:800, 0:800]
    image = np.stack([rows // 4, columns // 4, (rows + columns) // 8], axis=-1).astype(np.uint8)
    path = _save(tmp_path / "a.jpg", Image.fromarray(image), quality=95)
    pixels = decode(path, 16).pixels.astype(int)
    with Image.open(path) as whole:
        exact = np.asarray(decoding.fit_to_square(whole.convert("RGB"), 16)).astype(int)
    assert abs(pixels - exact).max() <= 3  # of 255
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(BadImage, match="truncated"):
        decode(path, 16)


FORMATS = [
    ("PNG", {}),
    ("JPEG", {}),
    ("JPEG", {"progressive": True}),
    ("BMP", {}),
    ("GIF", {}),
    ("WEBP", {}),
    ("TIFF", {}),
    ("TIFF", {"compression": "tiff_lzw"}),
    ("PPM", {}),
]


@pytest.mark.parametrize(("kind", "options"), FORMATS)
def test_truncated_files_are_bad_wherever_they_are_cut(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    buffer = io.BytesIO()
    _colours(30, 40).save(buffer, kind, **options)
    content, path = buffer.getvalue(), tmp_path / "a.png"
    path.write_bytes(content)
    whole = decode(path, None).pixels
    for length in [*range(1, 30), *(len(content) * part // 20 for part in range(2, 20))]:
        path.write_bytes(content[:length])
        with pytest.raises(BadImage, match="^[^\n]{3,80}$"):
            decode(path, None)
    for missing in range(1, 9):  # the very end may hold no pixels; then nothing is lost
        path.write_bytes(content[:-missing])
        try:
            assert np.array_equal(decode(path, None).pixels, whole)
        except BadImage:
            pass


def test_a_flipped_bit_in_a_png_is_found(tmp_path: Path) -> None:
    path = _save(tmp_path / "a.png", _colours(30, 30))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    with pytest.raises(BadImage):
        decode(path, None)


def test_what_is_no_image_is_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.png"
    for content, words in [(b"", "empty file"), (b"<html>" * 50, "not an image")]:
        path.write_bytes(content)
        with pytest.raises(BadImage, match=words):
            decode(path, None)
    # formats that start other programs are not even tried
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n")
    with pytest.raises(BadImage, match="not an image"):
        decode(path, None)
    path.unlink()
    with pytest.raises(BadImage, match="No such file"):
        decode(path, None)
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(BadImage, match="broken link"):
        decode(path, None)
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(BadImage):
        decode(path, None)
    path.unlink()
    _save(path, _colours())
    monkeypatch.setattr(decoding, "MOST_BYTES", 20)
    with pytest.raises(BadImage, match="suspiciously large"):
        decode(path, None)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(BadImage, match="not a regular file"):
        decode(tmp_path / "a.png", None)


@pytest.mark.parametrize("side", [10_000, 60_000])
def test_a_decompression_bomb_is_not_set_off(tmp_path: Path, side: int) -> None:
    """A PNG of a few bytes that promises thousands of millions of pixels."""

    def block(name: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + check

    header = block(b"IHDR", struct.pack(">2I5B", side, side, 8, 2, 0, 0, 0))
    path = tmp_path / "bomb.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + block(b"IDAT", b"") + block(b"IEND", b""))
    with pytest.raises(BadImage, match="suspiciously large"):
        decode(path, None)
