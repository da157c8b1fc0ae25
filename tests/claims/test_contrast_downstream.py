"""C11, C12 and C16 at a small size: what is compared with what, and the facts behind the traps."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Study
from rarefy.core.errors import OutOfTime
from rarefy.measure.probes import Probe, fit_probe
from rarefy.studies import get_study
from rarefy.sweep.grid import Grid, grid_of

ContrastRegression = get_study("contrast-regression")
ContrastSeparability = get_study("contrast-separability")
ContrastSimilarity = get_study("contrast-similarity")
FLOAT64 = Context(dtype=torch.float64)
ALL = (ContrastSimilarity, ContrastRegression, ContrastSeparability)
every_one = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
AS_TRAINED, BALANCED = 0, 1
pytestmark = pytest.mark.usefixtures("eager")


@cache
def measured(kind: type[Study]) -> tuple[Grid, dict[str, np.ndarray]]:
    # probes are the costly ones
    seeds = 8 if kind is ContrastSeparability else 20
    study = kind.at("tiny", seeds=seeds, reads=(0, 10, 40))
    grid = grid_of(study)
    return grid, study.simulate(grid.cells(np.arange(len(grid))), Context())


def at(grid: Grid, **coordinates: float) -> np.ndarray:
    chosen = np.ones(len(grid), dtype=bool)
    for name, value in coordinates.items():
        chosen &= grid.values[name] == value
    return chosen


def standard_errors_between(first: np.ndarray, second: np.ndarray) -> float:
    """How many standard errors the mean of ``second`` lies above that of ``first``."""
    error = np.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    return float((second.mean() - first.mean()) / error)


# ------------------------------------------------------------------------- what is tested on what


def encoders(eps_min: float = 0.1) -> tuple[ContrastSimilarity, Any]:
    study = ContrastSimilarity.at("tiny")
    assert isinstance(study, ContrastSimilarity)
    cells = grid_of(study).cells(np.arange(4))
    values = {**cells.values, "eps_min": np.full(4, eps_min)}
    trial = study.setup(Cells(values, cells.keys), FLOAT64)
    return study, study.trained(trial, FLOAT64)


def test_every_read_is_the_network_of_that_step_and_all_see_the_same_pairs() -> None:
    study, found = encoders()
    pairs = next(iter(found.pairs("test", 20, "as trained")))
    f, pure = found.embed(pairs)
    assert f.shape == (4, 2, len(study.reads), 20, study.neurons)
    for read in range(len(study.reads)):
        weights = {"weights": found.weights[:, read]}
        found.trial.bias.value = found.bias[:, read]
        for view, tokens in enumerate((pairs.x, pairs.y)):
            expected = found.trial.problem.embed(weights, tokens)
            torch.testing.assert_close(f[:, view, read], expected, rtol=1e-12, atol=1e-14)
    assert torch.equal(found.weights[:, 0], found.trial.weights)  # read 0 is untrained
    atoms = found.data.dictionary
    found.trial.bias.value = torch.zeros(4, study.d, dtype=torch.float64)
    expected = found.trial.problem.embed({"weights": atoms.mT}, pairs.x)
    torch.testing.assert_close(pure[:, 0], expected, rtol=1e-12, atol=1e-14)


def test_balanced_test_pairs_do_not_know_eps_min_and_pairs_as_trained_do() -> None:
    (_, rare), (_, frequent) = encoders(0.1), encoders(0.9)
    drawn = [
        [next(iter(found.pairs("test", 30, name))).tokens for found in (rare, frequent)]
        for name in ("as trained", "balanced")
    ]
    assert not torch.equal(*drawn[AS_TRAINED]) and torch.equal(*drawn[BALANCED])


def test_pairs_come_in_whole_chunks_but_the_last_and_training_never_saw_them() -> None:
    study, found = encoders()
    chunks = list(found.pairs("test", 2 * study.batch + 5, "as trained"))
    assert [chunk.tokens.shape[2] for chunk in chunks] == [study.batch, study.batch, 5]
    trained = found.data.sample(found.trial.draws, study.batch, 0).tokens
    other = next(iter(found.pairs("head", study.batch, "as trained"))).tokens
    for tokens in (trained, other):
        assert not (chunks[0].tokens[:, :, 0] == tokens[:, :, 0]).any()


@every_one
def test_runs_with_and_without_bias_are_the_same_before_training(kind: type[Study]) -> None:
    grid, found = measured(kind)
    bias = grid.values["bias_scale"]
    for name, values in found.items():
        if values.ndim > 2:
            assert np.array_equal(values[bias == 0, 0], values[bias == 1, 0]), name
            assert not np.array_equal(values[bias == 0, -1], values[bias == 1, -1]), name


@pytest.mark.parametrize("kind", [ContrastSimilarity, ContrastRegression], ids=lambda k: k.name)
def test_a_run_that_explodes_is_left_out_from_then_on_and_the_others_stay(
    kind: type[Study],
) -> None:
    study = kind.at("tiny")
    cells = grid_of(study).cells(np.arange(6))
    wild = {**cells.values, "sigma": np.array(cells.values["sigma"], copy=True)}
    wild["sigma"][2] = 1e11
    before, after = (study.simulate(Cells(v, cells.keys), FLOAT64) for v in (cells.values, wild))
    assert after["nonfinite_step"][2] >= 0
    name = "similarity" if kind is ContrastSimilarity else "mse"
    assert np.isnan(after[name][2, -1]).all()
    others = np.arange(6) != 2
    for name, values in before.items():
        np.testing.assert_allclose(after[name][others], values[others], rtol=1e-9, atol=1e-12)


@every_one
def test_testing_stops_when_time_is_over(kind: type[Study]) -> None:
    study = kind.at("tiny", steps=1, reads=(0, 1), figure_read=1)
    cells = grid_of(study).cells(np.arange(2))
    done: list[float] = []

    def advance(amount: float) -> None:
        done.append(amount)
        if len(done) == 2:  # the training step, then the first chunk
            object.__setattr__(context, "deadline", 0.0)

    context = Context(advance=advance)
    with pytest.raises(OutOfTime):
        study.simulate(cells, context)
    assert len(done) == 2


# -------------------------------------------------------------------------------- the traps, shown


def test_latents_alone_make_test_pairs_more_alike_as_eps_min_grows() -> None:
    """1 - prod(1 - activation eps_j): what no encoder can beat, and no learning makes."""
    grid, found = measured(ContrastSimilarity)
    for eps in (0.1, 0.5):
        here = found["latents"][at(grid, eps_min=eps, bias_scale=0.0)]
        for test, minority in ((AS_TRAINED, eps), (BALANCED, 1.0)):
            some = 1 - 0.7**5 * (1 - 0.3 * minority) ** 4
            error = np.sqrt(some * (1 - some) / (200 * len(here)))
            assert abs(here[:, test].mean() - some) < 4 * error


def test_c11_an_untrained_network_shows_the_trend_on_pairs_as_trained_only() -> None:
    grid, found = measured(ContrastSimilarity)
    rare, frequent = (
        found["similarity"][at(grid, eps_min=eps, bias_scale=0.0)][:, 0] for eps in (0.1, 0.5)
    )
    assert standard_errors_between(rare[:, AS_TRAINED], frequent[:, AS_TRAINED]) > 4
    assert abs(standard_errors_between(rare[:, BALANCED], frequent[:, BALANCED])) < 4


def test_c11_with_the_bias_some_pairs_have_no_embedding() -> None:
    grid, found = measured(ContrastSimilarity)
    assert (found["undefined"][at(grid, bias_scale=0.0)] == 0).all()
    with_bias = found["undefined"][at(grid, bias_scale=1.0)]
    assert (with_bias[:, 0] == 0).all() and with_bias[:, -1].mean() > 0.05


def test_c12_the_target_varies_more_with_frequent_features_unless_data_are_balanced() -> None:
    grid, found = measured(ContrastRegression)
    variance = (found["mse"] / found["unexplained"])[:, 0]
    rare, frequent = (variance[at(grid, eps_min=eps)] for eps in (0.1, 0.5))
    assert standard_errors_between(rare[:, AS_TRAINED], frequent[:, AS_TRAINED]) > 4
    assert abs(standard_errors_between(rare[:, BALANCED], frequent[:, BALANCED])) < 4


def test_c12_nothing_beats_one_neuron_a_feature_by_much() -> None:
    _, found = measured(ContrastRegression)
    assert (found["mse"].min(axis=1) > 0.5 * found["pure_encoder"]).all()


def test_c12_early_on_features_are_read_better_if_frequent_in_training() -> None:
    grid, found = measured(ContrastRegression)
    rare, frequent = (
        found["mse"][at(grid, eps_min=eps, bias_scale=0.0)][:, 1, BALANCED] for eps in (0.1, 0.5)
    )
    assert standard_errors_between(frequent, rare) > 4


def test_c16_both_readings_are_above_chance_and_one_neuron_a_feature_gets_nearly_all() -> None:
    grid, found = measured(ContrastSeparability)
    trained = found["accuracy"][at(grid, eps_min=1.0, bias_scale=0.0)][:, -1]
    assert trained[..., 0].mean() > 0.9 and trained[..., 1].mean() > 0.65
    assert (found["ceiling"] > 0.98).all()


def test_c16_an_untrained_network_is_hardly_pure_and_signs_can_be_read_all_the_same() -> None:
    _, found = measured(ContrastSeparability)
    pure, sign = found["pure"][:, 0], found["accuracy"][:, 0, :, 0]
    assert pure.mean() < found["pure"][:, -1].mean() / 2
    assert sign[pure == 0].mean() > 0.95


def test_c16_one_lost_probe_costs_itself_and_not_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def losing(embeddings: Tensor, labels: Tensor, strength: float) -> Probe:
        probe = fit_probe(embeddings, labels, strength)
        trained = probe.trained.clone()
        trained[0, 2] = False
        return replace(probe, trained=trained)

    monkeypatch.setattr("rarefy.studies.contrastive.separability.experiment.fit_probe", losing)
    study = ContrastSeparability.at("tiny")
    found = study.simulate(grid_of(study).cells(np.arange(2)), FLOAT64)
    assert np.isfinite(found["ceiling"]).all()
    assert np.isnan(found["accuracy"][0, :, 2]).all()
    assert np.isfinite(found["accuracy"]).sum() == found["accuracy"].size - 6
