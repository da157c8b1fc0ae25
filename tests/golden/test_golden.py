"""What committed results are judged to say and show does not change by itself.

Here those that take a second or less; ``python tests/golden/compare.py`` compares all.
"""

from __future__ import annotations

import copy
import json

import pytest
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
