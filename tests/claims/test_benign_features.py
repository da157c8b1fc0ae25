"""B3, B5, B7: verdicts on maps made up."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import fabricated

from rarefy.core.contracts import Cells, Context, Verdict
from rarefy.core.picture import HeatMap, Lines
from rarefy.measure.separation import error_of, separation
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of

BenignFeatures: Any = get_study("benign-features")

pytestmark = pytest.mark.usefixtures("eager")

# ------------------------------------------------------------------------------------- the verdicts

STUDY = BenignFeatures(seeds=4, schedule=("trained",), gamma=(1.0,))
FIGURE = BenignFeatures(seeds=4, schedule=("printed",), gamma=(1.2,))
WEAK = BenignFeatures(
    seeds=4, schedule=("trained",), gamma=(1.0,), strength=(0.01, 0.2, 0.4, 0.6, 0.7)
)
"""x is below 1 throughout: of the fall of errors nothing is said."""
UNTRAINED = 1.5
"""A training loss of which the theorem says nothing, and the figures all the same."""
Law = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def claimed(x: np.ndarray, size: np.ndarray, strength: np.ndarray) -> np.ndarray:
    return error_of(np.sqrt(1.6 * x), 5)


def ratio(study: Any, gamma: float) -> np.ndarray:
    """x: (size, strength)."""
    square = study.spectrum(gamma).table()[0].square().numpy()
    return np.array(study.size)[:, None] * np.array(study.strength) ** 4 / (square[0] @ square[1])


def results_of(law: Law, loss: float = 0.009, study: Any = STUDY) -> xr.Dataset:
    """Results in which the error follows ``law``(x, |S|, |u|), a little different by seed."""
    size, strength = np.array(study.size, float), np.array(study.strength)
    error = []
    for g, gamma in enumerate(study.gamma):
        x = ratio(study, gamma)
        values = law(x, np.broadcast_to(size[:, None], x.shape), np.broadcast_to(strength, x.shape))
        wobble = 1 + 0.01 * np.random.default_rng(g).normal(size=(*x.shape, study.seeds))
        error.append(np.round(np.minimum(values[..., None] * wobble, 1) * study.test_samples))
    dims = ("gamma", "size", "strength", "seed")
    test_error = (dims, np.stack(error) / study.test_samples)
    values = {"test_error": test_error, "train_loss": loss, "stopped_at": 100}
    return fabricated(study, study.seeds, values)


@cache
def every(law: Law, loss: float = 0.009, study: Any = STUDY) -> list[Verdict]:
    return study.verdicts(results_of(law, loss, study), "paper")


def judged(law: Law, study: Any = STUDY, loss: float = 0.009) -> dict[str, Verdict]:
    """Primary readings by their id."""
    return {v.claim: v for v in every(law, loss, study) if v.role == "primary"}


def outcomes(law: Law, claim: str, study: Any = STUDY, loss: float = 0.009) -> list[str]:
    """Of a claim's primary readings, in their order."""
    found = judged(law, study, loss)
    return [found[name].outcome for name in sorted(found) if found[name].about == claim]


def test_the_law_of_the_bound_holds() -> None:
    assert outcomes(claimed, "B3") == ["holds"] * 3
    x = ratio(STUDY, 1.0)
    constant = judged(claimed)["B3.1"]
    there = x >= 4
    seen = claimed(x, x, x) * STUDY.test_samples * STUDY.seeds >= 10
    expected = (np.log(4 / claimed(x, x, x)) / x)[there & seen].min()
    assert constant.value == pytest.approx(expected, rel=0.05)


def test_a_slower_fall_fails() -> None:
    found = outcomes(lambda x, s, u: 0.8 * np.exp(-(x**0.3)), "B3")
    assert found[0] == found[2] == "fails"


def test_a_network_at_chance_is_told_apart() -> None:
    assert outcomes(lambda x, s, u: np.full_like(x, 0.8), "B3")[0] == "fails"


def test_errors_that_do_not_care_for_the_number_of_samples_fail() -> None:
    found = outcomes(lambda x, s, u: error_of(0.7 * u**2, 5), "B3")
    assert found[1:] == ["fails", "holds"]


