"""P2, P3: the map of when and how much to prune, and which of its places is judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from made_up_results import Made, fabricated
from pruning_results import FLOAT64, by_group, close, one, outcomes, simulated, with_pruning

from rarefy.core.picture import HeatMap
from rarefy.measure.alignment import projections
from rarefy.studies import get_study

ContrastPruningMap = get_study("contrast-pruning-map")
pytestmark = pytest.mark.usefixtures("eager")
RESTLESS = 10.0
"""times the squared weight of its unpruned twin: a run that has outgrown it"""
MAP_SMALL: dict[str, Any] = {
    "seeds": 2,
    "alpha": (0.0, 0.3),
    "start": (0, 6),
    "bias_scale": (0.0, 1.0),
    "d1": 24,
    "batch": 16,
    "steps": 10,
}


def test_map_cells_without_pruning_are_one_unpruned_run_whatever_the_rule_and_start() -> None:
    study = ContrastPruningMap.at("tiny", **MAP_SMALL)
    assert isinstance(study, ContrastPruningMap)
    grid, found = simulated(study)
    keys = ("seed", "bias_scale")
    for place in {tuple(row) for row in zip(*(grid.values[k] for k in keys), strict=True)}:
        here = np.all([grid.values[k] == v for k, v in zip(keys, place, strict=True)], axis=0)
        none = np.flatnonzero(here & (grid.values["alpha"] == 0))
        assert len(none) == 6 and len(set(grid.keys[none])) == 1
        for name in ("energy", "pure"):
            close(found[name][none], np.broadcast_to(found[name][none[:1]], (6, 2)), name)
        # six pruned cells, all different from it and from each other
        pruned = np.flatnonzero(here & (grid.values["alpha"] > 0))
        assert len(np.unique(found["energy"][np.append(pruned, none[0]), 0])) == 7
        cells = grid.cells(none[:1])
        trial = study.setup(cells, FLOAT64)
        weights = trial.train(FLOAT64, {}, []).parameters["weights"]
        energy = projections(weights, trial.data.dictionary).square().sum(dim=1).numpy()
        groups = (energy[:, : study.majority], energy[:, study.majority :])
        close(found["energy"][none[:1]], np.stack([group.mean(axis=1) for group in groups], 1))


MAP = ContrastPruningMap.at(
    "tiny", alpha=(0.0, 0.1, 0.3, 0.5), start=(0, 20), update=("dense",), bias_scale=(0.0,)
)
assert isinstance(MAP, ContrastPruningMap) and (MAP.minority, MAP.d) == (4, 9)  # 0.5 is too much


def map_results(gain: Made, seeds: int = 8, outgrown: Made = lambda c: 1.0) -> xr.Dataset:
    """A map of pure neurons and of log energies, rare over frequent, with these gains over the
    unpruned run; ``outgrown``: the energies of a pruned run over those of its twin."""
    minority, size = with_pruning(gain, lambda c: 0.0), with_pruning(outgrown, one)
    values = {
        "energy": by_group(lambda c: size(c) * np.exp(minority(c)), size),
        "pure": by_group(lambda c: 3.0 + minority(c), one),
    }
    return fabricated(MAP, seeds, values)


def at(c: xr.Dataset, alpha: float, start: int) -> xr.DataArray:
    return (c["alpha"] == alpha) & (c["start"] == start)


def even(c: xr.Dataset) -> xr.DataArray:
    return c["seed"] % 2 == 0


def test_a_place_that_is_best_on_even_seeds_by_chance_does_not_hold() -> None:
    results = map_results(lambda c: 5.0 * at(c, 0.3, 20) * even(c) + 1.0 * at(c, 0.1, 0))
    verdicts = MAP.verdicts(results, "tiny")
    assert [verdict.claim for verdict in verdicts] == ["P2", "P3"]
    for verdict in verdicts:
        assert verdict.outcome == "fails" and "no effect at all" in verdict.note
        assert "at alpha=0.3, start 20" in verdict.note
        assert verdict.n == 4


def test_a_place_that_is_best_on_odd_seeds_only_is_not_even_chosen() -> None:
    results = map_results(lambda c: 9.0 * at(c, 0.3, 20) * ~even(c) + 1.0 * at(c, 0.1, 0))
    for verdict in MAP.verdicts(results, "tiny"):
        assert verdict.outcome == "holds" and "at alpha=0.1, start 0" in verdict.note
        assert verdict.measured == "mean 1 [1, 1]"


def test_a_share_beyond_that_of_the_rare_features_is_not_chosen() -> None:
    results = map_results(lambda c: 9.0 * (c["alpha"] == 0.5) + 1.0 * at(c, 0.3, 20))
    for verdict in MAP.verdicts(results, "tiny"):
        assert verdict.outcome == "holds" and "at alpha=0.3, start 20" in verdict.note


def test_the_share_of_the_rare_features_itself_is_allowed() -> None:
    study = ContrastPruningMap.at("tiny", alpha=(0.0, 0.1, 4 / 9), start=(0,), update=("dense",))
    values = {"energy": one, "pure": lambda c: (c["alpha"] > 0.4) * 1.0}
    verdicts = study.verdicts(fabricated(study, 8, values), "tiny")
    assert "at alpha=0.444444, start 0" in verdicts[1].note and verdicts[1].outcome == "holds"


@pytest.mark.parametrize(("size", "place"), [(0.9, "alpha=0.3"), (1.1, "alpha=0.1")])
def test_a_place_where_runs_grow_without_rest_is_not_chosen(size: float, place: str) -> None:
    """One of the four first seeds is enough; the second half of the seeds is not looked at."""

    def gain(c: xr.Dataset) -> xr.DataArray:
        return 9.0 * at(c, 0.3, 20) + 1.0 * at(c, 0.1, 0)

    def outgrown(c: xr.Dataset) -> xr.DataArray:
        return xr.where(at(c, 0.3, 20) & (c["seed"] == 2), size * RESTLESS, 1.0)

    for verdict in MAP.verdicts(map_results(gain, outgrown=outgrown), "tiny"):
        assert verdict.outcome == "holds" and f"at {place}" in verdict.note

    def later(c: xr.Dataset) -> xr.DataArray:
        return xr.where(at(c, 0.3, 20) & (c["seed"] == 1), 2 * RESTLESS, 1.0)

    for verdict in MAP.verdicts(map_results(gain, outgrown=later), "tiny"):
        assert "at alpha=0.3" in verdict.note


def test_a_place_where_runs_are_lost_does_not_count_as_at_rest() -> None:
    """A run whose weights are no numbers any more has outgrown its twin more than any other."""

    def gain(c: xr.Dataset) -> xr.DataArray:
        return 9.0 * at(c, 0.3, 20) + 1.0 * at(c, 0.1, 0)

    def outgrown(c: xr.Dataset) -> xr.DataArray:
        return xr.where(at(c, 0.3, 20) & (c["seed"] % 4 < 2), np.nan, 1.0)

    results = map_results(gain, outgrown=outgrown)
    results["pure"] = results["pure"].where(results["energy"].notnull())
    for verdict in MAP.verdicts(results, "tiny"):
        assert "at alpha=0.1" in verdict.note


def test_where_no_place_may_be_chosen_nothing_holds() -> None:
    """Neither a share beyond the theorem's nor a place without rest is judged in its stead."""
    study = ContrastPruningMap.at("tiny", alpha=(0.0, 0.5), start=(0,), update=("dense",))
    values = {"energy": one, "pure": lambda c: (c["alpha"] > 0) * 1.0}
    for verdict in study.verdicts(fabricated(study, 8, values), "tiny"):
        assert verdict.outcome == "inconclusive"
    restless = map_results(lambda c: 1.0, outgrown=lambda c: 2 * RESTLESS)
    for verdict in MAP.verdicts(restless, "tiny"):
        assert verdict.outcome == "inconclusive"


