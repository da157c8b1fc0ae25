"""P1-P5: pruned runs beside the same runs unpruned, and verdicts on results with known answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from rarefy import cli
from rarefy.core.contracts import Cells, Context, Study, Verdict
from rarefy.core.errors import UsageError
from rarefy.core.picture import HeatMap
from rarefy.measure.alignment import projections
from rarefy.measure.estimates import bootstrap_interval
from rarefy.measure.pruned import PruningEffect
from rarefy.studies._contrastive import group_means
from rarefy.studies._pruning_verdicts import early_read, growth_constant, state_read
from rarefy.studies._rates_verdicts import predicted_rates
from rarefy.studies._theorem_state import own_feature, theorem_state
from rarefy.studies.contrast_pruning import ContrastPruning
from rarefy.studies.contrast_pruning_map import ContrastPruningMap, gains
from rarefy.studies.contrast_pruning_rates import ContrastPruningRates
from rarefy.sweep.grid import Grid, grid_of
from rarefy.theory.contrastive import stage_1_growth, uniform_attention_moment
from rarefy.theory.contrastive_pruning import minority_rate_order, other_rate_order
from rarefy.train.neuron_pruning import NeuronPruning

pytestmark = pytest.mark.usefixtures("eager")
FLOAT64 = Context(dtype=torch.float64)
SAME = 1e-12
START = 8
SMALL: dict[str, Any] = {
    "seeds": 2,
    "alpha": (0.0, 0.2, 0.4),
    "start": (0, START),
    "eps_min": (0.3,),
    "bias_scale": (0.0, 1.0),
    "d1": 24,
    "batch": 16,
    "steps": 12,
    "reads": (0, 4, START, 12),
    "relax": 15,
    "effect_batches": 3,
    "moments": 6,
}


def pruning(**options: Any) -> ContrastPruning:
    study = ContrastPruning.at("tiny", **SMALL | options)
    assert isinstance(study, ContrastPruning)
    return study


def simulated(study: Study) -> tuple[Grid, dict[str, np.ndarray]]:
    grid = grid_of(study)
    return grid, study.simulate(grid.cells(np.arange(len(grid))), FLOAT64)


@cache
def measured() -> tuple[ContrastPruning, Grid, dict[str, np.ndarray]]:
    study = pruning()
    return study, *simulated(study)


def close(found: np.ndarray, expected: np.ndarray, name: str = "") -> None:
    largest = np.nanmax(np.abs(expected))
    np.testing.assert_allclose(found, expected, rtol=SAME, atol=SAME * largest, err_msg=name)


# -------------------------------------------------------------------------------------- paired runs


@pytest.mark.parametrize("begin", ["random", "theorem"])
def test_cells_without_pruning_are_an_unpruned_run_of_the_same_draws(begin: str) -> None:
    study, grid, found = measured()
    here = (grid.values["alpha"] == 0) & (grid.values["begin"] == begin)
    cells = grid.cells(np.flatnonzero(here))
    eps_min = cells.column("eps_min", FLOAT64)
    experiment = study.setup(
        cells,
        FLOAT64,
        eps=study.eps(eps_min),
        sigma=study.sigma * torch.ones_like(eps_min),
        bias_scale=cells.column("bias_scale", FLOAT64),
    )
    if begin == "theorem":
        parameters = theorem_state(experiment, FLOAT64, study.eps(eps_min), study.relax)
        experiment = replace(experiment, parameters=parameters)
    atoms = experiment.data.dictionary
    unpruned = experiment.train(
        FLOAT64,
        {
            "energy": lambda s: group_means(
                projections(s.parameters["weights"], atoms).square().sum(dim=1), study.majority
            ),
            "loss": lambda s: s.loss,
        },
        study.reads,
    )
    for name, values in unpruned.records.items():
        close(found[name][here], values.numpy(), name)


def test_paired_cells_share_their_state_until_pruning_starts_and_not_later() -> None:
    study, grid, found = measured()
    late = grid.values["start"] == START
    by_alpha = [np.flatnonzero(late & (grid.values["alpha"] == a)) for a in study.alpha]
    reads = np.array(study.reads) <= START  # a read at the start is before the first pruned step
    moments = study.moment_steps() <= START
    assert reads.sum() == 3 and moments.sum() >= 3
    unpruned = by_alpha[0]
    for rows in by_alpha[1:]:
        assert np.array_equal(grid.keys[rows], grid.keys[unpruned])
        # the loss is that of the step before; a rare feature may have no neuron, NaN in both
        for name in ("energy", "weight", "pure", "neurons_rare", "loss"):
            np.testing.assert_array_equal(
                found[name][rows][:, reads], found[name][unpruned][:, reads], err_msg=name
            )
        np.testing.assert_array_equal(
            found["neuron"][rows][:, moments], found["neuron"][unpruned][:, moments]
        )
        last = found["energy"][rows][:, -1] != found["energy"][unpruned][:, -1]
        assert last.all()


def test_pruning_from_the_first_step_differs_from_pruning_later() -> None:
    study, grid, found = measured()
    for alpha in study.alpha:
        rows = [
            np.flatnonzero((grid.values["alpha"] == alpha) & (grid.values["start"] == start))
            for start in (0, START)
        ]
        same = np.array_equal(*(found["energy"][part][:, 1] for part in rows))
        assert same == (alpha == 0)


def test_where_nothing_is_pruned_masked_is_dense() -> None:
    _, grid, found = measured()
    none = grid.values["alpha"] == 0
    assert np.isnan(found["pruned_rare"][none]).all()
    growth = found["extra_growth"][none]  # NaN where a rare feature has no neuron of its own
    assert (growth[~np.isnan(growth)] == 0).all() and (growth[..., 0] == 0).all()
    positive = found["positive"][none]
    np.testing.assert_array_equal(positive[..., 0], positive[..., 1])
    assert (found["predicted_fall"][none] == 0).all()


# -------------------------------------------------------------------- from the state of the theorem


@cache
def first_moment() -> tuple[ContrastPruning, Grid, dict[str, np.ndarray]]:
    """The theorem's state before any step, without noise; 16 of the 36 neurons are rare."""
    study = pruning(
        alpha=(0.0, 0.05, 0.2, 0.4, 0.6),
        eps_min=(0.3, 0.6),
        start=(0,),
        begin=("theorem",),
        sigma=0.0,
        steps=1,
        reads=(0,),
        relax=30,
    )
    return study, *simulated(study)


