"""``benign-sizes``: rates by size, verdicts on made-up results, wrong use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from rarefy.core.contracts import Context, Verdict
from rarefy.core.errors import UsageError
from rarefy.data.noise_spectrum import special_spectrum
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of

BenignSizes: Any = get_study("benign-sizes")

FLOAT64 = Context(dtype=torch.float64)
SIZES, GAMMA = (10, 50, 200), (1.0, 5.0, 50.0, 800.0)


def study(scale: str = "tiny", **parameters: Any) -> Any:
    found = BenignSizes.at(scale, **parameters)
    return found


def verdicts(accuracy: np.ndarray, seeds: int = 8, spread: float = 0.003) -> list[Verdict]:
    """Of accuracies (size, gamma)."""
    whole = study("paper", size=SIZES, gamma=GAMMA, schedule=("trained",), seeds=seeds)
    noise = spread * np.random.default_rng(2).standard_normal((seeds, *accuracy.shape))
    dims = ("schedule", "seed", "size", "gamma")
    results = xr.Dataset(
        {
            "test_error": (dims, (1 - accuracy - noise)[None]),
            "train_loss": (dims, np.full((1, seeds, *accuracy.shape), 0.01)),
        },
        {"schedule": ["trained"], "seed": range(seeds), "size": list(SIZES), "gamma": list(GAMMA)},
    )
    return whole.verdicts(results, "paper")


def judged(accuracy: np.ndarray, seeds: int = 8, spread: float = 0.003) -> dict[str, str]:
    """Outcomes by what a verdict is about."""
    found = verdicts(accuracy, seeds, spread)
    assert {v.claim for v in found} == {"B8"} and len(found) == 4
    words = ("rises", "share", "largest", "at Gamma=800")
    return {w: v.outcome for w, v in zip(words, found, strict=True) if w in v.setting}


RISE = np.array([0.2, 0.5, 0.8, 0.95])


def test_flat_in_size_and_rising_in_gamma_holds() -> None:
    found = judged(np.stack([RISE, RISE + 0.01, RISE + 0.02]))
    assert found == dict.fromkeys(("rises", "share", "largest", "at Gamma=800"), "holds")


def test_growing_with_size_fails() -> None:
    found = judged(np.stack([0.2 + 0 * RISE, 0.5 * RISE + 0.1, RISE]))
    assert found["rises"] == "holds"
    assert found["share"] == found["largest"] == found["at Gamma=800"] == "fails"


def test_growing_with_size_at_one_gamma_only_is_seen() -> None:
    bent = np.stack([RISE, RISE, RISE + np.array([0, 0.2, 0, 0])])
    found = judged(bent)
    assert found == {
        "rises": "holds",
        "share": "holds",
        "largest": "fails",
        "at Gamma=800": "holds",
    }


def test_falling_with_gamma_fails_and_chance_everywhere_does_not_hold() -> None:
    assert judged(np.stack([RISE[::-1]] * 3))["rises"] == "fails"
    flat = judged(np.full((3, 4), 0.2))
    assert flat["rises"] != "holds" and flat["share"] != "holds"


def test_few_seeds_that_disagree_decide_nothing() -> None:
    assert judged(np.stack([RISE] * 3), seeds=2, spread=0.05)["at Gamma=800"] == "inconclusive"


def test_the_share_of_change_is_a_ratio_of_means() -> None:
    ends = np.array([[0.2, 0.4], [0.3, 0.9]])  # (size, gamma)
    share = verdicts(ends[[0, 1, 1]][:, [0, 0, 1, 1]], spread=0.0)[1]
    # between the ends of an axis nothing counts
    by_size, by_gamma = np.mean([0.1, 0.1, 0.5, 0.5]), np.mean([0.2, 0.6, 0.6])
    assert share.measured.startswith(f"mean {by_size / by_gamma:.3g}")
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


def test_the_rate_of_trained_runs_goes_with_the_size() -> None:
    whole = study("paper")
    assert whole.training_at("trained", 200).lr == 2 * whole.training_at("trained", 100).lr
    assert whole.training_at("trained", 100) == whole.training("trained")
    assert whole.training_at("printed", 200) == whole.training_at("printed", 10)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"schedule": ("half",)}, "schedule='half': must be one of printed, trained"),
        ({"size": (0,)}, "size=0: must be at least 1"),
        ({"gamma": (0.5,)}, "gamma=0.5: must be finite and at least 1"),
        ({"strength": -1.0}, "strength=-1.0: must be finite and at least 0"),
    ],
)
def test_a_value_that_makes_no_sense_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        study(**wrong)
