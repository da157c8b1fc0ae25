"""Signals that need no training are high for what they are about."""

from __future__ import annotations

import numpy as np
import torch

from rarefy.core.rng import Draws
from rarefy.measure.influence.neighbours import nearest
from rarefy.tools.influence.injections import Injection
from rarefy.tools.influence.signals import SIGNALS, signals_of

CPU = torch.device("cpu")


def test_signals_are_high_for_what_they_are_about() -> None:
    generator = np.random.default_rng(0)
    labels = np.repeat([0, 1], 50)
    features = np.clip(generator.normal(size=(100, 8)) * 5 + 60 + 100 * labels[:, None], 0, 255)
    features = features.astype(np.uint8)
    given = Injection("copies", 0.02).into(features, labels, 2, Draws([1]))
    values = signals_of(given, 1 / 255, nearest(given.features), Draws([1]), CPU)
    assert values.shape == (len(SIGNALS), 102) and np.isfinite(values).all()
    by = dict(zip(SIGNALS, values, strict=True))
    copied = given.positive
    for signal in ("influence", "percentile", "own", "distance", "disagreement", "conflict"):
        assert by[signal][copied].min() > np.median(by[signal][given.asked]), signal
    assert by["conflict"].sum() == 4  # both of each pair
    assert (by["isolation"][copied] == 0).all()
    assert by["percentile"].min() == 0 and by["percentile"].max() == 100
