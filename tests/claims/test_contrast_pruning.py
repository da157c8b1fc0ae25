"""P2-P5: pruned runs beside the same runs unpruned, and what is measured of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from pruning_results import FLOAT64, SAME, START, close, pruning, simulated

from rarefy import cli
from rarefy.core.errors import UsageError
from rarefy.measure.alignment import projections
from rarefy.measure.neurons import lucky
from rarefy.studies import get_study
from rarefy.studies.contrastive.setting import group_means
from rarefy.studies.contrastive.theorem_state import theorem_state
from rarefy.sweep.grid import Grid
from rarefy.theory.contrastive import stage_1_growth, uniform_attention_moment

ContrastPruning = get_study("contrast-pruning")
pytestmark = pytest.mark.usefixtures("eager")


@cache
def measured() -> tuple[ContrastPruning, Grid, dict[str, np.ndarray]]:
    study = pruning()
    return study, *simulated(study)


# -------------------------------------------------------------------------------------- paired runs


@pytest.mark.parametrize("begin", ["random", "theorem"])
def test_cells_without_pruning_are_an_unpruned_run_of_the_same_draws(begin: str) -> None:
    study, grid, found = measured()
    here = (grid.values["alpha"] == 0) & (grid.values["begin"] == begin)
    cells = grid.cells(np.flatnonzero(here))
    trial = study.setup(cells, FLOAT64)
    if begin == "theorem":
        parameters = theorem_state(trial, FLOAT64, study.relax)
        trial = replace(trial, parameters=parameters)
    atoms = trial.data.dictionary
    unpruned = trial.train(
        FLOAT64,
        {
            "energy": lambda s: group_means(
                projections(s.parameters["weights"], atoms).square().sum(dim=1), study.majority
            ),
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
    assert reads.sum() == 3
    unpruned = by_alpha[0]
    for rows in by_alpha[1:]:
        assert np.array_equal(grid.keys[rows], grid.keys[unpruned])
        for name in ("energy", "norm", "pure", "neurons_rare"):  # NaN in both where none is pure
            np.testing.assert_array_equal(
                found[name][rows][:, reads], found[name][unpruned][:, reads], err_msg=name
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


def test_where_nothing_is_pruned_all_networks_are_the_dense_one() -> None:
    _, grid, found = measured()
    none = grid.values["alpha"] == 0
    assert np.isnan(found["pruned_rare"][none]).all()
    logits = found["positive"][none]
    np.testing.assert_array_equal(logits[..., 0], logits[..., 1])
    assert (found["lucky_pruned"][none] == 0).all()
    assert np.isin(found["pure_pruned"][none & (grid.values["begin"] == "theorem")], [0.0]).all()


def test_lucky_neurons_are_counted_once_at_the_start() -> None:
    study = pruning(eps_min=(0.9,), neurons=300, begin=("random",), start=(0,), bias_scale=(0.0,))
    grid, found = simulated(study)
    here = np.arange(len(grid))
    cells = grid.cells(here)
    trial = study.trial("random", cells, FLOAT64)
    along = projections(trial.weights, trial.data.dictionary)
    rare = lucky(along, cells.column("eps_min", FLOAT64))[:, :, study.majority :].any(dim=2)
    assert rare.any()
    np.testing.assert_array_equal(found["lucky"][here], rare.sum(dim=1).numpy())
    assert trial.pruning is not None
    out = ~trial.pruning.mask(trial.weights)
    first = found["lucky_pruned"][here][:, 0]
    np.testing.assert_array_equal(first, (rare & out).sum(dim=1).numpy())
    assert (found["lucky_pruned"] <= found["lucky"][:, None]).all()


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
        reads=(0, 1),
        relax=30,
        majority=5,
        minority=4,
    )
    return study, *simulated(study)


def test_p4_the_pruned_neurons_are_the_rare_features_as_far_as_those_go() -> None:
    study, grid, found = first_moment()
    assert (study.neurons, study.d, study.minority) == (36, 9, 4)
    for alpha, share in ((0.05, 1.0), (0.2, 1.0), (0.4, 1.0), (0.6, 16 / 22)):
        here = grid.values["alpha"] == alpha
        np.testing.assert_allclose(found["pruned_rare"][here][:, 0], share, rtol=1e-6)
    np.testing.assert_allclose(found["neurons_rare"][:, 0], 16 / 36)
    assert (found["pure"][:, 0] == 4).all()
    lost = np.round(grid.values["alpha"] * 36)
    np.testing.assert_allclose(found["pure_pruned"][:, 0], np.minimum(lost, 16) / 16, rtol=1e-6)
    # a neuron's norm is in proportion to its feature's frequency (13)
    rare_over_frequent = found["norm"][:, 0, 1] / found["norm"][:, 0, 0]
    np.testing.assert_allclose(rare_over_frequent, grid.values["eps_min"], rtol=1e-6)


def test_p5_the_logit_falls_on_samples_with_a_rare_feature_and_on_no_other() -> None:
    """Without noise a sample without the feature does not excite a pruned neuron at all."""
    _, grid, found = first_moment()
    pruned = (grid.values["alpha"] > 0) & (grid.values["alpha"] < 0.5)
    change = found["positive"][pruned, 0, :, 1] - found["positive"][pruned, 0, :, 0]
    assert (change[:, 0] < -1e-5).all()
    assert change[:, 0].mean() < -0.01
    assert (np.abs(change[:, 1]) < SAME).all()


@pytest.mark.parametrize("tau", [1.0, 0.5])
@pytest.mark.parametrize("loss_form", ["plain", "times-tau"])
def test_the_growth_constant_is_that_of_stage_1_for_either_form_of_the_loss(
    loss_form: str, tau: float
) -> None:
    study = pruning(tau=tau, loss_form=loss_form)
    moment = uniform_attention_moment(1.0, study.activation, study.tokens, study.spread)
    factor = tau if loss_form == "times-tau" else 1.0
    growth = stage_1_growth(moment, study.lr, tau, study.batch, factor)
    assert study.growth_constant == pytest.approx((growth - 1) / study.lr)


# ---------------------------------------------------------------------------------------- bad input


def test_fewer_neurons_than_features_are_fine_from_random_weights() -> None:
    assert pruning(neurons=8, begin=("random",)).neurons == 8


def test_what_becomes_of_pruned_neurons_is_the_maps_question_not_this_ones() -> None:
    assert not hasattr(pruning(), "update")
    with pytest.raises(UsageError, match="update"):
        ContrastPruning.at("tiny", update="masked")


def test_on_the_command_line_it_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "rarefy.studies.load_studies", lambda: {"contrast-pruning": ContrastPruning}
    )
    words = ["run", "contrast-pruning", "--scale", "tiny", "--set", "alpha=0,1"]
    assert cli.main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == ("error: alpha=1.0: the share of neurons left out must be in [0, 1)\n")
    assert list(tmp_path.iterdir()) == []
