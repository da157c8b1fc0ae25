"""How C11, C12 and C16 are judged, on results made by hand whose answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from rarefy.core.contracts import Study, Verdict
from rarefy.studies import get_study

ContrastRegression = get_study("contrast-regression")
ContrastSeparability = get_study("contrast-separability")
ContrastSimilarity = get_study("contrast-similarity")
ALL = (ContrastSimilarity, ContrastRegression, ContrastSeparability)
every_one = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)


def by_hand(kind: type[Study], seeds: int = 20, **values: Any) -> tuple[Study, xr.Dataset]:
    """Results of a study at scale tiny that are 0 but for ``values``, arrays with any of the
    dimensions."""
    study = kind.at("tiny", seeds=seeds, eps_min=(0.1, 0.2, 0.3, 0.4, 0.5))
    axes = {name: np.array(getattr(study, name)) for name in study.axes}
    coordinates = {**axes, "seed": np.arange(seeds), **study.coordinates()}
    found = {}
    for output in study.outputs():
        dims = (*study.axes, "seed", *output.dims)
        empty = xr.DataArray(
            np.zeros([len(coordinates[name]) for name in dims]),
            {name: coordinates[name] for name in dims},
            dims,
        )
        found[output.name] = (empty + values.get(output.name, 0.0)).transpose(*dims)
    return study, xr.Dataset(found)


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
def test_every_read_of_a_trained_network_is_judged(kind: type[Study]) -> None:
    study, results = by_hand(kind, seeds=3)
    settings = [verdict.setting for verdict in study.verdicts(results, "tiny")]
    assert len(set(settings)) == len(settings)
    for step in (20, 40):
        assert sum(f"step {step}," in setting for setting in settings) == len(settings) / 2


def test_c11_a_trend_that_the_data_alone_make_does_not_hold_against_the_perfect_encoder() -> None:
    latents = along_eps([0.80, 0.82, 0.84, 0.86, 0.88]) + noise(0.002)
    similarity = latents - 0.1 + noise(0.001, 1)
    study, results = by_hand(ContrastSimilarity, similarity=similarity, latents=latents)
    verdicts = study.verdicts(results, "tiny")
    assert outcomes(verdicts, "mean cosine, test as trained") == {"holds"}
    assert outcomes(verdicts, "minus the perfect encoder's, test as trained") == {"inconclusive"}


def test_c11_a_rise_made_by_fewer_zero_embeddings_is_told_from_more_alike_pairs() -> None:
    undefined = along_eps([0.17, 0.15, 0.13, 0.11, 0.09]) + noise(0.002)
    alike = along_eps([0.96, 0.95, 0.94, 0.93, 0.92]) + noise(0.002, 1)
    similarity = alike * (1 - undefined)
    study, results = by_hand(ContrastSimilarity, similarity=similarity, undefined=undefined)
    verdicts = study.verdicts(results, "tiny")
    assert outcomes(verdicts, "mean cosine, test balanced") == {"holds"}
    assert outcomes(verdicts, "pairs that have an embedding, test balanced") == {"fails"}
    assert not any("have an embedding" in v.setting and "no bias" in v.setting for v in verdicts)
    note = next(v.note for v in verdicts if "have an embedding" in v.setting)
    assert "share of pairs left out: 0.17 at the smallest eps_min, 0.09" in note
    (table,) = study.tables(results)
    assert {"perfect encoder", "one neuron a feature"} <= {row[2] for row in table.rows}
    assert str(table.rows[0][-1]).startswith("0.1697 to 0.09")


def test_c12_an_error_that_falls_as_its_floor_does_not_hold_against_the_floor() -> None:
    floor = along_eps([1.0, 0.9, 0.8, 0.7, 0.6]) * (1 + noise(0.02))
    mse = floor * (along_eps([1.1, 1.15, 1.2, 1.25, 1.3]) + noise(0.002, 1))
    study, results = by_hand(ContrastRegression, mse=mse, pure_encoder=floor, variance=1.0)
    verdicts = study.verdicts(results, "tiny")
    assert outcomes(verdicts, "test MSE, test balanced") == {"holds"}
    assert outcomes(verdicts, "over that of one neuron a feature, test balanced") == {"fails"}
    caption = study.picture(results)[0].caption
    assert "1.10 to 1.30 times it" in caption


def test_c16_gains_and_losses_of_the_two_groups_and_of_single_eps_do_not_cancel() -> None:
    minority = xr.DataArray([0, 0, 0, 0, 0, 1, 1, 1, 1], {"feature": np.arange(9)})
    read = xr.DataArray([0.0, 1.0, 1.0], {"read": np.array([0, 20, 40])})
    gain = 0.2 * (1 - minority) + minority * along_eps([-0.3, 0.2, 0.2, 0.2, 0.2])
    study, results = by_hand(ContrastSeparability, accuracy=0.7 + read * (gain + noise(0.01)))
    verdicts = study.verdicts(results, "tiny")
    for where in ("mean over eps_min", "where least"):
        assert outcomes(verdicts, f"untrained network, {where}, majority") == {"holds"}
    assert outcomes(verdicts, "untrained network, mean over eps_min, minority") == {"holds"}
    assert outcomes(verdicts, "untrained network, where least, minority") == {"fails"}
    notes = {v.note for v in verdicts if "where least, minority" in v.setting}
    assert all("at eps_min=0.1, 99 % interval" in note for note in notes)
    thresholds = [v for v in verdicts if "against" in v.setting and "paper's bias" in v.setting]
    assert all("confounded" in v.note for v in thresholds)


def test_c16_nothing_is_asked_of_a_network_whose_control_is_perfect() -> None:
    read = xr.DataArray([0.0, 1.0, 1.0], {"read": np.array([0, 20, 40])})
    study, results = by_hand(ContrastSeparability, accuracy=0.9995 - read * (0.1 + noise(0.01)))
    verdicts = study.verdicts(results, "tiny")
    assert outcomes(verdicts, "against the untrained network") == {"inconclusive"}


def test_c16_features_with_a_pure_neuron_are_judged_by_themselves() -> None:
    """All that the first pure neuron brings: a trend over all counts, none from one on."""
    generator = np.random.default_rng(0)
    study, empty = by_hand(ContrastSeparability)
    pure = empty["pure"] + generator.integers(0, 4, empty["pure"].shape)
    quality = 0.6 + 0.3 * (pure > 0) + 0 * empty["accuracy"]
    quality = quality + generator.normal(0, 0.01, quality.shape)
    dims = {"pure": pure, "accuracy": quality.transpose(*empty["accuracy"].dims)}
    verdicts = study.verdicts(empty.assign(dims), "tiny")
    assert outcomes(verdicts, "within groups, positive") <= {"holds", "inconclusive"}
    assert "holds" not in outcomes(verdicts, "within groups, features with a pure neuron")
    runs = {v.n for v in verdicts if v.setting.startswith("within groups, ")}
    assert runs == {100}  # 5 eps_min x 20 seeds, not their 900 features
