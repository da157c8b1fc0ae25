"""Which networks were kept, in words and numbers, from what ``rarefy pretrain`` stores."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import xarray as xr

from rarefy.tools.longtail.kept import Kept, kept_networks

LOOKS, NAN = (20, 40, 60, 80), math.nan


def stored(
    knn: list[list[float]], kept: list[float], stopped: list[float] | None = None
) -> xr.Dataset:
    """Of one method, and of one that trains nothing; a row per seed."""
    nothing = np.full((len(knn), len(LOOKS)), NAN)
    cells = ("images", "rho", "algorithm", "seed")

    def pair(values: object, other: object) -> np.ndarray:
        return np.array([[[values, other]]], dtype=np.float64)

    none = [NAN] * len(knn)
    return xr.Dataset(
        {
            "watched_knn": ((*cells, "watched_epoch"), pair(knn, nothing)),
            "kept_epoch": (cells, pair(kept, none)),
            "stopped_epoch": (cells, pair(stopped or [0] * len(knn), [0] * len(knn))),
        },
        coords={
            **{"images": ["long-tail"], "rho": [20.0], "algorithm": ["simclr", "pixels"]},
            **{"watched_epoch": list(LOOKS), "epoch": np.arange(1, 81)},
        },
    )


def only(found: xr.Dataset) -> Kept:
    (one,) = kept_networks(found)
    return one


def test_one_training_in_words() -> None:
    fallen = only(stored([[0.5, 0.612, 0.58, 0.55]], [40]))
    assert fallen.words() == "kept epoch 40 of 80: held-out neighbours 61.2 %, at the end 55.0 %"
    assert json.loads(json.dumps(fallen.described()))["epochs"] == [40]
    best_at_the_end = only(stored([[0.5, 0.5, 0.6, 0.7]], [80]))
    assert best_at_the_end.words() == "kept epoch 80 of 80: held-out neighbours 70.0 %"
    stopped = only(stored([[0.7, 0.5, 0.4, NAN]], [20], [60]))
    assert stopped.words() == (
        "kept epoch 20 of 80: held-out neighbours 70.0 %, at the end 40.0 % "
        "(stopped after epoch 60: over-training is certain)"
    )


def test_several_seeds_are_told_together() -> None:
    knn = [[0.5, 0.7, 0.6, 0.6], [0.9, 0.7, 0.5, NAN], [0.4, 0.5, 0.6, 0.8]]
    one = only(stored(knn, [40, 20, 80], [0, 60, 0]))
    assert (one.epochs, one.stopped) == ((40, 20, 80), (None, 60, None))
    assert one.best == pytest.approx(80) and one.last == pytest.approx(100 * (0.6 + 0.5 + 0.8) / 3)
    assert one.words() == (
        "kept epochs 20 to 80 of 80: held-out neighbours 80.0 %, at the end 63.3 % "
        "(1 of 3 stopped after epoch 60: over-training is certain)"
    )


def test_what_blew_up_or_has_no_labels_is_left_out() -> None:
    lost = stored([[0.5, NAN, NAN, NAN], [0.5, 0.6, 0.7, 0.6]], [NAN, 60])
    assert only(lost).epochs == (60,)
    assert list(kept_networks(stored([[NAN] * 4], [80]))) == []
