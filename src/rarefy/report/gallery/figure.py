"""Highest and lowest samples of each class on one sheet (003 Fig. 5), for print and docs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rarefy.core.errors import bad_value
from rarefy.core.writing import write_output
from rarefy.report import style
from rarefy.report.gallery.choice import ends_of
from rarefy.report.gallery.pictures import SIDE, Thumbnail, as_image
from rarefy.report.gallery.table import Rows, read_table
from rarefy.report.matplotlib_parts import typeset
from rarefy.report.static import as_png

MOST, MOST_CLASSES = 24, 20
"""Samples at each end of a row, and rows of a sheet."""
_INCH = 0.42  # of a picture on the sheet


def gallery_figure(
    table: pd.DataFrame,
    classes: Sequence[str],
    thumbnail: Thumbnail,
    path: Path | str,
    per_class: int = 8,
) -> Path:
    """Write a PNG with a row per class: its highest scores on the left, its lowest on the right."""
    if not 1 <= per_class <= MOST:
        raise bad_value("per_class", per_class, f"must be from 1 to {MOST}")
    samples = read_table(table, classes)
    members = samples.members()
    scored = [number for number, rows in enumerate(members) if len(rows)]
    if not scored:
        raise bad_value("table", f"{len(table)} rows", "must have a sample with a score")
    drawn = scored[:MOST_CLASSES]
    scores = samples.numbers["influence"]
    ends = [ends_of(scores, members[number], per_class) for number in drawn]
    figure = _sheet(ends, [samples.classes[number] for number in drawn], thumbnail)
    if len(scored) > len(drawn):
        figure.supxlabel(f"the first {len(drawn)} of {len(scored)} classes")
    target = Path(path)
    write_output(target, as_png(figure), "gallery")
    return target


def _sheet(ends: Sequence[tuple[Rows, Rows]], names: Sequence[str], thumbnail: Thumbnail) -> Figure:
    halves = {
        "highest influence": [highest for highest, _ in ends],
        "lowest influence": [lowest for _, lowest in ends],
    }
    columns = max(len(rows) for rows in halves["highest influence"])
    with matplotlib.rc_context(style.MATPLOTLIB):
        size = (2 * columns * _INCH + 1.6, len(names) * _INCH + 0.6)
        figure = Figure(figsize=size, layout="constrained")
        for axes, (said, strips) in zip(
            np.atleast_1d(figure.subplots(1, 2)), halves.items(), strict=True
        ):
            grid, side = _grid(strips, columns, thumbnail)
            axes.imshow(grid, interpolation="nearest")
            axes.set_title(said)
            axes.set_frame_on(False)
            axes.grid(False)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.tick_params(length=0)
            if said.startswith("highest"):
                places = [side * (row + 0.5) for row in range(len(names))]
                axes.set_yticks(places, [typeset(style.shortened(name, 16)) for name in names])
    return figure


def _grid(
    strips: Sequence[Rows], columns: int, thumbnail: Thumbnail
) -> tuple[NDArray[np.uint8], int]:
    """All pictures in one array of white, each in a square of the same side."""
    pictures = [
        (line, column, as_image(thumbnail(int(row)), int(row)).convert("RGB"))
        for line, strip in enumerate(strips)
        for column, row in enumerate(strip)
    ]
    for *_, picture in pictures:
        picture.thumbnail((SIDE, SIDE))
    side = max(max(picture.size) for *_, picture in pictures)
    gap = max(1, side // 14)
    pitch = side + gap
    grid = np.full((len(strips) * pitch, columns * pitch, 3), 255, dtype=np.uint8)
    for line, column, picture in pictures:
        width, height = picture.size
        top, left = line * pitch + (pitch - height) // 2, column * pitch + (pitch - width) // 2
        grid[top : top + height, left : left + width] = np.asarray(picture)
    return grid, pitch
