"""How C11, C12 and C16 are judged, on results made by hand whose answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from made_up_results import fabricated

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