def test_a_large_training_loss_leaves_the_theorem_undecided() -> None:
    for claim, count in (("B3", 3), ("B5", 1)):
        assert outcomes(claimed, claim, loss=UNTRAINED) == ["premise-not-met"] * count
    assert "the median training loss there is 1.5" in judged(claimed, loss=UNTRAINED)["B3.1"].note
    assert outcomes(claimed, "B3", WEAK) == ["premise-not-met"] * 3


def test_too_few_errors_to_count_decide_nothing() -> None:
    found = outcomes(lambda x, s, u: np.where(x < 1, 0.5, 0.0), "B3")
    assert found == ["inconclusive"] * 3


def test_harmful_overfitting_holds_fails_and_has_a_premise() -> None:
    assert outcomes(claimed, "B5", WEAK) == ["holds"]
    assert outcomes(lambda x, s, u: 0.15 * np.exp(-x), "B5", WEAK) == ["fails"]
    strong = BenignFeatures(seeds=4, gamma=(1.0,), strength=(3.0, 4.0), schedule=("trained",))
    assert outcomes(claimed, "B5", strong) == ["premise-not-met"]


def test_the_theorem_speaks_of_harm_where_the_ratio_is_at_most_1() -> None:
    verdict = judged(claimed)["B5.1"]
    assert f"smallest of {(ratio(STUDY, 1.0) <= 1).sum()} cells" in verdict.note
    edge = float(separation(0.2, 5)) ** 2 / 1.6  # x at which the error of this law is 0.2
    low, high = (float(word) for word in verdict.note.split("at x = ")[1].split(" to "))
    assert low == pytest.approx(edge, rel=0.05) and high == pytest.approx(edge, rel=0.05)


def test_the_figure_holds_as_claimed_and_fails_where_more_data_do_not_help() -> None:
    assert outcomes(claimed, "B7", FIGURE, UNTRAINED) == ["holds"] * 3
    flat = outcomes(lambda x, s, u: error_of(0.3 * u**2, 5), "B7", FIGURE, UNTRAINED)
    assert flat[1:] == ["holds", "fails"]
    chance = outcomes(lambda x, s, u: np.full_like(x, 0.8), "B7", FIGURE, UNTRAINED)
    assert chance[2] == "fails" and chance[1] != "holds"


def test_no_strength_is_left_out_of_figure_4a_by_its_accuracy() -> None:
    """Rising with |S| at one |u| of twelve, by 0.3: too little to be seen in the mean over all."""

    def law(x: np.ndarray, size: np.ndarray, strength: np.ndarray) -> np.ndarray:
        rises = 0.6 - 0.1 * np.searchsorted(np.array(FIGURE.size), size)
        return np.where(strength == FIGURE.strength[5], rises, 0.0)

    found = judged(law, FIGURE, UNTRAINED)["B7.3"]
    assert f"all {len(FIGURE.strength)} |u|" in found.note and found.outcome == "fails"


def test_other_trainings_and_ratios_are_robustness() -> None:
    study = BenignFeatures(seeds=4, schedule=("printed", "trained"), gamma=(1.0, 1.2))
    found = every(claimed, 0.009, study)
    assert len({v.identity for v in found}) == len(found)
    assert sorted(v.claim for v in found if v.role == "primary") == sorted(
        ["B3.1", "B3.2", "B3.3", "B5.1", "B7.1", "B7.2", "B7.3"]
    )
    rest = [v for v in found if v.role == "robustness"]
    assert {v.setting.partition(": ")[0] for v in rest} == {
        "printed, Gamma 1",
        "printed, Gamma 1.2",
        "trained, Gamma 1.2",
    }
    assert {v.outcome for v in rest} == {"holds"}


# ---------------------------------------------------------------------------------- maps and tables


