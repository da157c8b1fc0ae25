"""G6: the verdicts on errors made up, and the study against a plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import coordinates_of
from small_granularity import (
    AS_CHOSEN,
    FLOAT64,
    SEEDS,
    assert_plain,
    assert_tuned_plain,
    cells_at,
)

from rarefy.core.contracts import Verdict
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view_sets import StoredSamples
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of

pytestmark = pytest.mark.usefixtures("eager")

EXTREME = get_study("granularity-extreme")
STUDY: Any = EXTREME.at(
    "paper", patch_noise=(0.2,), per_side=(1, 8, 64), variation=(AS_CHOSEN, "c_b 1.3")
)


Three = tuple[float, float, float]


def made_up(
    hard: Three = (0.5, 0.1, 0.7),
    easy: Three = (0.02, 0.02, 0.2),
    tuned_hard: Three | None = None,
    tuned_easy: Three | None = None,
    left: Three = (0.01, 0.01, 0.01),
    scatter: float = 0.004,
) -> xr.Dataset:
    """Errors with coarse, fine and one-a-sample labels, the same after fine-tuning unless given;
    left: share of the loss of guessing at the end, ten times that at all reads before."""
    reads = len(STUDY.reads)
    noise = scatter * np.random.default_rng(0).normal(size=(SEEDS, 2, 1, 3, reads))
    guess = np.log(2 * np.array(STUDY.per_side, dtype=float))
    loss = (np.array(left) * guess)[:, None] * np.where(np.arange(reads) < reads - 1, 10.0, 1.0)
    dims = ("seed", "variation", "patch_noise", "per_side", "read")
    values = {
        "loss": (dims, np.broadcast_to(loss, noise.shape).copy()),
        "easy_error": (dims, np.array(easy)[:, None] + noise),
        "hard_error": (dims, np.array(hard)[:, None] + noise[::-1]),
        "tuned_easy_error": (dims[:-1], np.array(tuned_easy or easy) + noise[..., -1]),
        "tuned_hard_error": (dims[:-1], np.array(tuned_hard or hard) + noise[::-1, ..., -1]),
    }
    return xr.Dataset(values, coordinates_of(STUDY, SEEDS))


def judged(results: xr.Dataset) -> dict[str, Verdict]:
    """By claim, or by what is changed."""
    verdicts = STUDY.verdicts(results, "paper")
    assert len({v.setting for v in verdicts}) == len(verdicts)
    found = {v.claim if v.role == "primary" else v.setting.split(",")[0]: v for v in verdicts}
    assert len(found) == len(verdicts)
    return found


# ------------------------------------------------------------------------------------- the verdicts


def test_a_u_with_a_higher_right_end_holds() -> None:
    found = judged(made_up())
    assert {name: v.outcome for name, v in found.items()} == dict.fromkeys(
        ("G6.1", "G6.2", "before fine-tuning", "c_b 1.3"), "holds"
    )
    assert "errors: coarse 0.26" in found["G6.1"].note


def test_one_label_a_sample_that_does_no_harm_fails() -> None:
    found = judged(made_up(hard=(0.5, 0.1, 0.05), easy=(0.02, 0.02, 0.0)))
    assert {v.outcome for v in found.values()} == {"fails"}


def test_worse_than_fine_labels_is_not_worse_than_coarse_ones() -> None:
    """The paper's baseline is coarse: a U whose right end lies below its left one does no harm."""
    found = judged(made_up(hard=(0.7, 0.1, 0.4), easy=(0.02, 0.02, 0.02)))
    assert found["G6.2"].outcome == "holds" and found["G6.1"].outcome == "fails"


def test_the_mixed_error_weighs_easy_and_hard_samples_alike() -> None:
    found = judged(made_up(hard=(0.5, 0.1, 0.4), easy=(0.0, 0.0, 0.3)))
    assert found["G6.1"].outcome == "holds"


