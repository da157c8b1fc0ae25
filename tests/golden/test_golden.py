"""What committed results are judged to say and show does not change by itself, nor what verbs say.

Here results that take a second or less; ``python tests/golden/compare.py`` compares all.
"""

from __future__ import annotations

import copy
import json

import numpy as np
import pinned
import pytest
import xarray as xr
from compare import RESULTS, changes, differences, golden_file, golden_of

QUICK = (
    "benign-sizes-paper",
    "benign-training-paper",
    "contrast-pruning-map-paper",
    "contrast-sensitivity-paper",
    "granularity-extreme-paper",
    "influence-removal-paper",
    "longtail-table-digits-branches-300",
    "sparse-vit-mnist-paper",
    "topk-baselines-paper",
    "topk-stages-paper",
)
"""At least one per laboratory but that of scale, whose one study takes a quarter of a minute."""


def test_every_result_has_a_golden_file() -> None:
    stems = {path.stem for path in RESULTS.glob("*.parquet")}
    assert stems == {
        path.name.removesuffix(".json.gz") for path in golden_file(RESULTS).parent.glob("*.json.gz")
    }


@pytest.mark.parametrize("name", QUICK)
def test_nothing_has_changed(name: str) -> None:
    assert changes(RESULTS / f"{name}.parquet") == []


def test_every_kind_of_change_is_seen() -> None:
    before = golden_of(RESULTS / "topk-stages-paper.parquet")
    for place, value, told in (
        (("verdicts", 0, "measured"), "slope 9", "became 'slope 9'"),
        (("verdicts", 1, "n"), 3, "became 3"),
        (("verdicts", 2, "interval", 0), 0.123, "became 0.123"),
        (("pictures", 0, "panels", 0, "curves", 0, "y", 0), 1e9, "became 1000000000.0"),
        (("tables", 0, "rows", 0, 0), "another", "became 'another'"),
        (("tables", 0, "rows"), [], "entries became 0"),
    ):
        after = copy.deepcopy(json.loads(json.dumps(before)))
        inner = after
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = value
        found = list(differences(before, after))
        assert len(found) == 1 and told in found[0], found


@pytest.mark.parametrize(
    ("kind", "moved", "told"),
    [("", 1e-6, 1), ("another", 1e-6, 0), ("another", 0.1, 1), ("another", np.nan, 1)],
)
def test_a_moved_output_is_told(kind: str, moved: float, told: int) -> None:
    """By one value of six. Where the bits of this kind of machine are not kept, by its mean."""
    kept = pinned.Simulations()
    before = xr.Dataset({"loss": ("run", np.arange(6, dtype=np.float32))})
    after = before.where(before["loss"] != 1, before + moved).astype(np.float32)
    kept.keep("study", before, adding=False)
    kept.label = kind or kept.label
    old, new = (pinned.summary(part["loss"].values) for part in (before, after))
    old |= {"bits": None} if kind else {}
    changes, ways = kept.compared("study", after)
    assert changes == [f"study loss: {old} became {new}"] * told
    assert [*ways.values()] == [int(not kind), int(bool(kind))]
    kept.keep("study", after, adding=True)
    assert len(kept.lines["study loss"]["bits"]) == 1 + (not told)
