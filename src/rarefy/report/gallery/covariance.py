"""The classes' covariances side by side: tr(Sigma_i Sigma_j) of 003 Fig. 6 as a heat map.

As it stands a class with much variance outshines the rest, so the page starts with
tr(Sigma_i Sigma_j) / sqrt(tr(Sigma_i^2) tr(Sigma_j^2)): the cosine of two covariances, from 0
(no direction in common) to 1 (the same up to a factor). The other is a switch away.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rarefy.core.errors import bad_value
from rarefy.measure.influence.class_statistics import compared_classes
from rarefy.report import style
from rarefy.report.gallery.numbers import short
from rarefy.report.gallery.table import Floats, Rows

WRITTEN = 16
"""A matrix of at most so many classes is a table with its numbers written in it."""


@dataclass(frozen=True)
class Cell:
    """One number of the written table, both ways, with its colours."""

    text: str
    raw_text: str
    colours: str
    raw_colours: str


@dataclass(frozen=True)
class CovarianceView:
    """What the page shows. ``numbers`` (upper triangle, row by row) is for what a pointer rests
    on; ``cells`` is empty where the matrix is a picture."""

    order: list[int]
    cells: list[list[Cell]]
    image: str
    raw_image: str
    numbers: list[float | None]
    diagonal: list[float | None]
    most: str
    left_out: int


def cosine(matrix: Floats) -> Floats:
    """tr(Sigma_i Sigma_j) / sqrt(tr(Sigma_i^2) tr(Sigma_j^2)); NaN for a class without variance."""
    size = np.sqrt(np.diag(matrix))
    scale = np.outer(size, size)
    return np.divide(matrix, scale, out=np.full_like(matrix, np.nan), where=scale > 0)


def covariance_view(covariance: NDArray[np.floating], sizes: Rows) -> CovarianceView:
    """The matrix prepared for the page: of the classes that ``compared_classes`` names."""
    matrix = np.asarray(covariance, dtype=np.float64)
    order = compared_classes(sizes).tolist()
    if matrix.shape != (len(order), len(order)):
        raise bad_value("covariance", f"shape {matrix.shape}", f"must be {(len(order),) * 2}")
    # tr(Sigma_i Sigma_j) of a class without samples has no value
    matrix = np.where(np.isfinite(matrix) & (matrix >= 0), matrix, np.nan)
    ratio = cosine(matrix)
    written = len(order) <= WRITTEN
    upper = np.triu_indices(len(order))
    return CovarianceView(
        order=order,
        cells=_cells(ratio, matrix) if written else [],
        image="" if written else _drawn(ratio, 1.0),
        raw_image="" if written else _drawn(matrix, _largest(matrix)),
        numbers=[] if written else [short(value) for value in ratio[upper]],
        diagonal=[] if written else [short(value) for value in np.diag(matrix)],
        most=_text(_largest(matrix), 3),
        left_out=len(sizes) - len(order),
    )


def _largest(matrix: Floats) -> float:
    known = matrix[np.isfinite(matrix)]
    return float(known.max()) if len(known) and known.max() > 0 else 1.0


def _cells(ratio: Floats, matrix: Floats) -> list[list[Cell]]:
    most = _largest(matrix)
    return [
        [
            Cell(_text(share, 2), _text(raw, 3), _colours(share, 1.0), _colours(raw, most))
            for share, raw in zip(shares, raws, strict=True)
        ]
        for shares, raws in zip(ratio.tolist(), matrix.tolist(), strict=True)
    ]


def _text(value: float, digits: int) -> str:
    return f"{value:.{digits}g}" if np.isfinite(value) else "–"


def _colours(value: float, most: float) -> str:
    """Colour and ink of a cell as a style."""
    ink = style.text_on_cell(value, 0.0, most)
    if not np.isfinite(value):
        return f"background:{style.MISSING};color:{ink}"
    red, green, blue, _ = matplotlib.colormaps[style.COLOUR_MAP](value / most, bytes=True)
    return f"background:#{red:02x}{green:02x}{blue:02x};color:{ink}"


def _drawn(matrix: Floats, most: float) -> str:
    """One pixel per pair of classes."""
    colours = matplotlib.colormaps[style.COLOUR_MAP].with_extremes(bad=style.MISSING)
    pixels = colours(np.ma.masked_invalid(matrix / most), bytes=True)[:, :, :3]
    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(stream, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
