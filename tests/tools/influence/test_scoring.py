"""The table of scores: what is in it, for what data, and how long work is told and stopped."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import rarefy
from rarefy.core.errors import OutOfTime, UsageError
from rarefy.tools.influence.forecasting import forecast
from rarefy.tools.influence.percentiles import percentiles
from rarefy.tools.influence.scoring import COLUMNS, ScoreSettings, score_samples
from rarefy.tools.samples.opening import open_samples


def made(count: int = 60, width: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(0, 1, (count, width)), np.arange(count) % 3


pytestmark = pytest.mark.usefixtures("quick")
PLAIN: dict[str, Any] = {"standardize": False, "check_labels": False}


def brute(features: np.ndarray, labels: np.ndarray, ddof: int) -> np.ndarray:
    """003 Eq. (10), literally."""

    def norm(rows: np.ndarray) -> float:
        return float((np.cov(rows, rowvar=False, ddof=ddof) ** 2).sum())

    found = np.empty(len(features))
    for row, label in enumerate(labels):
        own = np.flatnonzero(labels == label)
        found[row] = norm(features[own]) - norm(features[own[own != row]])
    return found


@pytest.mark.parametrize("ddof", [0, 1])
def test_the_influence_is_what_the_covariance_norm_loses(ddof: int) -> None:
    features, labels = made()
    table = rarefy.influence(features, labels, ddof=ddof, **PLAIN)
    np.testing.assert_allclose(table["influence"], brute(features, labels, ddof), atol=1e-10)
    total = table["own"] + table["shared"] + table["shrinking"]
    np.testing.assert_allclose(table["influence"], total, atol=1e-12)
    assert tuple(table.columns) == COLUMNS and len(table) == 60


def test_columns_beside_the_score() -> None:
    features, labels = made()
    table = rarefy.influence(features, labels, neighbours=4, **PLAIN)
    for label in range(3):
        own = features[labels == label]
        apart = np.linalg.norm(own - own.mean(0), axis=1)
        np.testing.assert_allclose(table["distance"][labels == label], apart, rtol=1e-9)
    np.testing.assert_allclose(table["norm"], np.linalg.norm(features, axis=1), rtol=1e-9)
    assert table["disagreement"].isin([0, 0.25, 0.5, 0.75, 1]).all()
    assert set(table["neighbour_label"]) <= {"0", "1", "2"}
    assert table["id"].is_unique and (table["index"] == np.arange(60)).all()
    facts = table.attrs
    assert facts["samples"] == 60 and facts["neighbours"] == 4 and facts["counts"] == [20] * 3


def test_the_order_of_the_data_does_not_matter() -> None:
    features, labels = made()
    order = np.random.default_rng(1).permutation(60)
    here = rarefy.influence(features, labels).set_index("id")
    there = rarefy.influence(features[order], labels[order]).set_index("id")
    columns = ["influence", "percentile", "distance", "mahalanobis", "disagreement"]
    columns += ["given_probability", "suggested_probability"]
    np.testing.assert_allclose(here[columns], there.loc[here.index, columns], atol=1e-9)
    assert (here["triage"] == there.loc[here.index, "triage"]).all()


def test_copies_in_conflict_are_found() -> None:
    features, labels = made()
    features[3] = features[7]  # labels 0 and 1
    table = rarefy.influence(features, labels)
    assert table.loc[[3, 7], "triage"].tolist() == ["duplicate in conflict"] * 2
    assert table.loc[[3, 7], "copies"].tolist() == [1, 1] and table["conflict"].sum() == 2


def test_classes_too_small_to_say_are_kept() -> None:
    features, labels = made()
    labels[:3] = [3, 4, 4]
    table = rarefy.influence(features, labels)
    undefined = table["influence"].isna()
    assert undefined[:3].all() and not undefined[3:].any()
    assert table["percentile"][:3].isna().all() and len(table) == 60
    assert rarefy.influence(features, labels, ddof=0, **PLAIN)["influence"].isna().sum() == 1


def test_an_embedding_is_scored_instead() -> None:
    features, labels = made()
    model = nn.Linear(5, 2).double()
    table = rarefy.influence(
        features.astype(np.float32),
        labels,
        embedding=lambda x: model(x.double()),
        check_labels=False,
    )
    seen = model(torch.from_numpy(features.astype(np.float32)).double()).detach().numpy()
    np.testing.assert_allclose(table["influence"], brute(seen, labels, 1), atol=1e-6)


def test_standardize_speaks_of_what_an_embedding_gives() -> None:
    features, labels = made()
    stretch = np.array([1.0, 10.0, 100.0, 1e3, 1e4])
    asked = {"embedding": lambda x: x.double() * torch.from_numpy(stretch), "check_labels": False}
    table = rarefy.influence(features.astype(np.float32), labels, standardize=True, **asked)
    rows = features.astype(np.float32) * stretch
    plain = brute((rows - rows.mean(axis=0)) / rows.std(axis=0), labels, 1)
    np.testing.assert_allclose(table["influence"], plain, atol=1e-4)
    with pytest.raises(UsageError, match="standardize='yes': must be True, False or None"):
        rarefy.influence(features, labels, standardize="yes", **asked)


def test_frames_and_names() -> None:
    features, labels = made()
    frame = pd.DataFrame(features, columns=list("abcde")).assign(kind=[f"k{one}" for one in labels])
    table = rarefy.influence(frame, "kind", **PLAIN)
    np.testing.assert_allclose(table["influence"], brute(features, labels, 1), atol=1e-10)
    assert set(table["label"]) == {"k0", "k1", "k2"}


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan]), min_size=1, max_size=12),
    st.integers(1, 3),
)
def test_percentiles_go_from_0_to_100_within_a_class(values: list[float], classes: int) -> None:
    given_ = np.array(values)
    labels = np.arange(len(given_)) % classes
    found = percentiles(given_, labels)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(given_))
    for label in range(classes):
        own, theirs = given_[labels == label], found[labels == label]
        defined = ~np.isnan(own)
        if defined.sum() > 1:
            assert np.nanmean(theirs) == pytest.approx(50)
            for a, b in np.ndindex(len(own), len(own)):
                if own[a] < own[b]:
                    assert theirs[a] < theirs[b]
                if own[a] == own[b]:
                    assert theirs[a] == theirs[b]


def test_progress_adds_up_and_stopped_work_goes_on(tmp_path: Path) -> None:
    samples = open_samples("digits")
    told: list[float] = []
    whole = score_samples(samples, progress=told.append)
    assert sum(told) == pytest.approx(1)
    with pytest.raises(OutOfTime, match="stopped while scoring"):
        score_samples(samples, state=tmp_path / "state", deadline=time.monotonic() - 1)
    again = score_samples(samples, ScoreSettings(check_labels=False), state=tmp_path / "state")
    np.testing.assert_allclose(again.table["influence"], whole.table["influence"], rtol=1e-9)


def test_a_forecast_is_told_from_some_seconds_on() -> None:
    samples = open_samples("digits")
    words = forecast(samples, ScoreSettings(neighbours=5))
    assert "scores about" in words and "neighbours" in words and "MB" in words
    assert "neighbours" not in forecast(samples, ScoreSettings(neighbours=0))
    assert forecast(samples, ScoreSettings(), from_seconds=1e6) == ""


def test_typical_neighbours_are_of_the_class_and_not_oneself() -> None:
    scored = score_samples(open_samples("digits"), ScoreSettings(check_labels=False))
    rows = [0, 5, 700]
    found = scored.typical_neighbours(rows)
    labels = scored.samples.labels
    for row in rows:
        assert len(found[row]) == 5 and row not in found[row]
        assert {labels[other] for other in found[row]} == {labels[row]}
        own = scored.table["mahalanobis"][labels == labels[row]]
        assert (scored.table["mahalanobis"][found[row]] <= own.median() + 1e-12).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ddof": 2}, "ddof=2: must be 0 or 1"),
        ({"neighbours": -1}, "neighbours=-1: must be at least 0"),
        ({"memory": 5}, "memory=5: must be at least 16 MiB"),
    ],
)
def test_settings_out_of_range(settings: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rarefy.influence(*made(), **settings)


def test_rows_that_are_not_finite_are_named() -> None:
    features, labels = made()
    features[4, 2] = np.nan
    with pytest.raises(UsageError, match="4"):
        rarefy.influence(features, labels)
