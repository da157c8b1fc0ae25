"""Many cells, images and rows: time and memory stay within bounds, and grow no faster than data.

Bounds are several times what was measured; the numbers themselves are in docs/load.md. Seconds are
those of all threads together: others use the machine too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from bench_load import alone, cells, gallery, influence

Record = Callable[[str, Any], None]
LINEAR = 8.0
"""What four times as much may take: 4 where all is linear, 16 where all is quadratic."""


def recorded(record: Record, what: str, found: dict[str, Any]) -> dict[str, Any]:
    record(f"{what}: processor seconds", round(found["core"][0], 2))
    record(f"{what}: wall seconds", round(found["wall"][0], 2))
    record(f"{what}: own megabytes", round(found["own_memory_bytes"] / 1e6))
    record(f"{what}: megabytes of the process", round(found["process_memory_bytes"] / 1e6))
    return found


def test_20_000_cells(record_property: Record) -> None:
    few, many = (alone(cells, (count, 1)) for count in (5_000, 20_000))
    for found in (few, many):
        what = f"{found['cells']} cells"
        recorded(record_property, what, found["study"])
        record_property(f"{what}: files", found["files"])
    assert many["study"]["core"][0] / 20_000 < 0.005, "seconds per cell"
    assert many["study"]["core"][0] < LINEAR * few["study"]["core"][0]
    assert many["files"] < 20_000 / 4
    assert many["study"]["own_memory_bytes"] < 250e6


def test_60_000_images(record_property: Record) -> None:
    found = recorded(record_property, "60000 images", alone(gallery, (60_000, 1)))
    record_property("bytes of the page", found["bytes"])
    assert found["core"][0] < 60
    assert found["process_memory_bytes"] < 1.5e9


@pytest.mark.parametrize("classes", [10, 1_000, 20_000])
def test_a_million_rows(classes: int, record_property: Record) -> None:
    few, many = (alone(influence, (rows, classes, 1)) for rows in (250_000, 1_000_000))
    for found in (few, many):
        recorded(record_property, f"{found['rows']} rows", found)
    assert many["core"][0] < LINEAR * few["core"][0]
    assert many["process_memory_bytes"] < 3e9