def test_the_bound_lies_above_every_counted_error_beyond_the_cut_too() -> None:
    results, x = results_of(claimed), ratio(STUDY, 1.0)
    far = np.unravel_index(x.argmax(), x.shape)
    results["test_error"][{"size": far[0], "strength": far[1]}] = 0.01  # where none was expected
    fall = next(picture for picture in STUDY.picture(results) if picture.name == "fall")
    panel = fall.panels[0]
    assert isinstance(panel, Lines)
    (bound,) = (curve for curve in panel.curves if curve.label.startswith("bound"))
    assert bound.x[-1] == pytest.approx(x.max()) and bound.y[-1] == pytest.approx(0.01)
    for curve in panel.curves[: len(STUDY.size)]:
        there = (curve.x >= 4) & np.isfinite(curve.y)
        assert (curve.y[there] <= np.interp(curve.x[there], bound.x, bound.y) * 1.02).all()


def test_pictures_draw_lines_of_the_ratio() -> None:
    pictures = {picture.name: picture for picture in STUDY.picture(results_of(claimed))}
    assert set(pictures) == {"map-1", "fall"}
    panel = pictures["map-1"].panels[0]
    assert isinstance(panel, HeatMap) and [c.label for c in panel.curves][0] == "x = 1"


# -------------------------------------------------------------------------------- what it simulates


FLOAT64 = Context(dtype=torch.float64)


def tiny(**parameters: Any) -> Any:
    return BenignFeatures.at("tiny", **parameters)


def plain(study: Any, cells: Cells, row: int) -> tuple[float, float]:
    """Test error and training loss of one cell by autograd, sample by sample."""
    kind, gamma = str(cells.values["schedule"][row]), float(cells.values["gamma"][row])
    size, strength = int(cells.values["size"][row]), float(cells.values["strength"][row])
    noise = study.spectrum(gamma)
    experiment = study.setup(
        cells.take(np.array([row])),
        FLOAT64,
        spectrum=noise,
        strength=torch.tensor([strength], dtype=torch.float64),
        sizes=torch.full((1, study.classes), size),
        schedule=kind,
    )

    def scores(filters: torch.Tensor, samples: Any) -> torch.Tensor:
        labels = samples.labels[0]
        noise = torch.relu(torch.einsum("kmd,nd->nkm", filters, samples.noise[0]))
        own = strength * samples.features[0][labels]
        feature = torch.relu(torch.einsum("kmd,nd->nkm", filters, own))
        return (noise + feature).sum(dim=2)

    training = study.training(kind)
    rate = float(experiment.rates(training)[0])
    filters = experiment.initial[0].clone().requires_grad_(True)
    for _ in range(training.steps):
        out = scores(filters, experiment.samples)
        now = torch.nn.functional.cross_entropy(out, experiment.samples.labels[0])
        (gradient,) = torch.autograd.grad(now, filters)
        filters = (filters - rate * gradient).detach().requires_grad_(True)
        if now <= training.stop_loss:
            break
    with torch.no_grad():
        ended = scores(filters, experiment.samples)
        loss = torch.nn.functional.cross_entropy(ended, experiment.samples.labels[0])
    fresh = [experiment.fresh(250, 0), experiment.fresh(50, 1)]
    wrong = [scores(filters, part).argmax(dim=1) != part.labels[0] for part in fresh]
    return float(torch.cat(wrong).double().mean()), float(loss)


def test_cells_are_what_a_plain_loop_gives() -> None:
    study = tiny(seeds=1, trained_steps=150)
    cells = grid_of(study).cells(np.arange(len(grid_of(study))))
    found = study.simulate(cells, FLOAT64)
    for row in (4, 7, 13, 22, 26, 34):
        error, loss = plain(study, cells, row)
        assert found["test_error"][row] == pytest.approx(error, abs=1e-9)
        assert found["train_loss"][row] == pytest.approx(loss, rel=1e-6)


def test_a_run_that_explodes_has_no_error_rather_than_none() -> None:
    study = tiny(schedule=("trained",), strength=(1e30,), trained_lr=1e30, trained_steps=5)
    found = study.simulate(grid_of(study).cells(np.arange(3)), Context())
    lost = found["nonfinite_step"] >= 0
    assert lost.any() and np.isnan(found["test_error"][lost]).all()
