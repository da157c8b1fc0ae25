"""B3, B5, B6, B7: verdicts on maps made up."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.picture import HeatMap, Lines
from rarefy.measure.separation import error_of, separation
from rarefy.studies import get_study

BenignFeatures: Any = get_study("benign-features")

# ------------------------------------------------------------------------------------- the verdicts

STUDY = BenignFeatures(seeds=4, schedule=("trained",), gamma=(1.0,))
FIGURE = BenignFeatures(seeds=4, schedule=("trained",), gamma=(1.2,))
WEAK = BenignFeatures(
    seeds=4, schedule=("trained",), gamma=(1.0,), strength=(0.01, 0.2, 0.4, 0.6, 0.7)
)
"""x is below 1 throughout: of the fall of errors nothing is said."""
UNTRAINED = 1.5
"""A training loss of which the theorem says nothing, and the figures all the same."""
STARTS = (1.0, 4.0)
"""x from which on the laws are read."""
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
    shape = (len(study.schedule), len(study.gamma), len(size), len(strength), study.seeds)
    error = np.empty(shape)
    for g, gamma in enumerate(study.gamma):
        x = ratio(study, gamma)
        values = law(x, np.broadcast_to(size[:, None], x.shape), np.broadcast_to(strength, x.shape))
        wobble = 1 + 0.01 * np.random.default_rng(g).normal(size=(*x.shape, study.seeds))
        counts = np.round(np.minimum(values[..., None] * wobble, 1) * study.test_samples)
        error[:, g] = counts / study.test_samples
    dims = ("schedule", "gamma", "size", "strength", "seed")
    coordinates = {name: list(getattr(study, name)) for name in dims[:4]}
    return xr.Dataset(
        {
            "test_error": (dims, error),
            "train_loss": (dims, np.full(shape, loss)),
            "stopped_at": (dims, np.full(shape, 100)),
        },
        coords={**coordinates, "seed": np.arange(study.seeds)},
    )


@cache
def every(law: Law, loss: float = 0.009, study: Any = STUDY) -> list[Verdict]:
    return study.verdicts(results_of(law, loss, study), "paper")


def judged(law: Law, claim: str, loss: float = 0.009, study: Any = STUDY) -> list[Verdict]:
    """Of what was run."""
    found = every(law, loss, study)
    return [v for v in found if v.claim == claim and ": needs Gamma" not in v.setting]


def outcomes(
    law: Law, claim: str, study: Any = STUDY, least: float = 1, loss: float = 0.009
) -> dict[str, str]:
    """By what is said; of the laws in x those read from ``least`` on."""
    found = {v.setting.partition(": ")[2]: v.outcome for v in judged(law, claim, loss, study)}
    where = f", from x = {least:g} on"
    if claim == "B3":
        return {k.removesuffix(where): v for k, v in found.items() if k.endswith(where)}
    return found


FADES = "factor by which -log(error)/x fades along x"
LOG = "exponent of -log(error) in x"
IN_SIZE, IN_STRENGTH = (f"exponent of the squared separation in {name}" for name in ("|S|", "|u|"))
ONTO = "errors collapse onto x: spread about x over spread about |u|"


@pytest.mark.parametrize("least", STARTS)
def test_the_law_of_the_bound_holds_in_all_readings_but_that_of_log_errors(least: float) -> None:
    assert outcomes(claimed, "B3", least=least) == {
        FADES: "holds",
        LOG: "fails",
        IN_SIZE: "holds",
        IN_STRENGTH: "holds",
        ONTO: "holds",
    }


def test_what_a_lawful_error_shows_is_told_beside_the_exponent_of_log_errors() -> None:
    """These errors are lawful themselves: the note says what was measured."""
    found = [v for v in judged(claimed, "B3") if LOG in v.setting]
    assert len(found) == len(STARTS)
    for verdict in found:
        lawful = float(verdict.note.split("would give ")[1].split()[0])
        assert verdict.interval is not None
        assert verdict.interval[0] - 0.01 < lawful < verdict.interval[1] + 0.01


def test_the_later_start_sees_what_happens_from_4_on() -> None:
    """From x = 4 on errors depend on |u| alone."""

    def law(x: np.ndarray, size: np.ndarray, strength: np.ndarray) -> np.ndarray:
        return np.where(x < 4, claimed(x, size, strength), error_of(1.1 * strength, 5))

    late = outcomes(law, "B3", least=4)
    assert late[ONTO] == late[IN_SIZE] == "fails"


def test_a_cubic_needs_more_cells_than_an_exponent() -> None:
    study = BenignFeatures(
        seeds=4, gamma=(1.0,), schedule=("trained",), size=(40, 200), strength=(1.0, 1.3, 1.6, 2.0)
    )
    found = {v.setting: v for v in judged(claimed, "B3", study=study)}
    onto = next(v for what, v in found.items() if ONTO in what)
    assert onto.outcome == "inconclusive" and "too few for a cubic" in onto.note
    assert next(v for what, v in found.items() if IN_SIZE in what).outcome == "holds"


def test_an_exponential_is_at_least_linear_in_x() -> None:
    found = outcomes(lambda x, s, u: np.exp(-0.7 * x**1.3), "B3")
    assert found[LOG] == found[FADES] == "holds"


def test_a_slower_fall_fails() -> None:
    found = outcomes(lambda x, s, u: 0.8 * np.exp(-(x**0.3)), "B3")
    assert found[LOG] == found[FADES] == found[IN_STRENGTH] == "fails"


def test_errors_that_do_not_care_for_the_number_of_samples_fail() -> None:
    found = outcomes(lambda x, s, u: error_of(1.3 * u**2, 5), "B3")
    assert found[IN_SIZE] == found[ONTO] == "fails"
    assert found[IN_STRENGTH] == "holds"


def test_a_large_training_loss_leaves_the_theorem_undecided() -> None:
    for claim in ("B3", "B5"):
        found = judged(claimed, claim, UNTRAINED)
        assert len(found) == (2 if claim == "B3" else 1)
        for verdict in found:
            assert verdict.outcome == "inconclusive" and "premise not met" in verdict.note


def test_too_few_errors_to_count_are_said_to_be_too_few() -> None:
    for verdict in judged(lambda x, s, u: np.where(x < 1, 0.5, 0.0), "B3"):
        assert verdict.outcome == "inconclusive" and "too few" in verdict.note


def test_harmful_overfitting_holds_fails_and_has_a_premise() -> None:
    holds = outcomes(claimed, "B5", WEAK)
    assert set(holds.values()) == {"holds"} and len(holds) == 2
    mild = outcomes(lambda x, s, u: 0.15 * np.exp(-x), "B5", WEAK)
    assert "fails" in mild.values()
    strong = BenignFeatures(seeds=4, gamma=(1.0,), strength=(3.0, 4.0), schedule=("trained",))
    (verdict,) = judged(claimed, "B5", study=strong)
    assert verdict.outcome == "inconclusive" and "premise not met" in verdict.note
    unfit = results_of(claimed, study=WEAK)
    unfit["train_loss"] = unfit["train_loss"].where(unfit["strength"] > 0.3, 0.2)
    found = [v.outcome for v in WEAK.verdicts(unfit, "paper") if v.claim == "B5"]
    assert found == ["holds", "fails"]


def test_the_theorem_speaks_of_harm_where_the_ratio_is_at_most_1() -> None:
    verdict = judged(claimed, "B5")[0]
    assert f"smallest of {(ratio(STUDY, 1.0) <= 1).sum()} cells" in verdict.note
    edge = float(separation(0.2, 5)) ** 2 / 1.6  # x at which the error of this law is 0.2
    low, high = (float(word) for word in verdict.note.split("at x = ")[1].split(" to "))
    assert low == pytest.approx(edge, rel=0.02) and high == pytest.approx(edge, rel=0.02)


def test_the_figure_holds_as_claimed_and_fails_where_more_data_do_not_help() -> None:
    assert set(outcomes(claimed, "B7", FIGURE, loss=UNTRAINED).values()) == {"holds"}
    flat = outcomes(lambda x, s, u: error_of(0.3 * u**2, 5), "B7", FIGURE, loss=UNTRAINED)
    assert flat["accuracy grows with |S|, mean over |u|, rise from first to last"] == "fails"
    assert flat["accuracy grows with |u|, mean over |S|"] == "holds"
    chance = outcomes(lambda x, s, u: np.full_like(x, 0.8), "B7", FIGURE, loss=UNTRAINED)
    assert chance["accuracy grows with |S|, mean over |u|, rise from first to last"] == "fails"


def test_no_strength_is_left_out_of_figure_4a_by_its_accuracy() -> None:
    """Rising with |S| at one |u| of twelve, by 0.3: too little to be seen in the mean over all."""

    def law(x: np.ndarray, size: np.ndarray, strength: np.ndarray) -> np.ndarray:
        rises = 0.6 - 0.1 * np.searchsorted(np.array(FIGURE.size), size)
        return np.where(strength == FIGURE.strength[5], rises, 0.0)

    found = [v for v in judged(law, "B7", UNTRAINED, FIGURE) if "grows with |S|" in v.setting]
    assert {f"all {len(FIGURE.strength)} |u|" in v.note for v in found} == {True}
    assert found[1].outcome == "fails"


def test_the_feature_axis_of_figure_3_holds_and_fails() -> None:
    found = outcomes(claimed, "B6", loss=UNTRAINED)
    assert set(found.values()) == {"holds"} and all("|S| = 100" in what for what in found)
    falling = outcomes(lambda x, s, u: 1 - error_of(0.3 * u**2, 5), "B6", loss=UNTRAINED)
    assert set(falling.values()) == {"fails"}


def test_a_gamma_that_was_not_run_is_named() -> None:
    study = BenignFeatures(seeds=2, gamma=(2.0,), schedule=("trained",))
    found = {v.claim: v for v in study.verdicts(results_of(claimed, UNTRAINED, study), "paper")}
    assert found["B7"].outcome == found["B6"].outcome == "inconclusive"
    assert "Gamma 1.2 was not run" in found["B7"].note


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
        there = (curve.x >= 1) & np.isfinite(curve.y)
        assert (curve.y[there] <= np.interp(curve.x[there], bound.x, bound.y) * 1.02).all()


def test_pictures_draw_lines_of_the_ratio_and_the_proof_s_condition_is_stricter() -> None:
    results = results_of(claimed)
    pictures = {picture.name: picture for picture in STUDY.picture(results)}
    assert set(pictures) == {"map-1", "fall", "cuts"}
    panel = pictures["map-1"].panels[0]
    assert isinstance(panel, HeatMap) and [c.label for c in panel.curves][0] == "x = 1"
    table = STUDY.tables(results)[0]
    assert all(float(str(row[3])) < float(str(row[2])) for row in table.rows)