def test_p4_the_pruned_neurons_are_the_rare_features_as_far_as_those_go() -> None:
    study, grid, found = first_moment()
    assert (study.neurons, study.d, study.minority) == (36, 9, 4)
    for alpha, share in ((0.05, 1.0), (0.2, 1.0), (0.4, 1.0), (0.6, 16 / 22)):
        here = grid.values["alpha"] == alpha
        np.testing.assert_allclose(found["pruned_rare"][here], share, rtol=1e-6)
    np.testing.assert_allclose(found["neurons_rare"], 16 / 36)
    assert (found["pure"] == 4).all()


def test_p5_the_logit_falls_on_samples_with_a_rare_feature_and_on_no_other() -> None:
    """Without noise a sample without the feature does not excite a pruned neuron at all."""
    _, grid, found = first_moment()
    pruned = (grid.values["alpha"] > 0) & (grid.values["alpha"] < 0.5)
    change = found["positive"][pruned, 0, :, 1] - found["positive"][pruned, 0, :, 0]
    assert (change[:, 0] < -1e-5).all()
    assert change[:, 0].mean() < -0.01
    assert (np.abs(change[:, 1]) < SAME).all()
    # the lost share and the fall are then perfect signs once every rare feature loses a neuron
    # (14 of 16 do), and chance where nothing is left out
    assert (found["telling"][grid.values["alpha"] == 0.4, 0, :2] == 1).all()
    assert (found["telling"][pruned, 0, 0] > 0.5).all()
    assert (found["telling"][grid.values["alpha"] == 0, 0, :2] == 0.5).all()


def test_p1_the_rare_features_own_neurons_gain_and_by_more_than_the_others() -> None:
    _, grid, found = first_moment()
    pruned = (grid.values["alpha"] > 0) & (grid.values["alpha"] < 0.5)
    others, rare = found["extra_growth"][pruned, 0].T
    assert (rare > 0).all()
    assert (rare > 2 * others).all()


def test_more_pruning_adds_more_in_every_pair() -> None:
    study, grid, found = first_moment()
    rare = [found["extra_growth"][grid.values["alpha"] == a, 0, 1] for a in (0.05, 0.2, 0.4)]
    assert (rare[0] < rare[1]).all() and (rare[1] < rare[2]).all()


# ---------------------------------------------------------------------------- which state is judged


@pytest.mark.parametrize(
    ("begin", "start", "judged", "early"),
    [
        ("theorem", 0, 0, 4),
        ("random", 0, 4, 4),  # never untrained random weights
        ("random", 4, 4, START),
        ("theorem", 5, START, START),
        ("random", 11, 12, 12),
    ],
)
def test_the_state_that_is_judged(begin: str, start: int, judged: int, early: int) -> None:
    here = xr.Dataset(coords={"begin": begin, "start": start})
    assert state_read(pruning(), here) == judged
    assert early_read(pruning(), start) == early
    assert state_read(pruning(reads=(0, 4)), here) == min(judged, 4)


