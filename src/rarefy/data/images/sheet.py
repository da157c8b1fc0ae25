"""A contact sheet: some images of each class in a grid, because people would rather look."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from rarefy.core.errors import bad_value
from rarefy.core.writing import write_output
from rarefy.data.images.image_set import ImageData, ImageSet

ROWS = 200
"""No more classes than this are drawn."""
CELL = 48
"""Small images are enlarged to about this side, in whole steps so that pixels stay square."""
GAP = 3
FORMATS = (".png", ".jpg", ".jpeg", ".webp")


def write_sheet(data: ImageData, path: Path, columns: int = 12) -> int:
    """Draw a row of training images per class, chosen by content; gives how many rows there are."""
    if path.suffix.lower() not in FORMATS:
        raise bad_value("sheet", str(path), f"must end in one of {', '.join(FORMATS)}")
    sheet, rows = draw_sheet(data.train, columns)
    form = Image.registered_extensions()[path.suffix.lower()]
    write_output(path, lambda partial: sheet.save(partial, form), "sheet")
    return rows


def draw_sheet(images: ImageSet, columns: int) -> tuple[Image.Image, int]:
    """The picture and its number of rows."""
    height, width = images.images.shape[2:]
    scale = max(1, round(CELL / max(height, width)))
    cell_height, cell_width = scale * height + GAP, scale * width + GAP
    font = ImageFont.load_default()
    names = [_short(name) for name in images.classes[:ROWS]]
    margin = max((int(font.getlength(name)) for name in names), default=0) + 3 * GAP
    line = max(cell_height, 14)
    sheet = Image.new("RGB", (margin + columns * cell_width, len(names) * line + GAP), "white")
    pen = ImageDraw.Draw(sheet)
    labels = np.asarray(images.labels.cpu())
    for row, name in enumerate(names):
        top = row * line + GAP
        pen.text((GAP, top + (line - 14) // 2), name, fill="black", font=font)
        members = sorted(np.flatnonzero(labels == row), key=lambda place: images.ids[place])
        for column, place in enumerate(members[:columns]):
            picture = _picture(images, int(place)).resize(
                (scale * width, scale * height), Image.Resampling.NEAREST
            )
            sheet.paste(picture, (margin + column * cell_width, top))
    return sheet, len(names)


def _picture(images: ImageSet, place: int) -> Image.Image:
    pixels = np.asarray(images.images[place].cpu())
    planes = pixels[0] if len(pixels) == 1 else pixels[:3].transpose(1, 2, 0)
    return Image.fromarray(np.ascontiguousarray(planes))


def _short(name: str) -> str:
    """What the built-in font can draw, not too long."""
    plain = name.encode("ascii", "replace").decode("ascii")
    return plain if len(plain) <= 24 else f"{plain[:22]}..."
