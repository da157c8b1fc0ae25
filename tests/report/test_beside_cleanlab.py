"""The section of the scoreboard beside cleanlab: its numbers are those of the records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from pages import ROOT, beside_cleanlab


def row(rho: int, ours: float, theirs: float, spread: float) -> dict[str, Any]:
    noise = spread * np.linspace(-1, 1, 10)
    made = {"n": [150] * 10, "wrong": [10] * 10, "data": "cancer", "rho": rho, "share": 0.05}
    for tool, level, sign in (("ours", ours, 1), ("cleanlab", theirs, -1)):
        values = (level + sign * noise).tolist()
        made[tool] = {"auroc": values, "recall": values, "flagged": [10] * 10, "right": [8] * 10}
    return made


def written(folder: Path, *rows: dict[str, Any]) -> str:
    record = {
        "versions": {"cleanlab": "2.9.0"},
        "results": list(rows),
        "provenance": {"date": "2026-11-17T12:00:00"},
    }
    (folder / "label-check-cancer.json").write_text(json.dumps(record), encoding="utf-8")
    return beside_cleanlab.section(folder)


def test_better_worse_and_cannot_tell(tmp_path: Path) -> None:
    text = written(
        tmp_path, row(1, 0.8, 0.9, 0.01), row(20, 0.9, 0.8, 0.01), row(100, 0.91, 0.9, 1)
    )
    assert "Balanced (1 settings): AUROC higher in 0, lower in 1, no difference told in 0" in text
    assert (
        "Long-tailed (2 settings): AUROC higher in 1, lower in 0, no difference told in 1" in text
    )
    assert "0.800 / 0.900, **-0.100 ±" in text and "breast cancer" in text
    assert "0.910 / 0.900, +0.010 ±" in text and "**+0.010" not in text
    assert "n = 10 draws" in text and "cleanlab 2.9.0" in text and "2026-11-17" in text
    assert "| balanced | 0.80 | 0.80 | 0.80 | 0.80 |" in text


def test_without_records_there_is_no_section(tmp_path: Path) -> None:
    assert beside_cleanlab.section(tmp_path) == ""
    alone = row(1, 0.8, 0.9, 0.01)
    del alone["cleanlab"]
    assert written(tmp_path, alone) == ""


def test_the_committed_page_has_the_committed_numbers() -> None:
    text = beside_cleanlab.section(ROOT / "benchmarks" / "results")
    assert text and text in (ROOT / "docs" / "scoreboard.md").read_text("utf-8")