@pytest.mark.parametrize("tau", [1.0, 0.5])
@pytest.mark.parametrize("loss_form", ["plain", "times-tau"])
def test_the_growth_constant_is_that_of_stage_1_for_either_form_of_the_loss(
    loss_form: str, tau: float
) -> None:
    study = pruning(tau=tau, loss_form=loss_form)
    moment = uniform_attention_moment(1.0, study.activation, study.tokens, study.spread)
    factor = tau if loss_form == "times-tau" else 1.0
    growth = stage_1_growth(moment, study.lr, tau, study.batch, factor)
    assert growth_constant(study) == pytest.approx((growth - 1) / study.lr)


# ----------------------------------------------------------- verdicts on results with known answers

Made = Callable[[xr.Dataset], Any]


def fabricated(study: Study, seeds: int, values: dict[str, Made]) -> xr.Dataset:
    """Results in which every output is the given function of the coordinates."""
    lengths = {axis: list(getattr(study, axis)) for axis in study.axes}
    coordinates = {**lengths, "seed": np.arange(seeds), **study.coordinates()}
    grid = xr.Dataset(coords=coordinates)
    found = {}
    for output in study.outputs():
        dims = (*study.axes, "seed", *output.dims)
        zeros = xr.DataArray(
            np.zeros([len(coordinates[dim]) for dim in dims]),
            dims=dims,
            coords={dim: coordinates[dim] for dim in dims},
        )
        found[output.name] = (zeros + values[output.name](grid)).transpose(*dims)
    return xr.Dataset(found)


def outcomes(verdicts: list[Verdict], *words: str) -> set[str]:
    """The outcomes of the verdicts whose setting has all the words."""
    chosen = [v for v in verdicts if all(word in f"{v.claim} {v.setting}" for word in words)]
    assert chosen, words
    return {verdict.outcome for verdict in chosen}


JUDGED = pruning(alpha=(0.0, 0.1, 0.3), eps_min=(0.2, 0.4, 0.8), start=(0,), bias_scale=(0.0,))


def rare_rate(c: xr.Dataset) -> xr.DataArray:
    constant = growth_constant(JUDGED)
    return minority_rate_order(c["eps_min"], c["alpha"], JUDGED.lr, constant)


def other_rate(c: xr.Dataset) -> xr.DataArray:
    constant = growth_constant(JUDGED)
    return other_rate_order(c["eps_min"], c["alpha"], JUDGED.lr, constant, JUDGED.d)


def by_group(minority: Made, majority: Made) -> Made:
    return lambda c: xr.where(c["group"] == "minority", minority(c), majority(c))


def with_pruning(pruned: Made, without: Made) -> Made:
    return lambda c: xr.where(c["alpha"] > 0, pruned(c), without(c))


def one(c: xr.Dataset) -> float:
    return 1.0


def logits(contains: float, lacks: float) -> Made:
    """The positive logit, and by how much the mask changes it on samples of each kind."""
    return lambda c: (
        0.5 + (c["network"] == "masked") * xr.where(c["contains"] == "contains", contains, lacks)
    )


def scores(share: float, fall: float, size: float) -> Made:
    return lambda c: xr.zeros_like(c["score"], dtype=float) + [share, fall, size]


AS_CLAIMED: dict[str, Made] = {
    "energy": by_group(with_pruning(one, lambda c: c["eps_min"] ** 2), one),
    "weight": by_group(with_pruning(one, lambda c: c["eps_min"]), one),
    "pure": by_group(with_pruning(lambda c: JUDGED.neurons / JUDGED.d, lambda c: 0.0), one),
    "extra_growth": by_group(lambda c: 2 * rare_rate(c), lambda c: other_rate(c) / 2),
    "pruned_rare": lambda c: 0.9,
    "neurons_rare": lambda c: 0.4,
    "lucky_pruned": lambda c: 0.9,
    "positive": logits(-0.2, -0.01),
    "predicted_fall": lambda c: 0.2,
    "telling": scores(0.8, 0.9, 0.6),
    "loss": one,
    "neuron": one,
}
"""Theorem 3.2 to the letter."""


def judged(**changed: Made) -> list[Verdict]:
    few = partial(bootstrap_interval, resamples=50)  # the seeds are all alike: 50 are as good
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rarefy.studies._pruning_verdicts.bootstrap_interval", few)
        patch.setattr("rarefy.studies._alignment_verdicts.bootstrap_interval", few)
        return JUDGED.verdicts(fabricated(JUDGED, 4, AS_CLAIMED | changed), "tiny")


