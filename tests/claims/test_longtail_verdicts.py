"""Long-tailed pre-training: what verdicts, tables and pictures say of hand-made results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from rarefy.core.contracts import Study, Verdict
from rarefy.core.errors import UsageError
from rarefy.studies import get_study
from rarefy.studies.longtail._published import TABLE_2, published
from rarefy.sweep.grid import grid_of

DOCS = Path(__file__).parents[2] / "docs"
RANKS, EPOCHS = 10, 2
WAYS = ("simclr", "pruned:0.5", "branches:0.3")
SPREAD = np.array([0.0, 0.01, 0.03])
"""Seeds differ by more than methods do."""


def study(rho: Sequence[float] = (10.0, 100.0), **more: Any) -> Study:
    chosen = {"rho": tuple(rho), "way": WAYS, "seeds": 3, "images": ("long-tail",), **more}
    return get_study("longtail-table").at("tiny", **chosen)


def results(
    gains: dict[str, Sequence[float]],
    rho: Sequence[float] = (10.0, 100.0),
    images: tuple[str, ...] = ("long-tail",),
    seeds: int = 3,
    gaps: dict[str, float] | None = None,
    slopes: np.ndarray | None = None,
) -> xr.Dataset:
    """``gains``: over simclr at each rho, the same for all seeds but a little; ``gaps``: how much
    accuracy falls from head to tail."""
    cells = ("images", "rho", "way", "seed")
    shape = (len(images), len(rho), len(WAYS), seeds)
    little = np.array([-0.001, 0.0, 0.001])[:seeds]
    accuracy = np.full((*shape, 1, RANKS), 0.5)
    for number, way in enumerate(WAYS):
        noise = little if number else np.zeros(seeds)
        gain = np.asarray(gains.get(way, [0.0] * len(rho)))[:, None] + noise + SPREAD[:seeds]
        fall = np.linspace(0.5, -0.5, RANKS) * ((gaps or {}).get(way, 0.1) + noise)[:, None]
        accuracy[:, :, number, :, 0] += gain[..., None] + fall
    found = {
        "accuracy": ((*cells, "protocol", "rank"), accuracy),
        "masked_accuracy": ((*cells, "protocol", "rank"), accuracy - 0.1),
        "class_count": ((*cells, "rank"), np.ones((*shape, RANKS))),
        "nonfinite_step": (cells, np.full(shape, -1)),
        "mask_slope": (cells, np.zeros(shape) if slopes is None else slopes),
        "epoch_loss": ((*cells, "epoch"), np.ones((*shape, EPOCHS))),
        "watched_knn": ((*cells, "watched_epoch"), np.ones((*shape, 1))),
        "separability": ((*cells, "watched_epoch", "rank"), np.ones((*shape, 1, RANKS))),
    }
    for name in ("mask_excess", "mask_low", "mask_high"):
        values = np.zeros((*shape, RANKS))
        values[..., -1] = np.nan  # no unit prefers the last class, in any network
        found[name] = ((*cells, "rank"), values)
    coordinates = {
        **{"images": list(images), "rho": list(rho), "way": list(WAYS)},
        **{"protocol": ["linear"], "rank": np.arange(RANKS)},
        **{"epoch": np.arange(1, EPOCHS + 1), "watched_epoch": [EPOCHS]},
    }
    return xr.Dataset(found, coords=coordinates)


def judged(found: xr.Dataset, which: Study | None = None) -> dict[tuple[str, str], Verdict]:
    rho = tuple(found["rho"].values.tolist())
    said = (which or study(rho)).verdicts(found, "tiny")
    return {(one.claim, one.setting.removeprefix("digits, lenet, 2 epochs, ")): one for one in said}


def test_a_gain_is_judged_pair_by_pair_and_each_reading_of_the_method_alone() -> None:
    found = results({"pruned:0.5": (-0.02, -0.03), "branches:0.3": (0.02, 0.03)})
    said = judged(found)
    one, two = "rho 100, Algorithm 1, 0.5 kept", "rho 100, two branches, 0.3 kept"
    assert said["P6", f"{one}: accuracy"].outcome == "fails"
    better = said["P6", f"{two}: accuracy"]
    # three points, though seeds differ by as much: pairs
    assert better.outcome == "holds" and better.n == 3 and "mean 3" in better.measured
    assert said["P6", f"{two}: accuracy of the few"].outcome == "holds"
    assert said["P6", f"{two}: Delta_20"].outcome == "inconclusive"
    assert len(said) == 2 * (2 * 3 + 1 + 1)


def test_a_smaller_gap_is_what_delta_20_claims() -> None:
    found = results({}, gaps={"pruned:0.5": 0.02, "branches:0.3": 0.3})
    said = judged(found)
    assert said["P6", "rho 10, Algorithm 1, 0.5 kept: Delta_20"].outcome == "holds"
    assert said["P6", "rho 10, two branches, 0.3 kept: Delta_20"].outcome == "fails"


def test_one_seed_and_stopped_runs_decide_nothing() -> None:
    alone = judged(results({"branches:0.3": (0.1, 0.1)}, seeds=1))
    assert {one.outcome for one in alone.values()} == {"inconclusive"}
    found = results({"branches:0.3": (0.1, 0.1)})
    found["accuracy"][:, :, 2, 1:] = np.nan
    verdict = judged(found)["P6", "rho 10, two branches, 0.3 kept: accuracy"]
    assert verdict.outcome == "inconclusive" and verdict.n == 1


def test_the_gain_grows_with_rho_or_does_not() -> None:
    rho = (1.0, 10.0, 50.0, 100.0)
    rising = {"pruned:0.5": (0.04, 0.03, 0.02, 0.01), "branches:0.3": (0.01, 0.02, 0.03, 0.04)}
    said = judged(results(rising, rho))
    assert said["P8", "two branches, 0.3 kept"].outcome == "holds"
    assert said["P8", "Algorithm 1, 0.5 kept"].outcome == "fails"
    assert ("P8", "two branches, 0.3 kept") not in judged(results({}, (10.0,)))


def test_whose_units_are_masked_counts_a_seed_once_and_no_set_without_a_tail() -> None:
    slopes = np.zeros((1, 3, 3, 3))
    slopes[:, 0] = -1.0  # rho 1: no tail, and nothing to be found
    slopes[:, 1:, 2] = [[0.5, 0.6, 0.7], [0.7, 0.8, 0.9]]
    found = results({}, (1.0, 10.0, 100.0), slopes=slopes)
    words = "units of tail classes are masked more"
    verdict = judged(found)["P4", f"two branches, 0.3 kept: {words}"]
    assert verdict.n == 3 and verdict.outcome == "holds" and "0.7" in verdict.measured


def test_a_store_of_controls_alone_claims_nothing() -> None:
    found = results({"branches:0.3": (0.1, 0.1)}, images=("balanced",))
    assert judged(found, study(images=("balanced",))) == {}


def test_pictures_and_tables_are_drawn_without_a_complaint() -> None:
    both = ("long-tail", "balanced")
    found, which = results({"branches:0.3": (0.1, 0.2)}, images=both), study(images=both)
    pictures = which.picture(found)
    assert [one.name for one in pictures] == ["ranks", "gains", "training", "masked-units"]
    quality, gained, protocols = which.tables(found)
    assert len(quality.rows) == len(protocols.rows) == 2 * 2 * 3
    gains = [row[-2] for row in quality.rows if row[2] == "two branches, 0.3 kept"]
    assert gains[0].startswith("+10.00 [") and gains[2].startswith("+20.00 [")
    gains = [row[3] for row in gained.rows if row[2] == "two branches, 0.3 kept"]
    assert [gain.partition(" [")[0] for gain in gains] == ["+10.00", "+20.00"]
    # one line a rho, not their mean
    shown = {row[0]: row[3] for row in protocols.rows if row[2] == "two branches, 0.3 kept"}
    assert float(shown["100"]) - float(shown["10"]) == pytest.approx(10.0)


def test_what_was_published_stands_beside_it() -> None:
    row = published("cifar10", 100)
    assert row is not None and row.gain == pytest.approx(7.07)
    assert published("digits", 100) is None and published("cifar10", 20) is None
    assert len(TABLE_2) == 8
    cifar = get_study("longtail-table").at(
        "cifar10-rho100-500", way=WAYS, protocols=("linear",), seeds=3
    )
    said = cifar.verdicts(results({}, (100.0,)), "cifar10-rho100-500")
    notes = {one.setting.rpartition(": ")[2]: one.note for one in said}
    assert "published +7.07" in notes["accuracy"] and "published -0.07" in notes["Delta_20"]
    assert "published" not in notes["accuracy of the few"]


def test_all_cells_of_a_seed_share_their_draws() -> None:
    """Methods, imbalances and the control are compared in pairs."""
    grid = grid_of(study(images=("long-tail", "balanced")))
    for seed in range(3):
        assert len(set(grid.keys[grid.values["seed"] == seed].tolist())) == 1
    assert len(set(grid.keys.tolist())) == 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"way": ("simclr", "pruned")}, "needs the share of weights to keep"),
        ({"images": ("short-tail",)}, "unknown images 'short-tail'"),
        ({"rho": (0.5,)}, "rho=0.5: must be a number, at least 1"),
        ({"split": "as-is"}, "means nothing where images are taken as they are"),
        ({"watched": -1}, "watched=-1: must be at least 0"),
        ({"crop": 1.5}, "crop=1.5: must be a share of the image"),
        ({"protocols": ("svm",)}, "unknown protocol 'svm'"),
        ({"epochs": 0}, "epochs=0: must be at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        get_study("longtail-table").at("tiny", **wrong)


# The page of Table 2


def page_of(gains: dict[str, dict[str, float]]) -> str:
    """``gains``: by scale, of the two methods over SimCLR."""
    maker = import_module("make_longtail_table")
    found = {}
    for scale, by_way in gains.items():
        rho = float(scale.split("rho")[1].split("-")[0]) if "rho" in scale else 100.0
        made = results({way: (gain,) for way, gain in by_way.items()}, (rho,))
        made.attrs["provenance"] = json.dumps({"date": "2026-01-02T03", "machine": "a machine"})
        data, _, epochs = scale.split("-")
        which = study((rho,), data=data, epochs=int(epochs))
        found[scale] = maker.Found(which, scale, made)
    text: str = maker.page(found)
    return text


def test_the_page_shows_what_was_run_and_says_what_was_not() -> None:
    page = page_of({"cifar10-rho100-500": {"branches:0.3": 0.04, "pruned:0.5": -0.02}})
    row = next(line for line in page.splitlines() if line.startswith("| CIFAR10-LT, rho 100 | 74"))
    assert "74.24 ± 0.82 → 81.31 ± 0.94 (+7.07) | 500 |" in row and row.endswith("| 3 |")
    assert "-2.00 [-2.25, -1.75] | -12.00" in row and "+4.00 [+3.75, +4.25]" in row
    assert page.count("not run yet |  |") == len(TABLE_2) - 1
    assert (
        "**Algorithm 1 (one masked branch)**: CIFAR10-LT, rho 100, 500 epochs: hurts, -2.00" in page
    )
    assert "**Two branches (SDCLR)**: CIFAR10-LT, rho 100, 500 epochs: helps, +4.00" in page
    assert "`branches:0.3` (two branches, 0.3 kept) where a linear probe will follow" in page
    assert (
        "in 1 of 1 rows (`cifar10-rho100-500` +4.00 points) and loses more than luck in none"
        in page
    )
    assert "(Delta_20) grows" not in page  # the same fall for all methods
    assert "`cifar10-rho100-500`: 2026-01-02, a machine" in page
    assert "51.33 → 55.33 here, 74.24 → 81.31 published" in page
    assert "SimCLR is 22.91 points below the published baseline" in page
    assert "| linear probe, all labels | Algorithm 1, 0.5 kept | -2.00 [-2.25, -1.75] |" in page


def test_a_method_that_helps_here_and_hurts_there_is_not_recommended() -> None:
    page = page_of(
        {
            "cifar10-rho100-500": {"branches:0.3": 0.04},
            "cifar10-rho10-500": {"branches:0.3": -0.04},
        }
    )
    assert "Plain `simclr`: no pruned method" in page
    assert "CIFAR10-LT, 500 epochs, Two branches (SDCLR): Spearman +" in page


def test_a_loss_after_a_shorter_training_is_a_condition_and_after_a_longer_one_an_objection() -> (
    None
):
    helps, hurts = {"branches:0.3": 0.04}, {"branches:0.3": -0.04}
    page = page_of({"cifar10-rho100-100": hurts, "cifar10-rho100-500": helps})
    assert "in 1 of 2 rows (`cifar10-rho100-500` +4.00 points) and loses" in page
    assert "loses more than luck in 1 (`cifar10-rho100-100` -4.00)" in page
    lengths = [line for line in page.splitlines() if "two branches, 0.3 kept" in line]
    lengths = [line for line in lengths if line.endswith("| 3 orders |")]
    assert [line.split(" | ")[1] for line in lengths] == ["100", "500"]
    page = page_of({"cifar10-rho100-500": helps, "cifar10-rho100-1000": hurts})
    assert "Plain `simclr`: no pruned method" in page
    # trainings that are there to explain are no rows, and say when a gain comes
    page = page_of({"cifar10-branches-100": {"branches:0.3": 0.0}, "cifar10-rho100-500": helps})
    assert "in 1 of 1 rows" in page
    assert "It takes time: after 100 epochs the gain is +0.00 [-0.25, +0.25] (3 orders)." in page


def test_the_committed_page_is_that_of_the_committed_results(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    words = [sys.executable, str(DOCS / "make_longtail_table.py"), "--out", str(page)]
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    assert page.read_text("utf-8") == (DOCS / "longtail-table.md").read_text("utf-8")
