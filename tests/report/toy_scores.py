"""A made-up score table and a reader of gallery pages, shared by the gallery's tests."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image


def scores(sizes: Mapping[str, int], seed: int = 0) -> pd.DataFrame:
    """Every column of a score table, with numbers of no meaning; a class of one has no score."""
    random = np.random.default_rng(seed)
    label = np.repeat(np.array(list(sizes), dtype=object), list(sizes.values()))
    label = label[random.permutation(len(label))]
    n = len(label)
    size = np.array([sizes[name] for name in label])
    table = pd.DataFrame(
        {
            "id": [f"{number:016x}" for number in random.permutation(n)],
            "index": np.arange(n),
            "name": pd.Series([f"train/{number:05d}.png" for number in range(n)], dtype=object),
            "label": pd.Series(label, dtype=object),
            "own": random.gamma(1.0, 0.01, n),
            "shared": random.gamma(2.0, 1.0, n),
            "shrinking": -1.5,
            "distance": random.gamma(9.0, 1.0, n),
            "mahalanobis": random.gamma(9.0, 2.0, n),
            "norm": random.gamma(9.0, 3.0, n),
            "disagreement": random.integers(0, 11, n) / 10,
            "neighbour_label": pd.Series(label[random.permutation(n)], dtype=object),
            "copies": random.integers(0, 2, n),
            "conflict": random.uniform(size=n) < 0.1,
        }
    )
    table["influence"] = table["own"] + table["shared"] + table["shrinking"]
    table.loc[size < 2, ["influence", "own", "shared", "shrinking", "mahalanobis"]] = np.nan
    ranks = table.groupby("label")["influence"].rank()
    table["percentile"] = 100 * (ranks - 1) / np.maximum(size - 1, 1)
    flagged = table["disagreement"] > 0.9
    table["triage"] = np.where(flagged, "maybe mislabelled", "")
    table["rule"] = np.where(flagged, "disagreement above 0.9 of 10 neighbours", "")
    return table


def four(value: float) -> float | None:
    """What the page should hold of a number."""
    return float(f"{value:.4g}") if np.isfinite(value) else None


def digit(row: int) -> NDArray[np.uint8]:
    """A small grey image that differs from row to row."""
    return ((np.arange(64) * (row + 3)) % 251).astype(np.uint8).reshape(8, 8)


class Places:
    """A map on which samples lie by their row numbers."""

    words = "row numbers"

    def __call__(self, rows: Sequence[int], /) -> NDArray[np.float64]:
        return np.array([[row, 7.0] for row in rows])


class Page(HTMLParser):
    """A gallery taken apart: elements, visible text, the script's numbers, the style's pictures."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._within = ""
        self.feed(text)
        self.close()
        (numbers,) = re.findall(
            r'<script type="application/json" id="numbers">(.*?)</script>', text, re.S
        )
        self.numbers: dict[str, Any] = json.loads(numbers)
        self.pictures = {
            int(place): address
            for place, address in re.findall(r"\.t(\d+)\{background-image:url\((.*?)\)\}", text)
        }

    @classmethod
    def read(cls, path: Path) -> Page:
        return cls(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._within = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._within:
            self._within = ""

    def handle_data(self, data: str) -> None:
        if not self._within:
            self.text += data

    def all(self, tag: str, name: str | None = None) -> list[dict[str, str | None]]:
        """Attributes of the elements with this tag, and this class where one is given."""
        return [
            attributes
            for found, attributes in self.found
            if found == tag and (name is None or name in (attributes.get("class") or "").split())
        ]

    def picture(self, place: int) -> Image.Image:
        return Image.open(io.BytesIO(base64.b64decode(self.pictures[place].partition(",")[2])))