def test_results_as_claimed_hold_in_every_verdict() -> None:
    verdicts = judged()
    assert {verdict.outcome for verdict in verdicts} == {"holds"}
    assert {verdict.claim for verdict in verdicts} == {"P1", "P2", "P3", "P4", "P5"}
    rare = next(v for v in verdicts if "rare growth over (15)" in v.setting)
    assert rare.measured == "mean 2 [2, 2]" and rare.predicted == "at least 0.25"


EIGHTH, FLAT, SQUARED = (
    by_group(lambda c: rare_rate(c) / 8, lambda c: other_rate(c) / 2),
    by_group(lambda c: 2 * rare_rate(c) / c["alpha"].clip(min=0.1), lambda c: 0.0 * other_rate(c)),
    by_group(lambda c: 20 * rare_rate(c) * c["alpha"], lambda c: other_rate(c) / 2),
)
WRONG_WORLDS: dict[str, tuple[dict[str, Made], tuple[str, ...]]] = {
    "half of a quarter of (15)": ({"extra_growth": EIGHTH}, ("P1 rare growth over (15)",)),
    "the others eight times (16)": (
        {"extra_growth": by_group(lambda c: 2 * rare_rate(c), lambda c: 8 * other_rate(c))},
        ("P1 other growth over (16)",),
    ),
    "the others gain more": (
        {"extra_growth": by_group(lambda c: 2 * rare_rate(c), lambda c: 3 * rare_rate(c))},
        ("P1 other growth over (16)", "P1 rare features gain more"),
    ),
    "growth without alpha": ({"extra_growth": FLAT}, ("P1 rare growth linear in alpha",)),
    "growth with alpha squared": ({"extra_growth": SQUARED}, ("P1 rare growth linear in alpha",)),
    "growth with eps cubed": (
        {
            "extra_growth": by_group(
                lambda c: 10 * rare_rate(c) * c["eps_min"], lambda c: other_rate(c) / 2
            )
        },
        ("P1 rare growth no steeper than eps^2",),
    ),
    "pruning leaves the energies": (
        {"energy": by_group(lambda c: c["eps_min"] ** 2, one)},
        ("P2 exponent in eps_min, energy", "P2 exponent nearer 0 than without pruning, energy"),
    ),
    "pruning makes weights less equal": (
        {"weight": by_group(with_pruning(lambda c: c["eps_min"], one), one)},
        (
            "P2 exponent in eps_min, weight of own neurons",
            "P2 exponent nearer 0 than without pruning, weight of own neurons",
        ),
    ),
    "few pure neurons": (
        {"pure": by_group(with_pruning(lambda c: 0.4, lambda c: 0.0), one)},
        ("P3 pure neurons of a rare feature over m/d",),
    ),
    "fewer pure neurons": (
        {"pure": by_group(with_pruning(lambda c: 4.0, lambda c: 5.0), one)},
        ("P3 more pure neurons of rare features",),
    ),
    "chance decides who is pruned": (
        {"pruned_rare": lambda c: 0.4},
        ("P4 rare neurons over-represented", "P4 share of the pruned"),
    ),
    "a little more than chance": ({"pruned_rare": lambda c: 0.45}, ("P4 share of the pruned",)),
    "lucky neurons are spared": (
        {"lucky_pruned": lambda c: 0.05 * c["alpha"]},
        ("P4 the paper's rare lucky",),
    ),
    "all samples notice": (
        {"positive": logits(-0.2, -0.2)},
        ("P5 change on the other samples",),
    ),
    "twice the first order": (
        {"predicted_fall": lambda c: 0.1},
        ("P5 fall of the logit over its first-order value",),
    ),
    "the fall tells nothing": (
        {"telling": scores(0.8, 0.5, 0.4)},
        ("P5 the fall tells samples with a rare feature without labels",),
    ),
    "the control tells as much": (
        {"telling": scores(0.8, 0.9, 0.9)},
        ("P5 the fall tells them better",),
    ),
}


@pytest.mark.parametrize("world", WRONG_WORLDS)
def test_a_world_that_differs_in_one_thing_fails_there_and_nowhere_else(world: str) -> None:
    changed, failing = WRONG_WORLDS[world]
    verdicts = judged(**changed)
    for verdict in verdicts:
        name = f"{verdict.claim} {verdict.setting}"
        expected = "fails" if name.startswith(failing) else "holds"
        assert verdict.outcome == expected, (name, verdict.measured, verdict.note)
    for start in failing:
        assert any(f"{v.claim} {v.setting}".startswith(start) for v in verdicts), start


def test_a_logit_that_falls_on_the_other_samples_alone_does_not_hold_anywhere_in_p5() -> None:
    """It rises on samples with the rare feature: a ratio of the two changes is negative then."""
    verdicts = judged(positive=logits(0.01, -0.2), predicted_fall=lambda c: -0.01)
    assert outcomes(verdicts, "P5", "change of the positive logit on samples") == {"fails"}
    assert "holds" not in outcomes(verdicts, "P5", "change on the other samples over that on these")


