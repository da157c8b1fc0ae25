"""``benign-correlation``: a cell by a plain loop, the best classifier, the verdicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import fabricated

from rarefy.core.contracts import Cells, Context, Verdict
from rarefy.core.picture import Lines
from rarefy.data.noise_spectrum import spectrum_for
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of
from rarefy.theory.class_noise_bayes import least_noise_error, special_ratio

BenignCorrelation: Any = get_study("benign-correlation")

FLOAT64 = Context(dtype=torch.float64)


def study(**parameters: Any) -> Any:
    return BenignCorrelation.at("tiny", **parameters)


def test_a_cell_is_what_its_parts_give_one_after_the_other() -> None:
    small = study()
    grid = grid_of(small)
    columns = [grid.values[name] for name in ("law", "schedule", "strength", "gamma", "seed")]
    wanted = ("gaussian", "trained", 1.0, 10.0, 1)
    (place,) = (i for i, row in enumerate(zip(*columns, strict=True)) if row == wanted)
    found = small.simulate(grid.cells(np.array([place])), FLOAT64)
    whole = small.setup(
        grid.cells(np.array([place])),
        FLOAT64,
        spectrum=spectrum_for(10.0, small.d, small.classes),
        strength=torch.ones(1, dtype=torch.float64),
        sizes=torch.full((1, small.classes), small.size),
        schedule="trained",
        zeta_axes="rotated",
    )
    fitted = whole.fit(FLOAT64, small.training("trained"))
    filters = fitted.filters[0]
    wrong = []
    for start in (0, 250):
        fresh = whole.fresh(min(250, small.test_samples - start), start // 250)
        scores = torch.relu(fresh.noise[0] @ filters.transpose(1, 2)).sum(dim=2)  # (class, n)
        own = torch.relu(filters @ fresh.features[0].T).sum(dim=1)  # (class, feature)
        scores = scores + own[:, fresh.labels[0]]
        wrong.append(scores.argmax(dim=0) != fresh.labels[0])
    assert found["test_error"][0] == pytest.approx(torch.cat(wrong).double().mean().item())
    assert found["stopped_at"][0] == fitted.stopped_at[0] > 0


def test_the_best_classifier_errs_as_the_formula_says() -> None:
    """Two filters per class, along its special direction and against: F_k is |x_k|."""
    small, gamma, samples = study(), np.array([1.2, 4.0, 30.0]), 20_000
    trial = small.setup(
        Cells({"seed": np.zeros(3)}, np.full(3, 3, dtype=np.int64)),
        FLOAT64,
        spectrum=small.spectrum(torch.tensor(gamma)),
        strength=torch.zeros(3, dtype=torch.float64),
        sizes=torch.full((1, small.classes), small.size),
        zeta_axes="rotated",
    )
    filters = torch.zeros(3, small.classes, 2, small.d, dtype=torch.float64)
    for k in range(small.classes):
        filters[:, k, 0, small.classes + k] = 1
        filters[:, k, 1, small.classes + k] = -1
    seen = trial.test(filters, FLOAT64, samples).error.numpy()
    expected = least_noise_error(special_ratio(gamma, small.d - small.classes), small.classes)
    np.testing.assert_allclose(seen, expected, atol=4 * 0.5 / np.sqrt(samples))


# ------------------------------------------------------------------------------------- the verdicts


GAMMA, STRENGTH = (1.0, 4.0, 20.0, 200.0, 1400.0), (0.001, 1.0, 2.0, 3.8)
LAWS = ("gaussian", "uniform", "uniform-own")
Law = Callable[[str, np.ndarray, np.ndarray], np.ndarray]


def made(
    accuracy: Law, seeds: int = 6, spread: float = 0.002, schedule: str = "printed"
) -> tuple[Any, xr.Dataset]:
    """Results as if measured: accuracy(law, |u|, Gamma)."""
    whole = BenignCorrelation.at(
        "paper", gamma=GAMMA, strength=STRENGTH, seeds=seeds, schedule=(schedule,), law=LAWS
    )
    generator = np.random.default_rng(1)
    u, g = np.array(STRENGTH)[:, None], np.array(GAMMA)[None, :]
    shape = (seeds, len(STRENGTH), len(GAMMA))
    errors = []
    for law in LAWS:
        error = 1 - np.broadcast_to(accuracy(law, u, g), shape[1:])
        errors.append(np.clip(error + spread * generator.standard_normal(shape), 0, 1))
    values = {"test_error": (("law", "seed", "strength", "gamma"), np.stack(errors))}
    return whole, fabricated(whole, seeds, {**values, "train_loss": 0.03})


def good(law: str, u: np.ndarray, g: np.ndarray) -> np.ndarray:
    """A network at the best by noise, and right with a strong feature."""
    kind = "uniform" if law == "uniform-own" else "gaussian"
    best = 1 - least_noise_error(special_ratio(g, 995), 5, kind)
    return np.where(u >= 1.5, 1.0, best)


def judged(accuracy: Law, **more: Any) -> dict[str, Verdict]:
    """By claim; what is no primary by its condition."""
    whole, results = made(accuracy, **more)
    found = whole.verdicts(results, "paper")
    return {v.claim if v.role == "primary" else v.setting.partition(":")[0]: v for v in found}


def test_a_map_as_the_paper_says_holds() -> None:
    found = judged(good)
    assert {name: v.outcome for name, v in found.items()} == dict.fromkeys(
        ("B6.1", "B6.2", "B6.3", "printed, uniform-own"), "holds"
    )
    assert found["B6.1"].n == 6 and "training loss at most 0.03" in found["B6.2"].note


def test_a_network_far_from_the_best_fails_there_only() -> None:
    found = judged(lambda law, u, g: 0.85 * good(law, u, g))
    assert [found[f"B6.{i}"].outcome for i in (1, 2, 3)] == ["fails", "holds", "holds"]


def test_the_worse_of_both_laws_decides() -> None:
    found = judged(lambda law, u, g: good(law, u, g) - 0.1 * (law == "uniform"))["B6.1"]
    assert found.outcome == "fails" and "decided at uniform (accuracy" in found.note


def test_a_map_the_other_way_round_fails() -> None:
    found = judged(lambda law, u, g: 1.1 - 0.1 * np.log(g * (1 + u)))
    assert {found[f"B6.{i}"].outcome for i in (1, 2, 3)} == {"fails"}


def test_a_map_at_chance_is_told_apart() -> None:
    found = judged(lambda law, u, g: np.full_like(u * g, 0.2))
    assert found["B6.1"].outcome == "fails"
    assert "holds" not in {found["B6.2"].outcome, found["B6.3"].outcome}


def test_another_training_is_robustness_by_law() -> None:
    found = judged(good, schedule="trained")
    assert set(found) == {f"trained, {law}" for law in LAWS}
    assert {(v.claim, v.outcome) for v in found.values()} == {("B6", "holds")}


def test_two_seeds_that_disagree_decide_nothing() -> None:
    assert judged(good, seeds=2, spread=0.1)["B6.1"].outcome == "inconclusive"


def test_the_best_by_noise_alone_is_drawn_for_each_law() -> None:
    whole, results = made(good)
    best = next(picture for picture in whole.picture(results) if picture.name == "best")
    for panel, law in zip(best.panels, ("gaussian", "gaussian", "uniform"), strict=True):
        assert isinstance(panel, Lines)
        line = panel.curves[-1]
        error = least_noise_error(special_ratio(line.x, 995), 5, law)
        np.testing.assert_allclose(line.y, 1 - error, rtol=1e-12)
