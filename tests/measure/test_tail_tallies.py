"""Tallies of errors beyond and below a length, against a plain loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from small_tails import CLASSES, LENGTHS, RUNS

from rarefy.measure.tails import TailTally


def loop_estimate(
    inside: np.ndarray, error: np.ndarray, weight: np.ndarray
) -> tuple[float, float, float, float]:
    w = weight[inside]
    if not len(w):
        return math.nan, math.nan, 0.0, 0.0
    mean = (w * error[inside]).sum() / w.sum()
    spread = math.sqrt((w**2 * (error[inside] - mean) ** 2).sum()) / w.sum()
    wrong = w[error[inside] == 1]
    seen = wrong.sum() ** 2 / (wrong**2).sum() if len(wrong) else 0.0
    return mean, spread, w.sum() ** 2 / (w**2).sum(), seen


def test_estimates_are_those_of_a_plain_loop_over_classes_and_lengths() -> None:
    generator = np.random.default_rng(1)
    n = 40
    statistic = generator.normal(size=(RUNS, n))
    error = (generator.random((RUNS, n)) < 0.4).astype(float)
    loss = generator.random((RUNS, n))
    weight = generator.random((1, n)) + 0.1
    label = generator.integers(0, CLASSES, n)
    one_hot = torch.tensor(label[:, None] == np.arange(CLASSES)).double()[None]
    tally = TailTally.empty(RUNS, CLASSES, LENGTHS)
    for part in (slice(0, 17), slice(17, n)):  # in two chunks
        tally.add(
            torch.tensor(statistic[:, part]),
            one_hot[:, part],
            torch.tensor(loss[:, part]),
            torch.tensor(error[:, part]),
            torch.tensor(weight[:, part]).log(),
        )
    sizes = np.bincount(label)
    for run in range(RUNS):
        for place, length in enumerate(LENGTHS):
            for estimate, inside in (
                (tally.beyond(), statistic[run] >= length),
                (tally.below(), statistic[run] < length),
            ):
                for k in range(CLASSES):
                    here = inside & (label == k)
                    mean, spread, effective, seen = loop_estimate(here, error[run], weight[0])
                    got = (run, k, place)
                    assert estimate.error[got].item() == pytest.approx(mean, nan_ok=True)
                    assert estimate.effective[got].item() == pytest.approx(effective)
                    assert estimate.errors_seen[got].item() == pytest.approx(seen)
                    if here.any():
                        assert estimate.spread[got].item() == pytest.approx(spread, abs=1e-8)
                        w = weight[0][here]
                        assert estimate.loss[got].item() == pytest.approx(
                            (w * loss[run][here]).sum() / w.sum()
                        )
                        assert estimate.probability[got].item() == pytest.approx(w.sum() / sizes[k])
            # overall: every class counts the same, however many samples it has
            mean, spread, effective, seen = loop_estimate(
                statistic[run] >= length, error[run], weight[0] / sizes[label]
            )
            whole = tally.beyond(overall=True)
            assert whole.error[run, place].item() == pytest.approx(mean, nan_ok=True)
            assert whole.spread[run, place].item() == pytest.approx(spread, nan_ok=True)
            assert whole.effective[run, place].item() == pytest.approx(effective)
            assert whole.errors_seen[run, place].item() == pytest.approx(seen)


def test_a_class_that_is_not_there_has_no_error_and_does_not_disturb_the_others() -> None:
    tally = TailTally.empty(1, CLASSES, (0.0,))
    one_hot = torch.tensor([[[1.0, 0, 0], [0, 1.0, 0]]], dtype=torch.float64)
    ones = torch.ones(1, 2, dtype=torch.float64)
    tally.add(ones, one_hot, ones, torch.tensor([[1.0, 0.0]]), torch.zeros(1, 2))
    assert tally.beyond().error[0, :, 0].tolist()[:2] == [1.0, 0.0]
    assert tally.beyond().error[0, 2, 0].isnan()
    assert tally.beyond(overall=True).error.item() == 0.5
    assert tally.beyond(overall=True).probability.item() == 1.0