def test_pruning_that_only_harms_fails() -> None:
    results = map_results(lambda c: -1.0 - c["alpha"])
    for verdict in MAP.verdicts(results, "tiny"):
        assert verdict.outcome == "fails" and "at alpha=0.1" in verdict.note


def test_gains_are_paired_by_seed() -> None:
    results = map_results(lambda c: 2.0 * at(c, 0.1, 20))
    results["pure"] = results["pure"] + 10.0 * results["seed"]
    panel = map_of_pure_neurons(results)
    assert list(panel.x) == ["0.1", "0.3", "0.5"]
    np.testing.assert_allclose(panel.values, [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]], atol=1e-12)
    assert set(panel.notes) == {(1, 0, "+")}


def test_an_unpruned_energy_of_zero_has_no_logarithm_and_no_warning() -> None:
    results = map_results(lambda c: 1.0)
    results["energy"] = results["energy"] * (results["seed"] > 1)
    verdicts = MAP.verdicts(results, "tiny")
    assert outcomes(verdicts, "log of squared weight") == {"holds"}
    assert [verdict.n for verdict in verdicts] == [3, 4]  # one of the judged seeds has none


def map_of_pure_neurons(results: xr.Dataset) -> HeatMap:
    (picture,) = [found for found in MAP.picture(results) if found.name.startswith("pure")]
    (panel,) = picture.panels
    assert isinstance(panel, HeatMap)
    return panel


def test_the_map_marks_what_is_certain_and_only_that() -> None:
    def gain(c: xr.Dataset) -> xr.DataArray:
        noise = xr.where(even(c), 1.0, -1.0)
        return (
            at(c, 0.1, 0) * (3.0 + noise) - at(c, 0.3, 0) * (3.0 + noise) + at(c, 0.1, 20) * noise
        )

    # rows are starts, columns shares
    panel = map_of_pure_neurons(map_results(gain))
    assert set(panel.notes) == {(0, 0, "+"), (0, 1, "-")}
    assert panel.signed and list(panel.y) == ["0", "20"] and list(panel.x) == ["0.1", "0.3", "0.5"]
    np.testing.assert_allclose(panel.values, [[3.0, -3.0, 0.0], [0.0, 0.0, 0.0]], atol=1e-12)


def test_the_maps_standard_error_is_that_of_a_mean_so_one_pair_marks_nothing() -> None:
    assert not map_of_pure_neurons(map_results(lambda c: 1.0, seeds=1)).notes

    # two pairs, gains 1 and 0.2: the mean 0.6 is less than two standard errors of 0.4
    def uneven(c: xr.Dataset) -> xr.DataArray:
        return xr.where(even(c), 1.0, 0.2)

    assert not map_of_pure_neurons(map_results(uneven, seeds=2)).notes
