"""B9: Gamma in the controls, the verdicts on accuracies made up, one cell by a plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import fabricated
from torch import Tensor

from rarefy.core.contracts import Context, Verdict
from rarefy.data.tail_noise import stratified
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of
from rarefy.theory.benign import noise_correlation_ratio

BenignMajority: Any = get_study("benign-majority")

pytestmark = pytest.mark.usefixtures("eager")

TINY: Any = BenignMajority.at("tiny")
FLOAT64 = Context(dtype=torch.float64)


# ------------------------------------------------------------------------------------- the controls


def gammas(control: str, majority: int) -> np.ndarray:
    variance = TINY.noise(4.0, control, majority).table()[0].numpy() ** 2
    return noise_correlation_ratio(variance @ variance.T, TINY.sizes(control, majority))


def test_gamma_falls_with_the_majority_as_stated_and_in_the_same_way_when_size_is_held() -> None:
    np.testing.assert_allclose(gammas("size held", 6), gammas("as stated", 6))
    for grown in (12, 24):
        stated = gammas("as stated", grown)
        np.testing.assert_allclose(stated[0, -1], 4.0 * 6 / grown)
        np.testing.assert_allclose(gammas("size held", grown), stated)
    assert TINY.sizes("size held", 24).tolist() == [6, 6, 6]
    assert TINY.sizes("ratio held", 24).tolist() == [6, 6, 24]


def test_a_clear_majority_has_no_noise_along_the_others_special_directions() -> None:
    clear, stated = (TINY.noise(4.0, word, 24).table()[0] for word in ("clear", "as stated"))
    assert (clear[-1, 3:5] == 0).all() and clear[-1, 5] == stated[-1, 5]
    clear[-1, 3:5] = stated[-1, 3:5]
    assert torch.equal(clear, stated)


def test_a_held_ratio_keeps_the_noise_s_strength_and_gamma_as_far_as_it_can() -> None:
    paper = BenignMajority()
    for gamma, majority, least in ((2.0, 400, 0.99), (4.0, 100, 0.99), (10.0, 200, 0.9)):
        stated, clear, held = (
            paper.noise(gamma, word, majority).table()[0]
            for word in ("as stated", "clear", "ratio held")
        )
        assert held.square().sum(dim=1).tolist() == pytest.approx(
            clear.square().sum(dim=1).tolist()
        )
        assert torch.equal(held[:-1], stated[:-1])
        ratios = []
        for table, control in ((stated, "as stated"), (clear, "clear"), (held, "ratio held")):
            variance = table.numpy() ** 2
            sizes = paper.sizes(control, majority)
            ratios.append(noise_correlation_ratio(variance @ variance.T, sizes)[0, -1])
        assert ratios[1] == pytest.approx(ratios[0], rel=0.15)  # clear: Gamma hardly notices
        assert least <= ratios[2] / gamma <= 1.01
    assert paper.kept(10.0, 400) == 0  # the last special direction alone is too much


# ------------------------------------------------------------------------------------- the verdicts

CONTROLS = BenignMajority().control
STUDY = BenignMajority(gamma=(4.0,), majority=(25, 100, 400), schedule=("trained",))
SEEDS = 8


def made_up(
    fall: dict[str, float], loss: float = 0.01, loss_held: float = 0.003, scatter: float = 0.01
) -> xr.Dataset:
    """Accuracies of the small classes that fall in equal steps, by ``fall`` in all."""
    steps = np.array([0.0, 0.5, 1.0])
    drop = np.stack([fall.get(control, 0.0) * steps for control in CONTROLS])
    base = 0.9 + scatter * np.random.default_rng(0).normal(size=(SEEDS, 4, 3, 2, 2, 5))
    accuracy = base - drop[None, :, :, None, None, None]
    accuracy[..., -1] = 0.99 + 0.001 * np.arange(3)[:, None, None]  # the majority gains
    losses = np.full((4, 3, 5), loss)
    losses[CONTROLS.index("ratio held"), 1:] = [[loss_held], [10 * loss_held]]
    run = ("control", "majority")
    values = {
        "accuracy": (("seed", *run, "criterion", "length", "class"), accuracy),
        "train_loss": ((*run, "class"), losses),
        "stopped_at": 0.0,
    }
    return fabricated(STUDY, SEEDS, values)


def split(results: xr.Dataset) -> tuple[list[Verdict], dict[str, Verdict]]:
    """Trends, and what is said of the controls, no part of the claim."""
    verdicts = STUDY.verdicts(results, "paper")
    trends = [verdict for verdict in verdicts if verdict.about == "B9"]
    assert [verdict.claim for verdict in trends] == ["B9.1", "B9", "B9"]
    rest = [verdict for verdict in verdicts if verdict.role == "diagnostic"]
    words = ("ratio held", "size held")
    return trends, {word: v for word in words for v in rest if f"{word} (" in v.setting}


AS_THE_THEOREM_SAYS = {"as stated": 0.3, "clear": 0.3, "size held": 0.3}


def test_a_fall_that_gamma_explains_holds_throughout() -> None:
    trends, controls = split(made_up(AS_THE_THEOREM_SAYS))
    assert [verdict.outcome for verdict in trends] == ["holds"] * 3
    assert {control: v.outcome for control, v in controls.items()} == dict.fromkeys(
        ("ratio held", "size held"), "holds"
    )
    assert "|S_j| = 25" in trends[0].note and "when as stated" in controls["size held"].note


def test_a_fall_that_numbers_explain_fails_in_the_controls_only() -> None:
    trends, controls = split(made_up({"as stated": 0.3, "clear": 0.1, "ratio held": 0.1}))
    assert [verdict.outcome for verdict in trends] == ["holds"] * 3
    assert {verdict.outcome for verdict in controls.values()} == {"fails"}


def test_no_fall_decides_nothing_about_its_reason_and_a_rise_fails() -> None:
    trends, controls = split(made_up({}))
    assert {verdict.outcome for verdict in trends} == {"inconclusive"}
    assert {verdict.outcome for verdict in controls.values()} == {"inconclusive"}
    assert all("no certain fall" in verdict.note for verdict in controls.values())
    trends, _ = split(made_up({"as stated": -0.08}))
    assert {verdict.outcome for verdict in trends} == {"fails"}


def test_a_control_is_compared_as_far_as_it_was_trained() -> None:
    """The held ratio reaches a small loss at 100 samples, not at 400."""
    _, controls = split(made_up(AS_THE_THEOREM_SAYS, loss_held=0.03))
    assert "majority up to 100" in controls["ratio held"].note
    assert "majority up to 400" in controls["size held"].note
    assert controls["ratio held"].outcome == "holds"
    trends, controls = split(made_up(AS_THE_THEOREM_SAYS, loss=1.5, loss_held=1.5))
    for verdict in (*trends, *controls.values()):
        assert verdict.outcome == "premise-not-met"


def test_what_is_left_of_a_ratio_that_cannot_be_held_is_told() -> None:
    _, controls = split(made_up(AS_THE_THEOREM_SAYS))
    variance = STUDY.noise(4.0, "ratio held", 400).table()[0].numpy() ** 2
    left = noise_correlation_ratio(variance @ variance.T, STUDY.sizes("ratio held", 400))[0, -1]
    assert left < 3.9
    assert f"Gamma towards it is left {left:.3g} at 4" in controls["ratio held"].note


# --------------------------------------------------------------------------------------- simulation


def cell(study: Any, **wanted: Any) -> Any:
    grid = grid_of(study)
    cells = grid.cells(np.arange(len(grid)))
    same = [np.asarray(cells.values[name]) == value for name, value in wanted.items()]
    return cells.take(np.flatnonzero(np.logical_and.reduce(same)))


def loop_scores(filters: Tensor, noise: Tensor, labels: Tensor, strength: float) -> Tensor:
    """F_k(x_i) of (1), a filter at a time; the features are the first axes."""
    classes, m, _ = filters.shape
    scores = torch.zeros(len(noise), classes, dtype=filters.dtype)
    for k in range(classes):
        for r in range(m):
            feature = strength * filters[k, r, labels]
            scores[:, k] = scores[:, k] + torch.relu(noise @ filters[k, r]) + torch.relu(feature)
    return scores


def test_a_cell_is_what_a_plain_loop_with_autograd_gives() -> None:
    study: Any = BenignMajority.at("tiny", schedule=("printed",), steps=3, test_samples=300)
    chosen = cell(study, schedule="printed", control="as stated", majority=12, seed=1)
    found = study.simulate(chosen, FLOAT64)
    prepared = study._prepared("printed", 24, chosen, FLOAT64)
    filters = prepared.initial[0].clone()
    noise, labels = prepared.samples.noise[0], prepared.samples.labels[0]
    assert labels.tolist() == [0] * 6 + [1] * 6 + [2] * 12
    for _ in range(3):
        leaf = filters.clone().requires_grad_(True)
        scores = loop_scores(leaf, noise, labels, study.strength)
        loss = torch.nn.functional.cross_entropy(scores, labels)
        (gradient,) = torch.autograd.grad(loss, leaf)
        filters = filters - study.lr * gradient
    scores = loop_scores(filters, noise, labels, study.strength)
    losses = torch.nn.functional.cross_entropy(scores, labels, reduction="none")
    expected = [losses[labels == k].mean().item() for k in range(3)]
    np.testing.assert_allclose(found["train_loss"][0], expected, rtol=1e-9)
    # accuracy on the stratified test samples, weighted by hand
    fresh = (torch.arange(300) % 3)[None]
    tail = stratified(prepared.data, prepared.draws, fresh, study.lengths[1:], "test", 0)
    truth, weight = tail.samples.labels[0], tail.log_weight[0].exp()
    scores = loop_scores(filters, tail.samples.noise[0], truth, study.strength)
    right = scores.argmax(dim=1) == truth
    for k in range(3):
        for place, length in enumerate(study.lengths):
            here = (truth == k) & (tail.special[0].abs() >= length)
            share = (weight[here] * right[here]).sum() / weight[here].sum()
            assert found["accuracy"][0, 1, place, k] == pytest.approx(share.item(), rel=1e-9)


def test_small_classes_keep_their_samples_as_the_last_one_grows() -> None:
    small, large = (
        TINY._prepared(
            "trained",
            12 + size,
            cell(TINY, schedule="trained", control="as stated", majority=size, seed=0),
            FLOAT64,
        )
        for size in (12, 24)
    )
    assert torch.equal(small.samples.noise[0], large.samples.noise[0, :24])
    assert torch.equal(small.initial, large.initial)