def test_no_change_of_the_logit_at_all_holds_nowhere() -> None:
    verdicts = judged(positive=logits(0.0, 0.0))
    assert outcomes(verdicts, "P5", "change of the positive logit on samples") == {"fails"}
    assert outcomes(verdicts, "P5", "change on the other samples") == {"inconclusive"}


def test_a_bound_is_judged_where_it_is_tightest() -> None:
    def weak_at_one_place(c: xr.Dataset) -> xr.DataArray:
        there = (c["alpha"] == 0.1) & (c["eps_min"] == 0.4)
        return rare_rate(c) * xr.where(there, 0.1, 2.0)

    verdicts = judged(extra_growth=by_group(weak_at_one_place, lambda c: other_rate(c) / 2))
    found = [v for v in verdicts if "rare growth over (15)" in v.setting]
    assert len(found) == 2  # two beginnings
    for verdict in found:
        assert verdict.outcome == "fails" and verdict.measured.startswith("mean 0.1 ")
        assert "at alpha=0.1, eps_min=0.4, where it is tightest" in verdict.note


def test_results_without_a_value_hold_nothing() -> None:
    nothing = {name: (lambda c: np.nan) for name in AS_CLAIMED}
    assert {verdict.outcome for verdict in judged(**nothing)} == {"inconclusive"}


# ------------------------------------------------------------------------------------------ the map

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
        for name in ("energy", "pure", "best"):
            close(found[name][none], np.broadcast_to(found[name][none[:1]], (6, 2)), name)
        # six pruned cells, all different from it and from each other
        pruned = np.flatnonzero(here & (grid.values["alpha"] > 0))
        assert len(np.unique(found["energy"][np.append(pruned, none[0]), 0])) == 7
        cells = grid.cells(none[:1])
        eps_min = torch.full((1,), study.eps_min, dtype=torch.float64)
        experiment = study.setup(
            cells,
            FLOAT64,
            eps=study.eps(eps_min),
            sigma=torch.full_like(eps_min, study.sigma),
            bias_scale=cells.column("bias_scale", FLOAT64),
        )
        weights = experiment.train(FLOAT64, {}, []).parameters["weights"]
        energy = projections(weights, experiment.data.dictionary).square().sum(dim=1)
        close(found["energy"][none[:1]], group_means(energy, study.majority).numpy())


MAP = ContrastPruningMap.at(
    "tiny", alpha=(0.0, 0.1, 0.3), start=(0, 20), update=("dense",), bias_scale=(0.0,)
)


def map_results(gain: Made, seeds: int = 8) -> xr.Dataset:
    """A map of pure neurons and of log energies with these gains over the unpruned run."""
    minority = with_pruning(gain, lambda c: 0.0)
    values = {
        "energy": by_group(lambda c: np.exp(minority(c)), one),
        "pure": by_group(lambda c: 3.0 + minority(c), one),
        "best": one,
    }
    return fabricated(MAP, seeds, values)


def at(c: xr.Dataset, alpha: float, start: int) -> xr.DataArray:
    return (c["alpha"] == alpha) & (c["start"] == start)


def even(c: xr.Dataset) -> xr.DataArray:
    return c["seed"] % 2 == 0


def test_a_place_that_is_best_on_even_seeds_by_chance_does_not_hold() -> None:
    results = map_results(lambda c: 5.0 * at(c, 0.3, 20) * even(c) + 1.0 * at(c, 0.1, 0))
    verdicts = MAP.verdicts(results, "tiny")
    assert len(verdicts) == 2
    for verdict in verdicts:
        assert verdict.outcome == "fails" and "no effect at all" in verdict.note
        assert "at alpha=0.3, start 20" in verdict.note
        assert verdict.n == 4


def test_a_place_that_is_best_on_odd_seeds_only_is_not_even_chosen() -> None:
    results = map_results(lambda c: 9.0 * at(c, 0.3, 20) * ~even(c) + 1.0 * at(c, 0.1, 0))
    for verdict in MAP.verdicts(results, "tiny"):
        assert verdict.outcome == "holds" and "at alpha=0.1, start 0" in verdict.note
        assert verdict.measured == "mean 1 [1, 1]"


def test_pruning_that_only_harms_fails() -> None:
    results = map_results(lambda c: -1.0 - c["alpha"])
    for verdict in MAP.verdicts(results, "tiny"):
        assert verdict.outcome == "fails" and "at alpha=0.1" in verdict.note


