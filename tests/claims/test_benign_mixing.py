"""B14: shares and moments of the training set, and the verdicts on accuracies made up."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import fabricated
from scipy import stats

from rarefy.core.contracts import Context, Verdict
from rarefy.measure.generalisation import generalisation
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of

BenignMixing: Any = get_study("benign-mixing")

pytestmark = pytest.mark.usefixtures("eager")

TINY: Any = BenignMixing.at("tiny")
FLOAT64 = Context(dtype=torch.float64)


# ------------------------------------------------------------------------------------- training set


def test_the_second_moment_is_that_of_the_mixture() -> None:
    z = np.random.default_rng(0).normal(size=1_000_000)
    beyond = np.abs(z) >= 2
    for share in (0.0, 0.2, 1.0):
        mixed = (1 - share) * (z[~beyond] ** 2).mean() + share * (z[beyond] ** 2).mean()
        assert TINY.second_moment(share) == pytest.approx(mixed, rel=5e-3)
    own = 2 * stats.norm.sf(2.0)
    assert TINY.second_moment(own) == pytest.approx(1, rel=1e-12)


def test_training_samples_have_the_share_and_with_held_moment_the_variance() -> None:
    study: Any = BenignMixing.at("tiny", samples=4000)
    grid = grid_of(study)
    cells = grid.cells(np.arange(len(grid)))
    chosen = cells.take(
        np.flatnonzero(
            (np.array(cells.values["schedule"]) == "trained") & (cells.values["seed"] == 0)
        )
    )
    experiment = study._prepared("trained", chosen, FLOAT64)
    lam = study.spectrum(4.0).eigenvalues[0, 0, 3].item()
    first = experiment.samples.noise[:, :4000, 3]  # class 0 along its special direction
    for row, (moment, share) in enumerate(
        zip(chosen.values["moment"], chosen.values["share"], strict=True)
    ):
        factor = study.second_moment(share) ** -0.5 if moment == "held" else 1.0
        z = first[row] / (lam * factor)
        assert (z.abs() >= 2).double().mean().item() == pytest.approx(share, abs=0.035)
        wanted = 1.0 if moment == "held" else study.second_moment(share)
        assert (first[row] / lam).square().mean().item() == pytest.approx(wanted, rel=0.08)
    # test samples do not know of it
    assert torch.equal(experiment.data.eigenvalues[0], experiment.data.eigenvalues[-1])


def test_more_long_tailed_samples_replace_others_one_by_one() -> None:
    grid = grid_of(TINY)
    cells = grid.cells(np.arange(len(grid)))
    rows = (
        (np.array(cells.values["schedule"]) == "trained")
        & (np.array(cells.values["moment"]) == "free")
        & (cells.values["seed"] == 1)
    )
    noise = TINY._prepared("trained", cells.take(np.flatnonzero(rows)), FLOAT64).samples.noise
    special = torch.stack([noise[:, i, 3 + i // 8] for i in range(24)], dim=1)
    lam = TINY.spectrum(4.0).eigenvalues[0, 0, 3]
    beyond = special.abs() >= 2 * lam
    assert (beyond[1:] | ~beyond[:-1]).all()  # shares rise along the rows
    same = special[1:] == special[:-1]
    assert (same | (beyond[1:] & ~beyond[:-1])).all()


# ------------------------------------------------------------------------------------- the verdicts

STUDY = BenignMixing(gamma=(5.0, 10.0), schedule=("trained",))
SEEDS = 8


def made_up(free: float, held: float, loss: float = 0.01) -> xr.Dataset:
    """Accuracies of every kind that rise in equal steps, by ``free`` and ``held`` in all."""
    share = np.array(STUDY.share)
    rise = np.array([free, held])[:, None] * share / share[-1]
    scatter = 0.005 * np.random.default_rng(0).normal(size=(SEEDS, 2, 2, len(share), 3))
    accuracy = 0.5 + rise[None, None, :, :, None] + scatter
    values = {"accuracy": (("seed", "gamma", "moment", "share", "kind"), accuracy)}
    return fabricated(STUDY, SEEDS, {**values, "train_loss": loss, "stopped_at": 0.0})


def split(results: xr.Dataset) -> tuple[list[str], list[Verdict]]:
    verdicts = STUDY.verdicts(results, "paper")
    rises = [verdict.outcome for verdict in verdicts if verdict.about == "B14"]
    assert verdicts[0].claim == "B14.1" and verdicts[0].note.startswith("mean ")
    return rises, [verdict for verdict in verdicts if "second moment" in verdict.setting]


def test_a_gain_by_variance_holds_throughout() -> None:
    rises, left = split(made_up(0.2, 0.02))
    assert rises == ["holds"] * 3
    assert [(v.claim, v.outcome) for v in left] == [("", "holds")]
    assert "free, 0.0" in left[0].note


def test_a_gain_by_the_tail_s_shape_fails_the_control_only() -> None:
    rises, left = split(made_up(0.2, 0.18))
    assert rises == ["holds"] * 3
    assert {verdict.outcome for verdict in left} == {"fails"}


def test_a_loss_fails_and_leaves_the_reason_open() -> None:
    rises, left = split(made_up(-0.2, 0.0))
    assert rises == ["fails"] * 3
    assert {verdict.outcome for verdict in left} == {"inconclusive"}
    assert all("no certain gain" in verdict.note for verdict in left)


@pytest.mark.parametrize(("stop_loss", "small"), [(0.0, 0.04), (0.02, 0.08)])
def test_without_a_small_training_loss_nothing_is_decided(stop_loss: float, small: float) -> None:
    """Four times the stopping loss is still small, 0.01 where none is set; the numbers are shown
    all the same."""
    study = dataclasses.replace(STUDY, stop_loss=stop_loss)
    below, above = (
        study.verdicts(made_up(0.2, 0.02, loss), "paper") for loss in (small - 0.001, small + 0.001)
    )
    assert {verdict.outcome for verdict in below} == {"holds"}
    assert {verdict.outcome for verdict in above} == {"premise-not-met"}
    said = f"premise not met: training loss {small + 0.001:.2g}"
    assert all(said in verdict.note for verdict in above)
    assert [verdict.measured for verdict in below] == [verdict.measured for verdict in above]


# --------------------------------------------------------------------------------------- simulation


def test_accuracies_are_those_of_plain_test_samples() -> None:
    """The stratified and weighted test against 40,000 samples of the law itself."""
    study: Any = dataclasses.replace(TINY, test_samples=20_000)
    grid = grid_of(study)
    cells = grid.cells(np.arange(len(grid)))
    rows = (np.array(cells.values["schedule"]) == "trained") & (cells.values["seed"] == 0)
    chosen = cells.take(np.flatnonzero(rows)[:3])
    found = study.simulate(chosen, FLOAT64)
    experiment = study._prepared("trained", chosen, FLOAT64)
    filters = experiment.fit(FLOAT64, study.training("trained")).filters
    plain = generalisation(filters, experiment.fresh, 40_000, experiment.scale)
    # 4.5 standard errors of a share near 1/2; the stratified test has half of its samples outside
    np.testing.assert_allclose(found["accuracy"][:, 0], 1 - plain.error, atol=4.5 * 0.006)
    # all is made of the two kinds
    own = 2 * stats.norm.sf(2.0)
    _, ordinary, tail = found["accuracy"].T
    np.testing.assert_allclose(
        found["accuracy"][:, 0], (1 - own) * ordinary + own * tail, rtol=1e-9
    )
