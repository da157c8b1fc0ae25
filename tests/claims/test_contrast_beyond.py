"""Two assumptions dropped: what stays when neither is, and verdicts with known answers."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from pruning_results import Made, fabricated, one
from torch import Tensor

from rarefy.core.contracts import Context, Verdict
from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.data.sparse_coding import Companions, SparseCoding
from rarefy.measure.alignment import projections, squared_cosines
from rarefy.studies import get_study
from rarefy.sweep.grid import Grid, grid_of
from rarefy.train.contrastive import TRAINED_ATTENTION

ContrastBeyond = get_study("contrast-beyond")
pytestmark = pytest.mark.usefixtures("eager")
FLOAT64 = Context(dtype=torch.float64)
SAME = 1e-12
SMALL: dict[str, Any] = {
    "seeds": 2,
    "eps_min": (0.5,),
    "share": (0.0, 1.0),
    "alpha": (0.0, 0.3),
    "bias_scale": (0.0,),
    "d1": 16,
    "batch": 12,
    "steps": 16,
    "reads": (0, 8, 16),
}


def beyond(**options: Any) -> ContrastBeyond:
    study = ContrastBeyond.at("tiny", **SMALL | options)
    assert isinstance(study, ContrastBeyond)
    return study


@cache
def measured() -> tuple[ContrastBeyond, Grid, dict[str, np.ndarray]]:
    study = beyond()
    grid = grid_of(study)
    return study, grid, study.simulate(grid.cells(np.arange(len(grid))), FLOAT64)


def rows(grid: Grid, **values: object) -> np.ndarray:
    """Positions of the cells with these values."""
    return np.flatnonzero(np.all([grid.values[k] == v for k, v in values.items()], axis=0))


def close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=SAME, atol=SAME * np.abs(expected).max())


# -------------------------------------------------------------------------- when neither is dropped


def group_means(study: ContrastBeyond, values: Tensor) -> Tensor:
    groups = values.split([study.majority, study.minority], dim=1)
    return torch.stack([group.mean(dim=1) for group in groups], dim=1)


def measured_energy(study: ContrastBeyond, trial: Any, context: Context) -> np.ndarray:
    def energy(state: Any) -> Tensor:
        along = projections(state.parameters["weights"], trial.data.dictionary)
        return group_means(study, along.square().sum(dim=1))

    found = trial.train(context, {"energy": energy}, study.reads)
    return np.asarray(found.records["energy"].numpy())


class SignsOfTheirOwn(SparseCoding):
    """The plain data but for the stream of the signs, which companions keep apart."""

    def _signed_support(self, draws: Draws, samples: int, step: int) -> Tensor:
        signed = super()._signed_support(draws, samples, step)
        return signed.abs() * draws.sign("sign", (samples, self.eps.shape[1]), step)


def test_no_companions_fixed_attention_no_pruning_is_the_plain_dynamics_but_for_signs() -> None:
    study, grid, found = measured()
    here = rows(grid, share=0.0, attention="fixed", alpha=0.0)
    trial = study.setup(grid.cells(here), FLOAT64)  # as in the alignment study
    given = {field.name: getattr(trial.data, field.name) for field in fields(SparseCoding)}
    assert given["companions"] is None
    alike = replace(trial, data=SignsOfTheirOwn(**given))
    close(found["energy"][here], measured_energy(study, alike, FLOAT64))


def test_and_signs_change_nothing_in_law() -> None:
    """The same runs with signs drawn otherwise: paired differences of the log energies have a
    mean within four standard errors of 0, at every read and in both groups."""
    study = beyond(seeds=40, share=(0.0,), attention=("fixed",), steps=24, reads=(8, 24))
    grid = grid_of(study)
    cells = grid.cells(rows(grid, alpha=0.0))
    apart = study.simulate(cells, Context())["energy"]
    plain = measured_energy(study, study.setup(cells, Context()), Context())
    assert (apart != plain).mean() > 0.9
    gap = np.log(apart) - np.log(plain)
    error = gap.std(axis=0, ddof=1) / np.sqrt(len(gap))
    assert (np.abs(gap.mean(axis=0)) < 4 * error).all()
    assert (error < 0.2).all()


def test_cells_of_one_seed_begin_alike_and_then_each_choice_matters() -> None:
    study, grid, found = measured()
    for seed in range(study.seeds):
        here = rows(grid, seed=seed)
        assert len(here) == 8 and len(set(grid.keys[here])) == 1
        for name in ("best", "energy", "pure"):
            close(found[name][here, 0], np.broadcast_to(found[name][here[0], 0], (8, 2)))
        assert len(np.unique(found["energy"][here, -1, 0])) == 8


def test_trained_attention_begins_at_the_identity_and_moves() -> None:
    study, grid, found = measured()
    fixed, trained = rows(grid, attention="fixed"), rows(grid, attention="trained")
    on_itself = found["on_itself"]
    close(on_itself[fixed], np.broadcast_to(on_itself[fixed][:, :1], (len(fixed), 3)))
    close(on_itself[trained, 0], on_itself[fixed, 0])
    assert (on_itself[trained, 1:] != on_itself[trained, :1]).all()
    assert ((on_itself > 1 / study.tokens) & (on_itself < 1)).all()


def test_trained_attention_does_not_decay() -> None:
    """Neurons of weight zero give attention no gradient: then it stays where it begins."""
    study = beyond(weight_decay=0.1, attention=("trained",))
    cells = grid_of(study).cells(np.arange(2))
    trial = study.setup(cells, FLOAT64, train_attention=True)
    nothing = {**trial.parameters, "weights": torch.zeros_like(trial.weights)}
    after = replace(trial, parameters=nothing).train(FLOAT64, {}, []).parameters
    moved = trial.train(FLOAT64, {}, []).parameters
    for name in TRAINED_ATTENTION:
        assert torch.equal(after[name], trial.parameters[name])
        assert not torch.equal(moved[name], trial.parameters[name])


def test_pruning_and_attention_are_told_apart_in_any_order_of_the_cells() -> None:
    study, grid, found = measured()
    order = np.random.default_rng(0).permutation(len(grid))
    turned = study.simulate(grid.cells(order), FLOAT64)
    for name, values in found.items():
        np.testing.assert_allclose(turned[name], values[order], rtol=1e-9, err_msg=name)


def test_best_is_the_largest_cosine() -> None:
    study, grid, found = measured()
    here = rows(grid, share=0.0, attention="fixed", alpha=0.0)
    trial = study.setup(grid.cells(here), FLOAT64)
    cosine = squared_cosines(trial.weights, trial.data.dictionary).sqrt().amax(dim=1)
    close(found["best"][here, 0], group_means(study, cosine).numpy())


# --------------------------------------------------------------------------------------- companions


@pytest.mark.parametrize(("majority", "minority"), [(5, 4), (2, 5), (1, 3), (4, 4), (3, 1)])
def test_every_rare_feature_has_a_frequent_companion(majority: int, minority: int) -> None:
    of = beyond(majority=majority, minority=minority).companions()
    assert len(of) == majority + minority
    assert of[:majority] == tuple(range(majority))  # their own coin
    assert of[majority:] == tuple(k % majority for k in range(minority))


def test_with_share_1_a_rare_feature_comes_with_its_companion_only() -> None:
    study = beyond(share=(0.0, 1.0), alpha=(0.0, 0.3), attention=("fixed",))
    grid = grid_of(study)
    cells = grid.cells(np.arange(len(grid)))
    share = cells.column("share", FLOAT64)
    companions = Companions(study.companions(), share)
    data = study.setup(cells, FLOAT64, companions=companions).data
    present = data.sample(cells.draws(FLOAT64), 400, 0).present()
    rare, companion = present[:, :, study.majority :], present[:, :, : study.minority]
    alone = (rare & ~companion).any(dim=1).any(dim=1)
    assert torch.equal(alone, share == 0)
    assert rare.any(dim=1).all()


# ----------------------------------------------------------- verdicts on results with known answers

JUDGED = beyond(eps_min=(0.1, 0.25, 0.5, 1.0))
OUTPUTS = tuple(output.name for output in JUDGED.outputs())


def judged(**values: Made) -> dict[str, list[Verdict]]:
    found: dict[str, list[Verdict]] = {}
    made = dict.fromkeys(OUTPUTS, lambda c: 0.0) | values
    for verdict in JUDGED.verdicts(fabricated(JUDGED, 5, made), "tiny"):
        found.setdefault(verdict.claim, []).append(verdict)
    return found


def rare(made: Made) -> Made:
    return lambda c: xr.where(c["group"] == "minority", made(c), 0.0)


@pytest.mark.parametrize(
    ("best", "outcome"),
    [
        (lambda c: c["eps_min"] + 0.01 * c["seed"], "holds"),
        (lambda c: 1 - c["eps_min"] - 0.01 * c["seed"], "fails"),
        (lambda c: 0.5, "inconclusive"),
    ],
)
@pytest.mark.parametrize("read", [8, 16])
def test_c10_follows_the_largest_cosine_of_the_unpruned_runs_in_the_middle_and_at_the_end(
    best: Made, outcome: str, read: int
) -> None:
    def only_there(c: xr.Dataset) -> xr.DataArray:
        there = (c["alpha"] == 0) & (c["read"] == read) & (c["group"] == "minority")
        return xr.where(there, best(c), 7.0)

    verdicts = judged(best=only_there)["C10"]
    assert len(verdicts) == 8  # attention, share and two reads
    for verdict in verdicts:
        there = f"step {read}," in verdict.setting
        assert verdict.outcome == (outcome if there else "inconclusive")
        assert verdict.n == 20
    assert sum(f"step {read}," in verdict.setting for verdict in verdicts) == 4


@pytest.mark.parametrize(
    ("gain", "outcome"), [(1.0, "holds"), (-1.0, "fails"), (0.0, "fails"), (np.nan, "inconclusive")]
)
def test_p3_is_the_paired_gain_of_pure_neurons_at_the_end(gain: float, outcome: str) -> None:
    def pure(c: xr.Dataset) -> xr.DataArray:
        there = (c["alpha"] > 0) & (c["read"] == 16)
        return 3.0 + 10.0 * c["seed"] + xr.where(there, gain, 0.0)

    verdicts = judged(pure=rare(pure))["P3"]
    assert len(verdicts) == 4
    assert {verdict.outcome for verdict in verdicts} == {outcome}
    if gain == 0:
        assert all("no effect at all" in verdict.note for verdict in verdicts)


def test_p3_is_about_rare_features_only() -> None:
    """At eps_min = 1 no feature is rare: what pruning does there does not count."""

    def pure(c: xr.Dataset) -> xr.DataArray:
        return (c["alpha"] > 0) * xr.where(c["eps_min"] == 1.0, -50.0, 1.0)

    verdicts = judged(pure=rare(pure))["P3"]
    assert {verdict.outcome for verdict in verdicts} == {"holds"}
    assert all(verdict.measured == "mean 1 [1, 1]" for verdict in verdicts)


def test_the_reads_that_are_judged() -> None:
    assert beyond().judged_reads() == (8, 16)
    assert beyond(reads=(4, 8, 12, 16)).judged_reads() == (12, 16)
    assert beyond(reads=(16,)).judged_reads() == (16,)
    assert len(JUDGED.picture(fabricated(JUDGED, 2, dict.fromkeys(OUTPUTS, one)))[0].panels) == 2


def test_the_paper_scale_has_half_the_papers_bias() -> None:
    study = ContrastBeyond.at("paper")
    assert isinstance(study, ContrastBeyond)
    assert study.bias_scale == (0.0, 0.5) and study.sigma == 0.03


def test_each_setting_is_judged_by_its_own_runs() -> None:
    def pure(c: xr.Dataset) -> xr.DataArray:
        there = (c["attention"] == "trained") & (c["share"] == 1.0)
        return (c["alpha"] > 0) * xr.where(there, 1.0, -1.0)

    for verdict in judged(pure=rare(pure))["P3"]:
        there = "attention trained, always with companion" in verdict.setting
        assert verdict.outcome == ("holds" if there else "fails")


def test_settings_are_named_in_words() -> None:
    study = beyond(share=(0.0, 0.5, 1.0))
    results = fabricated(study, 2, dict.fromkeys(OUTPUTS, one))
    named = {v.setting.split("alpha=0.3, ")[-1] for v in study.verdicts(results, "tiny")}
    for words in (
        "attention fixed, independent, no bias, d=9 m=24",
        "attention trained, always with companion, no bias, d=9 m=24",
        "attention fixed, companion 0.5, no bias, d=9 m=24",
    ):
        assert words in named


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"share": (0.0, 1.5)}, "share=1.5: must be between 0 and 1"),
        ({"share": (-0.1,)}, "share=-0.1: must be between 0 and 1"),
        ({"share": (float("nan"),)}, "share=nan: must be between 0 and 1"),
        ({"attention": ("free",)}, "attention='free': must be one of fixed, trained"),
        ({"alpha": (0.0, 1.0)}, "alpha=1.0: the share of neurons left out must be in [0, 1)"),
        ({"alpha": (0.1, 0.2)}, "alpha=(0.1, 0.2): needs 0 (not pruned) and a value above it"),
        ({"alpha": (0.0, 0.02)}, "alpha=0.02: leaves out none of the 24 neurons; must be more"),
        ({"alpha": (0.0,)}, "alpha=(0.0,): needs 0 (not pruned) and a value above it"),
        ({"minority": 0}, "minority=0: must be at least 1"),
        ({"eps_min": (0.0,)}, "eps_min=0.0: a feature frequency must be in (0, 1]"),
        ({"d1": 8}, "d1=8: must be at least the number of features, 9"),
        ({"reads": (0, 17)}, "reads=(0, 17): rising steps between 0 and steps=16"),
        ({"reads": (8, 4)}, "reads=(8, 4): rising steps between 0 and steps=16"),
        ({"reads": ()}, "reads=(): rising steps between 0 and steps=16"),
    ],
)
def test_a_value_that_makes_no_sense_is_one_line(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        beyond(**wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("reads", [(8, 8), (-1, 8)])
def test_a_read_twice_or_before_the_start_is_refused_before_it_is_run(
    reads: tuple[int, ...],
) -> None:
    with pytest.raises(UsageError, match="rising steps between 0 and steps=16"):
        beyond(reads=reads)
