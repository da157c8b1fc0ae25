"""``topk-window``: of which cells the theorems speak, and what is judged there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import coordinates_of, fabricated

from rarefy.core.contracts import Verdict
from rarefy.studies import get_study
from rarefy.studies.topk.window.claims import spoken_of

TopKWindow: Any = get_study("topk-window")
STUDY = TopKWindow.at("paper", seeds=5)
SIGMA, KEEP = np.array(STUDY.sigma), np.array(STUDY.keep, dtype=float)


def made_up(window: float = 0.02, few: float = 0.69, train: float = 4e-4) -> xr.Dataset:
    """Test loss in the window and at the loud noise; 0.6 elsewhere."""
    dims = (*STUDY.axes, "seed")
    shape = tuple(len(coordinates_of(STUDY)[dim]) for dim in dims)
    loss = np.full(shape, 0.6) + 1e-4 * np.random.default_rng(0).random(shape)
    inside, _ = spoken_of(STUDY, SIGMA, KEEP)
    loss[:, inside] = window
    loss[:, 1] = few
    return fabricated(STUDY, STUDY.seeds, {"test_loss": (dims, loss), "train_loss": train})


def judged(results: xr.Dataset) -> dict[str, Verdict]:
    found = {v.claim: v for v in STUDY.verdicts(results, "paper") if v.role == "primary"}
    assert list(found) == ["S4.1", "S4.2", "S5.1", "S5.2"]
    return found


def test_the_scale_has_cells_of_which_each_theorem_speaks() -> None:
    window, few = spoken_of(STUDY, SIGMA, KEEP)
    # sqrt(d log 10) = 194 to sqrt(n)/(T sigma^2) = 259, at SNR = 1/n alone
    assert KEEP[window[0]].tolist() == [200, 225, 255] and not window[1].any()
    # d (1 - sqrt(1 - exp(-2/pi))) - 194 = 4946, at sigma = mu alone
    assert KEEP[few[1]].max() == 4900 and not few[0].any()


def test_what_the_theorems_say_holds() -> None:
    found = judged(made_up())
    assert {verdict.outcome for verdict in found.values()} == {"holds"}
    assert {verdict.n for verdict in found.values()} == {STUDY.seeds}
    assert "Condition 4.1's d, as printed, is missed" in found["S4.1"].note
    assert "of the other K, dense among them, 100% have it too" in found["S5.1"].note


def test_what_dense_training_has_fails_theorem_4_4() -> None:
    found = judged(made_up(window=0.61))
    assert found["S4.1"].outcome == "fails" and found["S4.2"].outcome != "holds"


def test_a_small_loss_or_an_unfitted_network_fails_theorem_4_5() -> None:
    assert judged(made_up(few=0.1))["S5.1"].outcome == "fails"
    untrained = judged(made_up(train=0.5))
    assert untrained["S5.2"].outcome == "fails"
    # a ceiling above guessing tells nothing
    assert untrained["S4.1"].outcome == "premise-not-met" and "log T" in untrained["S4.1"].note


@pytest.mark.parametrize("gone", [{"keep": [5, 200, 4900]}, {"sigma": [1.0]}])
def test_without_its_cells_a_theorem_is_not_judged(gone: dict[str, Any]) -> None:
    found = judged(made_up().sel(gone))
    assert {found[part].outcome for part in ("S4.1", "S4.2")} == {"premise-not-met"}
    assert found["S5.1"].outcome == "holds"
    quiet = judged(made_up().isel(sigma=[0]))
    assert {quiet[part].outcome for part in ("S5.1", "S5.2")} == {"premise-not-met"}


def test_other_readings_are_the_same_question_once_more() -> None:
    others = [v for v in STUDY.verdicts(made_up(), "paper") if v.role == "robustness"]
    assert [v.claim for v in others].count("S5") == 4 and len(others) == 9
    (strict,) = (v for v in others if "at most 4 T L_S" in v.setting)
    assert strict.outcome == "fails"  # 0.02 is 25 times T L_S


def test_cells_take_about_equally_many_updates() -> None:
    """The rate falls as the noise that is kept grows."""
    sigma = torch.tensor([SIGMA[0], SIGMA[0], SIGMA[1]])
    rate = STUDY.rate(sigma, torch.tensor([200, 16384, 200]))
    assert rate[0] > rate[1] > rate[2]
    dense = STUDY.lr * STUDY.filters / (0.5 + SIGMA[0] ** 2 * 16384 / 10)
    assert float(rate[1]) == pytest.approx(dense, rel=1e-5)


def test_the_picture_marks_what_the_theorems_speak_of() -> None:
    (picture,) = STUDY.picture(made_up())
    marks: list[Any] = [panel.marks for panel in picture.panels]
    assert [place for place, _ in marks[0]] == [200, 255] and [p for p, _ in marks[1]] == [4900]
    (table,) = STUDY.tables(made_up())
    rows = {(row[0], row[2]): row for row in table.rows}
    held = {name: row[4] for (name, _), row in rows.items() if name in ("SNR", "last K")}
    assert held == {"SNR": "yes", "last K": "yes"}
