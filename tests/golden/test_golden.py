"""What committed results are judged to say and show does not change by itself, nor what verbs say.

Here results that take a second or less; ``python tests/golden/compare.py`` compares all.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path

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


@pytest.mark.parametrize("name", pinned.COMMANDS)
def test_a_verb_says_the_same(
    name: str, tmp_path: Path, record_property: Callable[[str, int], None]
) -> None:
    answer = pinned.answer_of(name, tmp_path)
    pinned.compared_answer(name, answer).demand_none(record_property)


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


@pytest.mark.parametrize(
    ("name", "table", "number", "told"),
    [("influence-wine", "highest", "influence", 1), ("pretrain", "rows", "accuracy", 0)],
)
def test_a_moved_number_of_an_answer_is_told(
    name: str, table: str, number: str, told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine of another kind from a thousandth on, and not of trainings."""
    kept = json.loads((pinned.VERBS / f"{name}.json").read_text())
    old = kept["answer"][table][0][number]
    for kind, factor, lines in ((kept["kind"], 1.0001, 1), ("", 1.0001, 0), ("", 1.01, told)):
        monkeypatch.setattr(pinned, "kind_of_machine", lambda kind=kind: kind)
        answer = copy.deepcopy(kept["answer"])
        answer[table][0][number] *= factor
        line = f"{name}.{table}[0].{number}: {old} became {old * factor}"
        assert pinned.compared_answer(name, answer).changes == [line] * lines
        del answer[table][0][number]
        assert len(pinned.compared_answer(name, answer).changes) == 1
