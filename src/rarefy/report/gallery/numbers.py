"""The numbers of the shown samples, once, for the page's script; and a class's histogram.

Columns rather than records, four digits, null where there is no value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rarefy.report.gallery.choice import Choice
from rarefy.report.gallery.columns import TOLD, Features
from rarefy.report.gallery.table import MEASURES, NUMBERS, Floats, Rows, ScoreTable, plain_text

_BINS = 40
_WIDTH, _HEIGHT = 4, 40  # of a bar and of the drawing


@dataclass(frozen=True)
class Histogram:
    """The scores of a class as the path of a drawing ``width`` wide and ``height`` high."""

    path: str
    low: str
    middle: str
    high: str
    logarithmic: bool
    width: int = _BINS * _WIDTH
    height: int = _HEIGHT


def histogram(scores: Floats) -> Histogram | None:
    """Bars of the scores; of the logarithm of 1 + count where a straight scale would hide the
    tail, which is what a curator looks for."""
    if not len(scores):
        return None
    counts, _ = np.histogram(scores, bins=_BINS)
    logarithmic = bool(counts[counts > 0].min() < 0.02 * counts.max())
    heights = np.log1p(counts) if logarithmic else counts.astype(np.float64)
    heights = np.ceil(heights / heights.max() * _HEIGHT)
    outline = "".join(f"V{_HEIGHT - height:.0f}h{_WIDTH}" for height in heights)
    ends = (scores.min(), np.median(scores), scores.max())
    low, middle, high = (f"{value:.4g}" for value in ends)
    return Histogram(f"M0 {_HEIGHT}{outline}V{_HEIGHT}z", low, middle, high, logarithmic)


def short(value: float) -> float | None:
    """Four digits, or nothing."""
    return float(f"{value:.4g}") if np.isfinite(value) else None


def payload(
    samples: ScoreTable,
    choice: Choice,
    rows: Rows,
    near: Mapping[int, Sequence[int]],
    features: Features | None = None,
    positions: Floats | None = None,
) -> dict[str, Any]:
    """What the script knows. ``rows`` are the shown ones; everywhere else in the payload a sample
    is named by its place among them, and a class by its number. ``positions``: of the rows on a
    map, (n, 2)."""
    place = {int(row): number for number, row in enumerate(rows)}
    # a page of a hundred thousand classes knows those that it shows something of
    suggested = samples.suggested[rows]
    used = np.unique([*samples.label[rows], *choice.classes, *suggested[suggested >= 0]]).tolist()
    told: dict[str, Any] = {
        "fingerprint": samples.fingerprint,
        "classes": {number: samples.classes[number] for number in used},
        "measures": [[name, MEASURES[name], length] for name, length in choice.ends.items()],
        "shown": sorted(choice.classes),
        "random": {
            number: [place[int(row)] for row in chosen] for number, chosen in choice.random.items()
        },
        "label": samples.label[rows].tolist(),
        "suggested": suggested.tolist(),
        "index": samples.index[rows].tolist(),
        "id": samples.ids[rows].tolist(),
        "name": samples.names[rows].tolist(),
        "numbers": {
            name: [short(value) for value in samples.numbers[name][rows]]
            for name in NUMBERS
            if name in samples.numbers
        },
        "words": {name: NUMBERS[name] for name in NUMBERS if name in samples.numbers},
        "percentiles": {
            name: [short(value) for value in values[rows]]
            for name, values in samples.percentiles.items()
        },
        "medians": _medians(samples, used),
        "near": [[place[other] for other in near.get(int(row), ())] for row in rows],
    }
    for name in ("neighbour_label", "triage", "rule"):
        texts = getattr(samples, name)
        if texts is not None:
            told[name] = _coded(texts[rows].tolist())
    if samples.copies is not None:
        told["copies"] = samples.copies[rows].tolist()
    if samples.conflict is not None:
        told["conflict"] = samples.conflict[rows].astype(int).tolist()
    if features is not None:
        told["columns"] = _columns(rows, features, used)
    if positions is not None:
        told["map"] = _on_a_map(positions)
    return told


def _medians(samples: ScoreTable, used: Sequence[int]) -> dict[str, dict[int, float | None]]:
    """What a sample in the middle of its class has: the yardstick for why a score is high.
    ``alignment`` is shared / distance^2: how much the others vary along the sample's direction."""
    known = dict(samples.numbers)
    if "shared" in known and "distance" in known:
        square = known["distance"] ** 2
        known["alignment"] = np.divide(
            known["shared"], square, out=np.full(len(samples), np.nan), where=square > 0
        )
    names = [name for name in ("own", "shared", "distance", "alignment") if name in known]
    members = samples.members()
    return {name: {n: _median(known[name][members[n]]) for n in used} for name in names}


def _median(values: Floats) -> float | None:
    values = values[np.isfinite(values)]
    return short(float(np.median(values))) if len(values) else None


def _coded(texts: Sequence[str]) -> list[Any]:
    """``[different texts, which one each sample has]``: a rule is written once."""
    different = list(dict.fromkeys(texts))
    number = {text: place for place, text in enumerate(different)}
    return [different, [number[text] for text in texts]]


def _columns(rows: Rows, features: Features, used: Sequence[int]) -> dict[str, Any]:
    """Names, the values of each sample, which of them it shows unopened, and what is usual in each
    class."""
    return {
        "names": [plain_text(name) for name in features.names],
        "values": [[short(value) for value in features.values(int(row))] for row in rows],
        "told": [features.order(int(row))[:TOLD].tolist() for row in rows],
        "usual": {n: [short(value) for value in features.usual(n)[0]] for n in used},
    }


def _on_a_map(positions: Floats) -> list[list[int]]:
    """``[x, y]`` from 0 to 1000 each; y grows upwards."""
    low, high = np.nanmin(positions, axis=0), np.nanmax(positions, axis=0)
    shares = (positions - low) / np.where(high > low, high - low, 1.0)
    whole: list[list[int]] = np.rint(1000 * np.nan_to_num(shares)).astype(int).T.tolist()
    return whole


def as_json(told: Mapping[str, Any]) -> str:
    """JSON that can stand inside a script element: no name in it can end the element."""
    text = json.dumps(told, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
