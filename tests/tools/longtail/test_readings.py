"""Readings and rows of hand-made results whose answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from rarefy.core.errors import UsageError
from rarefy.tools.longtail.readings import baseline_of, readings, rows

RANKS = 5
STOPPED = -1.0


def results(
    overall: dict[str, list[float]], gap: float = 0.2, balanced: bool = False, ranks: int = RANKS
) -> xr.Dataset:
    """Accuracies that fall evenly from overall + gap / 2 at the head to overall - gap / 2; half the
    gap for the control; STOPPED: a run that was lost."""
    ways, seeds = list(overall), len(next(iter(overall.values())))
    images = ["long-tail", "balanced"] if balanced else ["long-tail"]
    dims = ("images", "rho", "algorithm", "seed")
    accuracy = np.full((len(images), 1, len(ways), seeds, 1, ranks), np.nan)
    nonfinite = np.full(accuracy.shape[:4], -1)
    for i in range(len(images)):
        for w, way in enumerate(ways):
            for s, value in enumerate(overall[way]):
                if value == STOPPED:
                    nonfinite[i, 0, w, s] = 3
                else:
                    fall = np.linspace(0.5, -0.5, ranks) * gap / (1 + i)
                    accuracy[i, 0, w, s, 0] = value + fall
    counts = np.broadcast_to(np.arange(ranks, 0, -1.0), (*accuracy.shape[:4], ranks))
    return xr.Dataset(
        {
            "accuracy": ((*dims, "protocol", "rank"), accuracy),
            "class_count": ((*dims, "rank"), counts),
            "nonfinite_step": (dims, nonfinite),
        },
        coords={"images": images, "rho": [20.0], "algorithm": ways, "protocol": ["linear"]},
    )


def row_of(found: xr.Dataset, method: str, images: str = "long-tail") -> dict[str, Any]:
    return next(r for r in rows(found) if (r["method"], r["images"]) == (method, images))


def test_readings_are_per_cent_of_the_ranks_they_name() -> None:
    told = readings(results({"simclr": [0.5]}), "linear")
    here = {name: float(value) for name, value in told.squeeze().data_vars.items()}
    # five ranks: 60, 55, 50, 45, 40; thirds are 2, 2, 1; a fifth is one
    assert here == pytest.approx(
        {
            "overall": 50.0,
            "many": 57.5,
            "medium": 47.5,
            "few": 40.0,
            "delta_20": 20.0,
            "spread": np.std([57.5, 47.5, 40.0]),
        }
    )
    with pytest.raises(UsageError, match="protocol 'knn' was not asked for; there is linear"):
        readings(results({"simclr": [0.5]}), "knn")


def test_ranks_that_a_split_lacks_are_left_out_and_one_without_test_images_keeps_its_place() -> (
    None
):
    found = results({"simclr": [0.5]}, ranks=6)
    found["accuracy"][..., 0] = np.nan  # the head has no test images
    told = readings(found, "linear").squeeze()
    assert np.isnan(float(told["delta_20"]))
    assert float(told["many"]) == pytest.approx(100 * float(found["accuracy"].squeeze()[1]))
    lacking = results({"simclr": [0.5]}, ranks=6)
    lacking["accuracy"][..., -1] = np.nan
    lacking["class_count"] = lacking["class_count"].where(lacking["class_count"] > 1)
    five = readings(lacking, "linear").squeeze()
    assert float(five["few"]) == pytest.approx(100 * float(lacking["accuracy"].squeeze()[4]))


def test_rows_pair_seed_by_seed_beside_the_control() -> None:
    found = results({"simclr": [0.5, 0.6, 0.7], "branches:0.3": [0.52, 0.61, 0.73]}, balanced=True)
    row = row_of(found, "branches:0.3")
    # differences 2, 1, 3: the spread of the seeds themselves is gone
    assert row["difference"] == pytest.approx(2.0) and row["pairs"] == 3
    half = 4.302652729911275 / np.sqrt(3)  # t of two degrees of freedom, standard deviation 1
    assert row["difference_interval"] == pytest.approx([2 - half, 2 + half])
    assert row["delta_20"] == pytest.approx(20.0) and row["control_delta_20"] == pytest.approx(10.0)
    plain = row_of(found, "simclr")
    assert plain["difference"] is None and plain["n"] == 3
    assert row_of(found, "simclr", "balanced")["control_delta_20"] is None
    assert len(list(rows(found))) == 4


def test_stopped_runs_leave_their_pair_out_and_are_counted() -> None:
    found = results({"simclr": [0.5, STOPPED, 0.7], "pruned:0.5": [0.51, 0.9, STOPPED]})
    row = row_of(found, "pruned:0.5")
    assert (row["n"], row["stopped"], row["pairs"]) == (2, 1, 1)
    assert row["difference"] == pytest.approx(1.0) and row["difference_interval"] is None
    lost = results({"simclr": [0.5], "pruned:0.5": [STOPPED]})
    row = row_of(lost, "pruned:0.5")
    assert (row["n"], row["overall"], row["difference"]) == (0, None, None)
    baseline_lost = results({"simclr": [STOPPED], "pruned:0.5": [0.5]})
    assert row_of(baseline_lost, "pruned:0.5")["difference"] is None


def test_one_seed_is_too_few_and_cells_that_were_not_run_have_no_row() -> None:
    found = results({"simclr": [0.5], "pruned:0.5": [0.6]})
    row = row_of(found, "pruned:0.5")
    assert row["difference_interval"] is None and row["overall_interval"] is None
    found["accuracy"][0, 0, 1] = np.nan
    assert [one["method"] for one in rows(found)] == ["simclr"]


def test_others_are_compared_with_the_first_that_learns() -> None:
    assert baseline_of(["pixels", "branches:0.3", "simclr"]) == "simclr"
    assert baseline_of(["pixels", "branches:0.3", "pruned:0.3"]) == "branches:0.3"
    assert baseline_of(["pixels", "untrained"]) == "pixels"