def test_gains_are_paired_by_seed() -> None:
    results = map_results(lambda c: 2.0 * at(c, 0.1, 20))
    shifted = results.copy()
    shifted["pure"] = results["pure"] + 10.0 * results["seed"]
    for quantity in ("pure", "balance"):
        gain = gains(shifted, quantity)
        assert gain["alpha"].values.tolist() == [0.1, 0.3]
        expected = 2.0 * at(gain, 0.1, 20)  # type: ignore[arg-type]
        np.testing.assert_allclose(gain - expected, 0.0, atol=1e-12)


def test_an_unpruned_energy_of_zero_has_no_logarithm_and_no_warning() -> None:
    results = map_results(lambda c: 1.0)
    results["energy"] = results["energy"] * (results["seed"] > 0)
    assert gains(results, "balance").isel(seed=0).isnull().all()
    assert outcomes(MAP.verdicts(results, "tiny"), "log of squared weight") == {"holds"}


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
    assert panel.signed and list(panel.y) == ["0", "20"] and list(panel.x) == ["0.1", "0.3"]
    np.testing.assert_allclose(panel.values, [[3.0, -3.0], [0.0, 0.0]], atol=1e-12)


def test_the_maps_standard_error_is_that_of_a_mean_so_one_pair_marks_nothing() -> None:
    assert not map_of_pure_neurons(map_results(lambda c: 1.0, seeds=1)).notes

    # two pairs, gains 1 and 0.2: the mean 0.6 is less than two standard errors of 0.4
    def uneven(c: xr.Dataset) -> xr.DataArray:
        return xr.where(even(c), 1.0, 0.2)

    assert not map_of_pure_neurons(map_results(uneven, seeds=2)).notes


# -------------------------------------------------------------------------------------------- rates


def rates(**options: Any) -> ContrastPruningRates:
    study = ContrastPruningRates.at("tiny", **options)
    assert isinstance(study, ContrastPruningRates)
    return study


RATES = rates(features=(9, 16, 32), eps_min=(0.2, 0.4, 0.8), pruned=(1, 2, 4))


def rates_results(rare: Made, others: Made, study: ContrastPruningRates = RATES) -> xr.Dataset:
    return fabricated(study, 4, {"rare": rare, "others": others, "fall": one})


def order(name: str, study: ContrastPruningRates = RATES) -> Made:
    return lambda c: predicted_rates(study, c)[name]


def test_rates_as_claimed_hold_and_the_orders_are_those_of_15_and_16() -> None:
    c = rates_results(order("rare"), order("others"))
    at_one = predicted_rates(RATES, c).sel(features=16, pruned=2, eps_min=0.4)
    constant = growth_constant(RATES.sized(16))
    lr, alpha = RATES.sized(16).lr, 2 / (4 * 16)
    assert float(at_one["rare"]) == pytest.approx(minority_rate_order(0.4, alpha, lr, constant))
    assert float(at_one["others"]) == pytest.approx(other_rate_order(0.4, alpha, lr, constant, 16))
    results = rates_results(lambda c: 2 * order("rare")(c), lambda c: order("others")(c) / 2)
    verdicts = RATES.verdicts(results, "tiny")
    assert [verdict.outcome for verdict in verdicts] == ["holds"] * 5


@pytest.mark.parametrize(
    ("rare", "others", "failing"),
    [
        (
            lambda c: order("rare")(c) / 8,
            lambda c: order("others")(c) / 2,
            {"rare growth over (15)"},
        ),
        (order("rare"), lambda c: 8 * order("others")(c), {"other growth over (16)"}),
        (
            order("rare"),
            lambda c: order("rare")(c) / 45,
            {"other over rare growth, exponent in d"},
        ),
        (
            lambda c: 4 * order("rare")(c) / c["pruned"],
            lambda c: order("others")(c) / 2,
            {"rare growth, exponent in alpha"},
        ),
        (
            lambda c: 5 * order("rare")(c) * c["eps_min"],
            lambda c: order("others")(c) / 2,
            {"rare growth, exponent in eps"},
        ),
        # slower than eps^2 is what a lower bound allows
        (lambda c: order("rare")(c) / c["eps_min"], order("others"), set()),
    ],
)
def test_rates_that_differ_in_one_thing_fail_there(
    rare: Made, others: Made, failing: set[str]
) -> None:
    for verdict in RATES.verdicts(rates_results(rare, others), "tiny"):
        expected = "fails" if any(verdict.setting.startswith(f) for f in failing) else "holds"
        assert verdict.outcome == expected, (verdict.setting, verdict.measured)


