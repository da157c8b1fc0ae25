"""C13: the marks on the map, the verdicts on maps made up, and the study at a small size."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import xarray as xr
from made_up_results import coordinates_of

import rarefy
from rarefy.core.contracts import Context, Verdict
from rarefy.core.picture import HeatMap
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of

ContrastHeatmap = get_study("contrast-heatmap")
pytestmark = pytest.mark.usefixtures("eager")


# ------------------------------------------------------------------------------------- the verdicts

STUDY = ContrastHeatmap(eps_min=(0.5, 1.0), bias_scale=(1.0,), reads=(100,))
SEEDS = 100
AS_CLAIMED = {
    "pure": (9.0, 1.0),
    "mixed": (6.0, 1.0),
    "lucky": 4.0,
    "column": (0.15, 0.02),
    "carriers": (5.0, 1.0),
    "largest": 0.3,
    "associated": 13.0,
    "covered": 5.0,
}
OTHERWISE = AS_CLAIMED | {
    "lucky": 0.0,
    "mixed": (0.0, 0.0),
    "column": (0.02, 0.15),
    "carriers": (1.0, 5.0),
    "associated": 6.0,
    "covered": 4.0,
}


def results(values: dict[str, Any]) -> xr.Dataset:
    """The values at eps_min 0.5; at eps_min 1, which is not judged, always the opposite ones."""
    opposite = OTHERWISE if values is AS_CLAIMED else AS_CLAIMED
    noise, coordinates = np.random.default_rng(0), coordinates_of(STUDY, SEEDS)
    data = {}
    for output in STUDY.outputs():
        if output.name == "map":
            continue
        full = np.empty((2, 1, 2, SEEDS, *(len(coordinates[dim]) for dim in output.dims)))
        full[:, :, 0], full[:, :, 1] = values[output.name], opposite[output.name]
        if output.name in ("column", "carriers"):
            full *= np.exp(0.02 * noise.normal(size=full.shape))
        data[output.name] = ((*STUDY.axes, "seed", *output.dims), full)
    return xr.Dataset(data, coordinates)


def marks(cosines: np.ndarray) -> list[tuple[int, int, str]]:
    """The notes on a map whose first neurons have these squared cosines, the others none."""
    made = results(AS_CLAIMED)
    whole = np.zeros((STUDY.neurons, STUDY.d))
    whole[: len(cosines)] = cosines
    made["map"] = (("neuron", "feature"), whole)
    made["map"] = made["map"].expand_dims({name: made[name] for name in (*STUDY.axes, "seed")})
    panel = STUDY.picture(made)[0].panels[0]
    assert isinstance(panel, HeatMap)
    return sorted(panel.notes)


def test_marks_are_set_by_rule_on_the_paper_s_two_examples() -> None:
    lucky, mixed, neither = np.full((3, 9), 0.002)
    lucky[4] = 0.3
    mixed[[0, 2, 7]] = 0.13, 0.18, 0.15
    notes = marks(np.stack([mixed, neither, lucky]))
    assert notes == [(0, 0, "mix"), (0, 2, "mix"), (0, 7, "mix"), (2, 4, "pure")]


def judged(values: dict[str, Any]) -> list[Verdict]:
    return STUDY.verdicts(results(values), "paper")


def test_a_map_as_claimed_holds_in_every_statement() -> None:
    found = judged(AS_CLAIMED)
    assert [v.setting for v in found if v.outcome != "holds"] == []
    assert sorted(v.claim for v in found) == ["C13", "C13", "C13", "C13.1", "C13.2", "C13.3"]


def test_a_map_that_is_otherwise_fails_in_every_statement() -> None:
    assert [v.setting for v in judged(OTHERWISE) if v.outcome != "fails"] == []


def test_a_difference_that_is_there_on_average_is_judged_where_it_is_least() -> None:
    study = replace(STUDY, eps_min=(0.5, 0.8, 1.0))
    uneven = results(AS_CLAIMED)
    more = uneven.sel(eps_min=[0.5]).assign_coords(eps_min=[0.8])
    more["column"] = more["column"] * -0.1
    found = study.verdicts(xr.concat([uneven, more], "eps_min").sortby("eps_min"), "paper")
    (columns,) = (v for v in found if v.claim == "C13.3")
    assert columns.outcome == "fails" and "eps_min=0.8" in columns.note


def test_the_bias_is_what_the_primary_readings_have_and_its_absence_is_another_reading() -> None:
    study = replace(STUDY, bias_scale=(0.0, 1.0))
    without, biased = results(OTHERWISE), results(AS_CLAIMED)
    both = xr.concat([without.assign_coords(bias_scale=[0.0]), biased], "bias_scale")
    told = {v.claim: v.outcome for v in study.verdicts(both, "paper") if v.role == "primary"}
    assert told == {"C13.1": "holds", "C13.2": "holds", "C13.3": "holds"}
    bare = [v for v in study.verdicts(both, "paper") if v.setting.startswith("no bias: ")]
    assert [v.outcome for v in bare] == ["fails", "fails"]


def test_balanced_data_alone_give_no_answer() -> None:
    study = replace(STUDY, eps_min=(1.0,))
    found = study.verdicts(results(AS_CLAIMED).sel(eps_min=[1.0]), "paper")
    assert {v.outcome for v in found} == {"inconclusive"} and {v.n for v in found} == {0}


# ---------------------------------------------------------------------------------------- the study


@cache
def measured() -> tuple[ContrastHeatmap, dict[str, np.ndarray], dict[str, np.ndarray]]:
    study = ContrastHeatmap.at("tiny", seeds=20, eps_min=(0.2, 1.0), figure_eps=0.2)
    assert isinstance(study, ContrastHeatmap)
    grid = grid_of(study)
    found = study.simulate(grid.cells(np.arange(len(grid))), Context())
    return study, dict(grid.values), found


def test_only_the_first_run_keeps_its_map_and_a_shorter_map_is_padded() -> None:
    study, values, found = measured()
    first = values["seed"] == 0
    assert np.isnan(found["map"][~first]).all()
    long, short = first & (values["variant"] == "000"), first & (values["variant"] == "001")
    assert found["map"].shape[1:] == (24, 9)
    assert np.isfinite(found["map"][long]).all()
    assert np.isfinite(found["map"][short, : study.shown_001]).all()
    assert np.isnan(found["map"][short, study.shown_001 :]).all()


def test_the_numbers_are_those_of_the_map() -> None:
    study, values, found = measured()
    at = study.reads.index(study.figure_read)
    for run in np.flatnonzero(values["seed"] == 0):
        shown = study.shown(values["variant"][run])
        cosines = found["map"][run, :shown].astype(np.float64)
        notes = marks(cosines)
        pure = [j for _, j, text in notes if text == "pure"]
        mixed = {i for i, _, text in notes if text == "mix"}
        assert found["pure"][run, at].tolist() == [
            sum(j < 5 for j in pure),
            sum(j >= 5 for j in pure),
        ]
        assert found["mixed"][run, at].sum() == len(mixed)
        assert found["covered"][run, at] == len({j for j in pure if j < 5})
        columns = cosines.mean(axis=0)
        assert np.allclose(found["column"][run, at], [columns[:5].mean(), columns[5:].mean()])
        assert found["associated"][run, at] == (cosines[:, :5] >= 0.1).any(axis=1).sum()
        assert np.isclose(found["largest"][run, at], cosines.max())


def test_majority_columns_are_stronger_where_the_minority_is_rare_and_only_there() -> None:
    _, values, found = measured()
    gap = found["column"][:, -1, 0] - found["column"][:, -1, 1]
    rare, even = gap[values["eps_min"] == 0.2], gap[values["eps_min"] == 1.0]
    assert rare.mean() > 5 * rare.std() / np.sqrt(len(rare))
    assert abs(even.mean()) < 5 * even.std() / np.sqrt(len(even))


def test_every_map_that_is_kept_is_drawn() -> None:
    study = ContrastHeatmap.at("tiny", maps=2)
    results = rarefy.run("contrast-heatmap", scale="tiny", device="cpu", maps=2)
    pictures = {picture.name: picture for picture in study.picture(results)}
    panels = pictures["map-000"].panels
    assert [panel.title for panel in panels] == [
        f"{bias}, run {run}" for run in (0, 1) for bias in ("no bias", "paper's bias")
    ]
    kept = results["map"].sel(variant="000", bias_scale=0.0, eps_min=0.5, seed=1)
    assert isinstance(panels[2], HeatMap)
    assert np.array_equal(panels[2].values, kept.transpose("neuron", "feature").values)
    assert pictures["map-000"].caption.startswith("The first 2 runs")
    # the neurons of 001 in order, its first 13
    panel = pictures["map-001"].panels[1]
    assert isinstance(panel, HeatMap)
    kept = results["map"].sel(variant="001", bias_scale=1.0, eps_min=0.5, seed=0)
    assert np.array_equal(panel.values, kept.transpose("neuron", "feature").values[:13])
    assert panel.notes and {text for *_, text in panel.notes} <= {"pure", "mix"}
    single = ContrastHeatmap.at("tiny").picture(results.sel(seed=[0]))[0]
    assert single.caption.startswith("One run, the first (seed 0)")
    assert [panel.title for panel in single.panels] == ["no bias", "paper's bias"]