def test_harm_that_fine_tuning_mends_holds_before_it_only() -> None:
    found = judged(made_up(tuned_hard=(0.5, 0.1, 0.1), tuned_easy=(0.02, 0.02, 0.02)))
    assert found["before fine-tuning"].outcome == "holds" and found["G6.1"].outcome == "fails"


def test_what_cannot_be_told_apart_is_inconclusive() -> None:
    found = judged(made_up(hard=(0.2, 0.2, 0.2), easy=(0.02, 0.02, 0.02), scatter=0.1))
    assert {v.outcome for v in found.values()} == {"inconclusive"}


def test_every_noise_is_judged_and_one_is_primary() -> None:
    several: Any = EXTREME.at("paper", per_side=(1, 8, 64), variation=(AS_CHOSEN,))
    results = xr.concat([made_up().sel(variation=[AS_CHOSEN])] * 4, "patch_noise")
    results = results.assign_coords(patch_noise=list(several.patch_noise))
    claims = [(v.claim, v.setting.split(",")[0]) for v in several.verdicts(results, "paper")]
    other = [("G6", f"noise {noise:g}") for noise in (0.02, 0.1, 0.15) for _ in range(2)]
    primary = [("G6.1", "noise 0.2"), ("G6.2", "noise 0.2"), ("G6", "before fine-tuning")]
    assert claims == [*other, *primary]


def test_pictures_and_tables() -> None:
    results = made_up(left=(0.5, 0.5, 0.5))
    assert [picture.name for picture in STUDY.picture(results)] == ["granularity"]
    (first, *_) = STUDY.tables(results)
    assert [row[3] for row in first.rows] == ["0.5", "0.5", "0.5"]


def test_bands_of_shares_stay_between_0_and_1() -> None:
    results = made_up(hard=(0.99, 0.01, 0.5), easy=(0.01, 0.01, 0.01), scatter=0.1)
    for panel in STUDY.picture(results)[0].panels:
        for curve in panel.curves:
            assert curve.low.min() >= 0 and curve.high.max() <= 1


def test_sensitivity_is_of_the_paired_differences_after_fine_tuning() -> None:
    results = made_up(tuned_hard=(0.5, 0.1, 0.9), scatter=0.0)
    table = {each.name: each for each in STUDY.tables(results)}["sensitivity"]
    column = table.columns.index("one a sample minus fine")
    assert [row[column].split()[0] for row in table.rows] == ["0.490", "0.490"]


# ----------------------------------------------------------------------------------- the simulation


@pytest.mark.parametrize("per_side", [2, 8])
def test_a_cell_is_what_a_plain_loop_gives(per_side: int) -> None:
    study: Any = EXTREME.at("tiny", steps=8, reads=(8,), seeds=1)
    cells = cells_at(study, variation=AS_CHOSEN, patch_noise=0.3, per_side=per_side)
    found = study.simulate(cells, FLOAT64)
    here = study.at_noise(0.3)
    assert here.sigma == 0.3
    draws, labels = cells.draws(FLOAT64), Labels(here.model(2), per_side)
    stored = StoredSamples(labels.data, labels, draws, study.samples, study.batch)
    if per_side == 8:  # one label a sample
        assert sorted(stored(0).label[0].tolist()) == list(range(16))
    network = assert_plain(found, (0, -1), here, labels, draws, stored)
    assert_tuned_plain(found, (0,), here, labels, draws, network)


def test_all_granularities_see_the_same_samples() -> None:
    study: Any = EXTREME.at("tiny")
    cells = grid_of(study).cells(np.array([0]))
    data, draws = study.model(2), cells.draws(FLOAT64)
    sets = [StoredSamples(data, Labels(data, n), draws, 4, 16)(0).views for n in (1, 2, 8)]
    for other in sets[1:]:
        assert torch.equal(other.patches, sets[0].patches)
        assert torch.equal(other.noise(), sets[0].noise())