def test_the_worst_of_the_rates_is_named() -> None:
    def weak_at_one_place(c: xr.Dataset) -> xr.DataArray:
        there = (c["features"] == 16) & (c["pruned"] == 1) & (c["eps_min"] == 0.8)
        return order("rare")(c) * xr.where(there, 0.1, 2.0)

    def strong_at_one_place(c: xr.Dataset) -> xr.DataArray:
        there = (c["features"] == 9) & (c["pruned"] == 2) & (c["eps_min"] == 0.2)
        return order("others")(c) * xr.where(there, 9.0, 1.0)

    results = rates_results(weak_at_one_place, strong_at_one_place)
    least, most = RATES.verdicts(results, "tiny")[:2]
    assert least.outcome == "fails" and "at d=16, 1 pruned, eps_min=0.8" in least.note
    assert most.outcome == "fails" and "at d=9, 2 pruned, eps_min=0.2" in most.note


def test_rates_without_a_value_hold_nothing_and_are_no_error() -> None:
    results = rates_results(lambda c: np.nan, lambda c: np.nan)
    assert {v.outcome for v in RATES.verdicts(results, "tiny")} == {"inconclusive"}


def test_rates_of_zero_make_a_table_all_the_same() -> None:
    """A bias above the weight: no neuron ever fires and pruning adds exactly nothing."""
    results = rates_results(lambda c: 0.0, lambda c: 0.0)
    (table,) = RATES.tables(results)
    assert len(table.rows) == 9


def test_the_count_of_pruned_neurons_is_exact_in_float32() -> None:
    for scale in ContrastPruningRates.scales:
        study = ContrastPruningRates.at(scale)
        assert isinstance(study, ContrastPruningRates)
        for d in study.features:
            neurons = study.sized(d).neurons
            share = torch.tensor([count / neurons for count in study.pruned])
            zero = torch.zeros(len(share), dtype=torch.int64)
            left = neurons - NeuronPruning(share, zero, zero, neurons).count
            assert left.tolist() == list(study.pruned)
            assert study.sized(d).alpha[1:] == tuple(c / neurons for c in study.pruned)


def test_rates_prune_the_rare_features_neurons_and_it_gains_most() -> None:
    study = rates(eps_min=(0.5,), d1=24, batch=16, relax=20)
    grid, found = simulated(study)
    for d in study.features:
        sized = study.sized(d)
        here = grid.values["features"] == d
        cells = grid.cells(np.flatnonzero(here))
        share = np.asarray(cells.values["pruned"]) / sized.neurons
        values = {**cells.values, "alpha": share, "start": np.zeros(len(cells))}
        experiment = sized.experiment("theorem", Cells(values, cells.keys), FLOAT64)
        assert experiment.pruning is not None
        out = ~experiment.pruning.mask(experiment.weights)
        assert out.sum(dim=1).tolist() == cells.values["pruned"].tolist()
        feature = own_feature(sized.neurons, d)
        assert (feature.expand_as(out)[out] == d - 1).all()
        # a mask by hand: copies are alike, so that it does not matter which of them it takes
        copy = torch.arange(sized.neurons) // d
        count = torch.as_tensor(cells.values["pruned"])[:, None]
        kept = (feature != d - 1) | (copy >= count)
        effect = PruningEffect(
            experiment.problem,
            experiment.parameters,
            kept,
            experiment.data,
            experiment.draws.spawn("effect"),
            torch.tensor([d - 1]),
            sized.batch,
            study.effect_batches,
        )
        own = (feature[:, None] == torch.arange(d)).expand(len(cells), -1, -1)
        growth = effect.extra_growth(sized.lr, own)[:, -1]
        np.testing.assert_allclose(found["rare"][here], growth.numpy(), rtol=1e-9)
        everyone = effect.extra_growth(sized.lr, torch.ones_like(own))[:, :-1].mean(dim=1)
        np.testing.assert_allclose(found["others"][here], everyone.numpy(), rtol=1e-9)
        few, many = (here & (grid.values["pruned"] == count) for count in study.pruned)
        for name in ("rare", "fall"):
            assert (found[name][few] > 0).all()
            assert (found[name][many] > found[name][few]).all()
        assert (found["rare"][here] > found["others"][here]).all()
    assert study.sized(9).activation == pytest.approx(0.3, abs=1e-3)


# ---------------------------------------------------------------------------------------- bad input

