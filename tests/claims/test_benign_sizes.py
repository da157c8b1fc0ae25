"""``benign-sizes``: verdicts on made-up results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from made_up_results import fabricated

from rarefy.core.contracts import Context, Verdict
from rarefy.data.noise_spectrum import special_spectrum
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of

BenignSizes: Any = get_study("benign-sizes")

FLOAT64 = Context(dtype=torch.float64)
SIZES, GAMMA = (10, 50, 200), (1.0, 5.0, 50.0, 800.0)


def study(scale: str = "tiny", **parameters: Any) -> Any:
    found = BenignSizes.at(scale, **parameters)
    return found


def verdicts(
    accuracy: np.ndarray, seeds: int = 8, spread: float = 0.003, schedule: str = "printed"
) -> list[Verdict]:
    """Of accuracies (size, gamma)."""
    whole = study("paper", size=SIZES, gamma=GAMMA, schedule=(schedule,), seeds=seeds)
    noise = spread * np.random.default_rng(2).standard_normal((seeds, *accuracy.shape))
    error = (("seed", "size", "gamma"), 1 - accuracy - noise)
    results = fabricated(whole, seeds, {"test_error": error, "train_loss": 0.01})
    return whole.verdicts(results, "paper")


def judged(accuracy: np.ndarray, seeds: int = 8, spread: float = 0.003) -> dict[str, str]:
    return {v.claim: v.outcome for v in verdicts(accuracy, seeds, spread)}


RISE = np.array([0.2, 0.5, 0.8, 0.95])


def test_flat_in_size_and_rising_in_gamma_holds() -> None:
    assert judged(np.stack([RISE, RISE + 0.01, RISE + 0.02])) == {"B8.1": "holds", "B8.2": "holds"}


def test_growing_with_size_fails() -> None:
    found = judged(np.stack([0.2 + 0 * RISE, 0.5 * RISE + 0.1, RISE]))
    assert found == {"B8.1": "holds", "B8.2": "fails"}


def test_the_gamma_at_which_size_matters_most_is_told() -> None:
    bent = np.stack([RISE, RISE, RISE + np.array([0, 0.2, 0, 0])])
    share = verdicts(bent)[1]
    assert share.outcome == "holds" and "largest at Gamma=5, from 0.50" in share.note


def test_falling_with_gamma_fails_and_chance_everywhere_does_not_hold() -> None:
    assert judged(np.stack([RISE[::-1]] * 3))["B8.1"] == "fails"
    assert "holds" not in judged(np.full((3, 4), 0.2)).values()


def test_few_seeds_that_disagree_decide_nothing() -> None:
    wild = judged(np.stack([RISE, RISE, RISE + 0.19]), seeds=2, spread=0.05)
    assert wild["B8.2"] == "inconclusive"


def test_another_training_is_robustness() -> None:
    (found,) = verdicts(np.stack([RISE] * 3), schedule="trained")
    assert (found.claim, found.outcome) == ("B8", "holds")
    assert found.setting.startswith("trained: ")


def test_the_share_of_change_is_a_ratio_of_means() -> None:
    ends = np.array([[0.2, 0.4], [0.3, 0.9]])  # (size, gamma)
    share = verdicts(ends[[0, 1, 1]][:, [0, 0, 1, 1]], spread=0.0)[1]
    # between the ends of an axis nothing counts
    by_size, by_gamma = np.mean([0.1, 0.1, 0.5, 0.5]), np.mean([0.2, 0.6, 0.6])
    assert share.value == pytest.approx(by_size / by_gamma)
    assert "undefined" in verdicts(np.full((3, 4), 0.2), spread=0.0)[1].measured


def test_sizes_share_initial_filters_and_test_samples() -> None:
    small = study()
    cells = grid_of(small).cells(np.array([0]))
    first, second = (
        small.setup(
            cells,
            FLOAT64,
            spectrum=special_spectrum(1.0, small.d, 3, base=1.0),
            strength=torch.ones(1, dtype=torch.float64),
            sizes=torch.full((1, 3), size),
            zeta_axes="rotated",
        )
        for size in (4, 12)
    )
    assert torch.equal(first.fresh(30, 0).noise, second.fresh(30, 0).noise)
    assert torch.equal(first.initial, second.initial)
