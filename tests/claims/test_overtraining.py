"""Verdicts and page of ``longtail-overtraining``, of made-up looks."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from registered_studies import tiny

from pages import DOCS
from pages.longtail.overtraining import SECTIONS, page
from pages.longtail.rows import Found
from rarefy.core.contracts import Study
from rarefy.studies import get_study
from rarefy.studies.longtail.overtraining.claims import CONTROLS
from rarefy.studies.longtail.overtraining.measures import early_look, two_looks

pytestmark = pytest.mark.usefixtures("eager")
LITTLE = np.array([-0.001, 0.001, 0.0])
"""Between the three seeds."""


def made(
    knn: dict[str, tuple[float, float]], by_heart: tuple[float, float] = (0.1, 0.4)
) -> tuple[Study, xr.Dataset]:
    """``knn``: of unseen images at the two looks, by method; class share follows it; the linear
    probe is as good as the last look; ``by_heart``: trained less unseen images at these looks."""
    study, results = tiny(get_study("longtail-overtraining"))
    results = xr.concat([results, results.isel(seed=[0]).assign_coords(seed=[2])], "seed")
    results = results.assign_coords(watched_epoch=[400, 1000])
    for name, values in results.items():
        if "watched_epoch" in values.dims or name == "accuracy":
            results[name] = values.astype(float)
    for method, looks in knn.items():
        for look, level in enumerate(looks):
            at = {"algorithm": method, "watched_epoch": [400, 1000][look]}
            noise = xr.DataArray(LITTLE * (1 + look), dims="seed")
            results["unseen_knn"].loc[at] = level + noise.broadcast_like(
                results["unseen_knn"].loc[at]
            )
            results["class_share"].loc[at] = level / 2 + noise.broadcast_like(
                results["class_share"].loc[at]
            )
            results["retrieval"].loc[{**at, "known": "unseen"}] = 0.2
            results["retrieval"].loc[{**at, "known": "trained"}] = (
                0.2 + by_heart[look] + noise.broadcast_like(results["class_share"].loc[at])
            )
        results["accuracy"].loc[{"algorithm": method}] = looks[1] + xr.DataArray(
            LITTLE * len(method), dims="seed"
        ).broadcast_like(results["accuracy"].loc[{"algorithm": method}])
    return study, results


PRIMARIES = ("Q5.1", "Q5.2", "Q5.3", "Q6.1", "Q6.2", "Q6.3")
LOSES = {"simclr": (0.6, 0.5), "branches:0.1": (0.6, 0.62), "branches:1": (0.6, 0.5)}
KEEPS = {"simclr": (0.5, 0.6), "branches:0.1": (0.5, 0.52), "branches:1": (0.5, 0.6)}


def outcomes(study: Study, results: xr.Dataset) -> dict[str, str]:
    told = study.verdicts(results, "tiny")
    return {one.claim: one.outcome for one in told if one.claim in PRIMARIES}


def test_classes_lost_images_learnt_and_masks_that_keep_them() -> None:
    found = outcomes(*made(LOSES))
    assert found == dict.fromkeys(PRIMARIES, "holds")


def test_a_training_that_goes_on_learning_says_the_contrary() -> None:
    found = outcomes(*made(KEEPS, by_heart=(0.4, 0.1)))
    assert found == dict.fromkeys(PRIMARIES, "fails")


def test_numbers_are_points_between_two_fixed_looks() -> None:
    study, results = made(LOSES)
    (fall,) = (one for one in study.verdicts(results, "tiny") if one.claim == "Q5.1")
    assert fall.value == pytest.approx(10) and fall.n == 3 and "epochs 400 and 1000" in fall.note
    assert two_looks(results, "simclr", "memorised")[:2] == pytest.approx((10, 40))
    looks = xr.Dataset(coords={"watched_epoch": np.arange(50, 1001, 50)})
    assert looks["watched_epoch"].values[early_look(looks)] == 400


def test_without_the_control_nothing_is_said_of_it() -> None:
    study, results = made(LOSES)
    told = study.verdicts(results.sel(algorithm=["simclr", "branches:0.1"]), "tiny")
    assert {one.claim for one in told} == {"Q5.1", "Q5.2", "Q5.3", "Q5", "Q6.1", "Q6.2"}


def test_each_control_of_the_mask_is_read_by_itself() -> None:
    random, dropout, noise = CONTROLS[:3]
    level = {random: (0.6, 0.7), dropout: (0.6, 0.1), noise: (0.6, 0.5)}
    study, results = made({**LOSES, **level})
    told = {one.claim: one for one in study.verdicts(results, "tiny") if "Q7." in one.claim}
    outcomes = [told[f"Q7.{number}"].outcome for number in (1, 2, 3)]
    assert outcomes == ["holds", "fails", "inconclusive"]
    assert (
        told["Q7.1"].value == pytest.approx(20)
        and "kept + random, less SimCLR" in told["Q7.1"].setting
    )
    near = [one for one in study.verdicts(results, "tiny") if one.claim == "Q7"]
    assert len(near) == 3 and all("neighbours" in one.setting for one in near)
    said = page({"small-controls-1000": Found(study, "small-controls-1000", results)})
    row = next(
        line for line in said.splitlines() if line.startswith("| two branches, 0.1 kept + r")
    )
    assert [cell.split()[0] for cell in row.split("|")[3:5]] == ["+20.00", "+8.00"]


# ----------------------------------------------------------------------------------------- the page


def test_the_page_has_a_row_per_method_and_tells_what_is_not_run() -> None:
    study, results = made(LOSES)
    said = page({"small-1000": Found(study, "small-1000", results)})
    first = said.split("## ")[1]
    assert "orders of the classes: 3, which decide nothing yet. Changes are from epoch 400" in first
    lines = first.split("![")[0].splitlines()
    rows = {line.split(" | ")[0]: line.split(" | ")[1:] for line in lines}
    simclr = [cell.split()[0] for cell in rows["| SimCLR"] if cell.split()]
    assert simclr[1:3] == ["-10.00", "-5.00"] and "40.00" in simclr  # classes, learnt by heart
    assert rows["| two branches, 1 kept"][2].startswith("-12.00")  # less masked ones
    assert "(images/overtraining-small-1000-spectrum.png)" in first
    assert "| SimCLR | neighbours right, % | 60.00 | 50.00 | -10.00 [" in first
    for scale, title in list(SECTIONS.items())[1:]:
        assert f"\n- {title}: `rarefy run longtail-overtraining --scale {scale} " in said


@pytest.mark.quick("2")
@pytest.mark.parametrize("orders", [1, 2])
def test_one_or_two_orders_make_nothing_certain_and_have_no_interval(orders: int) -> None:
    study, results = made(LOSES)
    found = Found(study, "cifar10-2000", results.isel(seed=slice(0, orders)))
    part = page({"cifar10-2000": found}).split("## All images, 2,000 epochs")[1]
    part = part.split("## ")[0]
    assert f"orders of the classes: {orders}, which decide nothing yet" in part
    assert " [-" not in part and " [+" not in part and "spectrum.png" not in part
    (panel, *_) = found.study.picture(found.results)[0].panels
    assert all(np.isnan(curve.low).all() for curve in panel.curves)


@pytest.mark.slow
def test_the_committed_page_is_that_of_the_committed_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = str(DOCS / "make.py")
    monkeypatch.setattr(sys, "argv", [script, "overtraining", "--out", str(tmp_path)])
    runpy.run_path(script, run_name="__main__")
    page = (tmp_path / "overtraining.md").read_text("utf-8")
    assert page == (DOCS / "overtraining.md").read_text("utf-8")
    named = {one.name for one in tmp_path.glob("images/*")}
    assert named == {one.name for one in DOCS.glob("images/overtraining-*")}