PRUNING, MAPS, RATED = ContrastPruning, ContrastPruningMap, ContrastPruningRates
BOTH = (PRUNING, MAPS)
WRONG: list[tuple[tuple[type[Study], ...], dict[str, Any], str]] = [
    (BOTH, {"alpha": (0.0, 1.0)}, "alpha=1.0: the share of neurons left out must be in [0, 1)"),
    (BOTH, {"alpha": (0.0, -0.1)}, "alpha=-0.1: the share of neurons left out must be in [0, 1)"),
    (BOTH, {"alpha": (0.0, float("nan"))}, "alpha=nan: the share of neurons left out must be"),
    (BOTH, {"alpha": (0.1, 0.2)}, "alpha=(0.1, 0.2): needs 0 (not pruned) and a value above it"),
    (BOTH, {"alpha": "much"}, "alpha='much': must be a number"),
    (BOTH, {"start": (0, 40)}, "start=40: pruning must start at a step in 0..39"),
    (BOTH, {"start": (-1,)}, "start=-1: pruning must start at a step in 0..39"),
    (BOTH, {"minority": 0}, "minority=0: must be at least 1: no feature is rare"),
    (BOTH, {"majority": 0}, "majority=0: must be at least 1"),
    (BOTH, {"d1": 8}, "d1=8: must be at least the number of features, 9"),
    ((PRUNING,), {"eps_min": (0.5, 0.0)}, "eps_min=0.0: a feature frequency must be in (0, 1]"),
    ((MAPS,), {"eps_min": 1.5}, "eps_min=1.5: a feature frequency must be in (0, 1]"),
    ((PRUNING,), {"update": "half"}, "update='half': must be one of dense, masked, project"),
    ((MAPS,), {"update": ("dense", "half")}, "update='half': must be one of dense, masked"),
    ((PRUNING,), {"begin": ("end",)}, "begin='end': must be one of random, theorem"),
    ((PRUNING,), {"neurons": 8}, "neurons=8: a neuron a feature: at least d=9"),
    ((PRUNING,), {"reads": (0, 41)}, "reads=(0, 41): rising steps between 0 and steps=40"),
    ((PRUNING,), {"reads": (20, 20)}, "reads=(20, 20): rising steps between 0 and steps=40"),
    ((PRUNING,), {"reads": (-1, 20)}, "reads=(-1, 20): rising steps between 0 and steps=40"),
    ((PRUNING,), {"reads": ()}, "reads=(): rising steps between 0 and steps=40"),
    ((PRUNING,), {"relax": 0}, "relax=0: must be at least 1"),
    ((PRUNING,), {"effect_batches": 0}, "effect_batches=0: must be at least 1"),
    ((PRUNING,), {"moments": 1}, "moments=1: must be at least 2"),
    ((MAPS,), {"alpha": (0.0,)}, "alpha=(0.0,): needs 0 (not pruned) and a value above it"),
    ((RATED,), {"features": (2, 9)}, "features=2: must be at least 3: log log d must be positive"),
    ((RATED,), {"features": (9, 64)}, "d1=40: must be at least the number of features, 64"),
    ((RATED,), {"features": (9,)}, "features=(9,): needs two values: a slope is fitted"),
    ((RATED,), {"pruned": (2,)}, "pruned=(2,): needs two values: a slope is fitted"),
    ((RATED,), {"pruned": (1, 5)}, "pruned=5: must be in 1..copies=4: the rare feature's own"),
    ((RATED,), {"pruned": (0, 1)}, "pruned=0: must be in 1..copies=4: the rare feature's own"),
    ((RATED,), {"eps_min": (0.5, 2.0)}, "eps_min=2.0: a feature frequency must be in (0, 1]"),
    ((RATED,), {"batch": 1}, "batch=1: must be at least 2: one sample has no negatives"),
    ((RATED,), {"relax": 0}, "relax=0: must be at least 1"),
    ((RATED,), {"bias_scale": (-1.0,)}, "bias_scale=-1.0: must be finite and at least 0"),
]


@pytest.mark.parametrize(
    ("kind", "wrong", "message"),
    [(kind, wrong, message) for kinds, wrong, message in WRONG for kind in kinds],
)
def test_a_value_that_makes_no_sense_is_one_line(
    kind: type[Study], wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        kind.at("tiny", **wrong)
    assert "\n" not in str(caught.value)


def test_fewer_neurons_than_features_are_fine_from_random_weights() -> None:
    assert pruning(neurons=8, begin=("random",)).neurons == 8


def test_pruning_without_any_pruned_share_is_refused_before_it_is_run() -> None:
    """Verdicts and pictures compare with a pruned share: there must be one."""
    with pytest.raises(UsageError, match=re.escape("alpha=(0.0,)")):
        ContrastPruning.at("tiny", alpha=(0.0,))


def test_rates_without_a_batch_to_measure_on_are_refused_before_they_are_run() -> None:
    with pytest.raises(UsageError, match="effect_batches=0: must be at least 1"):
        ContrastPruningRates.at("tiny", effect_batches=0)


def test_on_the_command_line_it_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rarefy.studies.load_studies", lambda: {PRUNING.name: PRUNING})
    words = ["run", "contrast-pruning", "--scale", "tiny", "--set", "alpha=0,1"]
    assert cli.main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == ("error: alpha=1.0: the share of neurons left out must be in [0, 1)\n")
    assert list(tmp_path.iterdir()) == []
