"""C11, C12 and C16 at a small size: what is compared with what, and how it is judged."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import fabricated
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Study, Verdict
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


# ------------------------------------------------------------------------------------- the verdicts


def by_hand(kind: type[Study], seeds: int = 20, **values: Any) -> tuple[Study, xr.Dataset]:
    """Results of a study at scale tiny that are 0 but for ``values``, arrays with any of the
    dimensions."""
    study = kind.at("tiny", seeds=seeds, eps_min=(0.1, 0.2, 0.3, 0.4, 0.5))
    return study, fabricated(study, seeds, values, rest=0.0)


def along_eps(values: Any) -> xr.DataArray:
    return xr.DataArray(np.asarray(values), {"eps_min": np.array([0.1, 0.2, 0.3, 0.4, 0.5])})


def noise(size: float, seed: int = 0, seeds: int = 20) -> xr.DataArray:
    values = np.random.default_rng(seed).normal(0, size, (seeds, 5))
    return xr.DataArray(
        values, {"seed": np.arange(seeds), "eps_min": along_eps(np.zeros(5))["eps_min"].values}
    )


def outcomes(verdicts: list[Verdict], *words: str) -> set[str]:
    chosen = [v.outcome for v in verdicts if all(word in v.setting for word in words)]
    assert chosen, words
    return set(chosen)


@every_one
def test_one_primary_reading_and_every_read_of_a_trained_network_with_its_bias(
    kind: type[Study],
) -> None:
    study, results = by_hand(kind, seeds=3)
    found = study.verdicts(results, "tiny")
    settings = [verdict.setting for verdict in found]
    assert len(set(settings)) == len(settings)
    (primary,) = [v for v in found if v.role == "primary"]
    assert "step 40, paper's bias" in primary.setting and primary.claim == f"{study.claims[0]}.1"
    assert [v.claim for v in found if v.setting.startswith("step 20: ")] == [study.claims[0]]


def test_c11_a_trend_that_the_data_alone_make_is_told_by_the_controls() -> None:
    latents = along_eps([0.80, 0.82, 0.84, 0.86, 0.88]) + noise(0.002)
    similarity = latents - 0.1 + noise(0.001, 1)
    study, results = by_hand(ContrastSimilarity, similarity=similarity, latents=latents)
    verdicts = study.verdicts(results, "tiny")
    (primary,) = [v for v in verdicts if v.claim == "C11.1"]
    assert primary.outcome == "holds" and "a perfect encoder: rho 0.9" in primary.note
    assert outcomes(verdicts, "less the perfect encoder's") == {"inconclusive"}
    assert [v.claim for v in verdicts if "less the perfect" in v.setting] == [""]


def test_c11_a_rise_made_by_fewer_zero_embeddings_is_told_from_more_alike_pairs() -> None:
    undefined = along_eps([0.17, 0.15, 0.13, 0.11, 0.09]) + noise(0.002)
    alike = along_eps([0.96, 0.95, 0.94, 0.93, 0.92]) + noise(0.002, 1)
    similarity = alike * (1 - undefined)
    study, results = by_hand(ContrastSimilarity, similarity=similarity, undefined=undefined)
    verdicts = study.verdicts(results, "tiny")
    assert outcomes(verdicts, "mean cosine, test as trained, step 40") >= {"holds"}
    assert outcomes(verdicts, "pairs that have an embedding") == {"fails"}


def test_c12_is_the_error_itself_and_its_share_of_the_variance_is_another_reading() -> None:
    mse = along_eps([1.0, 0.9, 0.8, 0.7, 0.6]) * (1 + noise(0.02))
    share = along_eps([0.1, 0.2, 0.3, 0.4, 0.5]) * (1 + noise(0.02, 1))
    study, results = by_hand(ContrastRegression, mse=mse, unexplained=share, pure_encoder=mse)
    verdicts = study.verdicts(results, "tiny")
    (first,) = [v for v in verdicts if v.claim == "C12.1"]
    assert first.outcome == "premise-not-met" and first.value is not None and first.value < 0
    assert outcomes(verdicts, "over the target's variance: ") == {"fails"}
    assert all("target: a random linear function" in v.note for v in verdicts)


def test_c16_features_with_a_pure_neuron_are_judged_by_themselves() -> None:
    """All that the first pure neuron brings: a trend over all counts, none from one on."""
    generator = np.random.default_rng(0)
    study, empty = by_hand(ContrastSeparability)
    pure = empty["pure"] + generator.integers(0, 4, empty["pure"].shape)
    quality = 0.6 + 0.3 * (pure > 0) + 0 * empty["accuracy"]
    quality = quality + generator.normal(0, 0.01, quality.shape)
    dims = {"pure": pure, "accuracy": quality.transpose(*empty["accuracy"].dims)}
    verdicts = study.verdicts(empty.assign(dims), "tiny")
    (primary,) = [v for v in verdicts if v.claim == "C16.1"]
    assert primary.outcome in ("holds", "inconclusive")
    assert primary.n == 100  # 5 eps_min x 20 seeds, not their 900 features
    assert "holds" not in outcomes(verdicts, "a second pure neuron")


def test_c16_the_gain_over_the_untrained_network_is_a_diagnostic() -> None:
    read = xr.DataArray([0.0, 1.0, 1.0], {"read": np.array([0, 20, 40])})
    study, results = by_hand(ContrastSeparability, accuracy=0.9 - read * (0.1 + noise(0.01)))
    (found,) = [v for v in study.verdicts(results, "tiny") if "untrained" in v.setting]
    assert found.claim == "" and found.outcome == "fails" and found.n == 20
