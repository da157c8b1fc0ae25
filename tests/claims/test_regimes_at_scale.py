"""The searches of the study of boundaries in any dimension, and its verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from scale_results import Value, as_theory, ends_of, read, results_of, study_of, synthetic

from rarefy.core.contracts import Cells, Context, Verdict
from rarefy.sweep.grid import grid_of

pytestmark = pytest.mark.usefixtures("eager")
WIDE = Context(dtype=torch.float64)


def cells_of(study: Any) -> Cells:
    grid = grid_of(study)
    return grid.cells(np.arange(len(grid)))


def small(**parameters: Any) -> Any:
    words = ("side 1", "signal 0.5", "tail 2", "feature 0.5", "side 2", "feature 0.2")
    given = {"question": words, "size": (6,), "classes": (2,), "precision": 0.5, "filters": 6}
    return study_of(**{**given, "test_samples": 100, **parameters})


@pytest.mark.slow
def test_a_cell_alone_is_what_it_is_among_questions_of_its_world() -> None:
    study = small()
    cells = cells_of(study)
    together = study.simulate(cells, WIDE)
    for one in range(0, len(cells), 5):
        alone = study.simulate(cells.take(np.array([one])), WIDE)
        for name, values in together.items():
            np.testing.assert_allclose(alone[name][0], values[one], rtol=1e-9, atol=1e-12)


def test_bisection_finds_what_a_full_grid_finds() -> None:
    """The first place at which the outcome has turned, all places looked at."""
    study = small(question=("signal 0.5", "feature 0.5", "side 2"), audits=0)
    cells = cells_of(study)
    found = study.simulate(cells, WIDE)
    for word in study.question:
        rows = np.flatnonzero(np.asarray(cells.values["question"]) == word)
        world = "noise" if word == "side 2" else word.split()[0]
        path = study.path(world, 6, 2, cells.take(rows), WIDE)
        low, high = ends_of(word, 6, 2)
        halvings = math.ceil(math.log2((high - low) / study.precision))
        places = np.linspace(low, high, 2**halvings + 1)
        # half of log T, half of chance, the tail's level of chance
        level = {"signal": 0.5 * math.log(2), "feature": 0.25, "noise": 0.025}[world]
        turned = np.stack(
            [
                (path.judged(path.at(torch.full((len(rows),), place, dtype=torch.float64))) < level)
                for place in places
            ]
        )
        assert (np.diff(turned.astype(int), axis=0) >= 0).all()  # a single turn
        first = turned.argmax(axis=0)
        inside = found["outside"][rows] == 0
        assert inside.any()
        middle = (places[first] + places[np.maximum(first - 1, 0)]) / 2
        np.testing.assert_allclose(found["boundary"][rows][inside], middle[inside], atol=1e-12)
        assert (turned[-1][found["outside"][rows] > 0] == 0).all()


@pytest.mark.slow
def test_single_precision_finds_the_boundaries_of_double_precision() -> None:
    study = small(precision=0.25)
    cells = cells_of(study)
    single, double = (study.simulate(cells, context) for context in (Context(), WIDE))
    for name in ("outside", "runs", "grid"):
        np.testing.assert_array_equal(single[name], double[name])
    apart = np.abs(single["boundary"] - double["boundary"])
    assert np.nanmax(apart) <= 0.25  # one bracket, where an error is at its level
    assert (apart[np.isfinite(apart)] == 0).mean() > 0.9
    ends = [0, 2]
    np.testing.assert_allclose(
        single["train_loss"][:, ends], double["train_loss"][:, ends], rtol=1e-3
    )


def test_sides_differ_in_their_test_alone_and_the_filters_side_is_the_easier_one() -> None:
    study = small(question=("tail 2", "side 2"), seeds=3, d=(10**6,))
    found = study.simulate(cells_of(study), WIDE)
    tail, side = np.split(np.arange(len(cells_of(study))).reshape(3, 2), 2, axis=1)
    np.testing.assert_array_equal(
        found["train_loss"][tail.ravel()][:, [0, 2]], found["train_loss"][side.ravel()][:, [0, 2]]
    )
    error = found["test_error"][:, 2]
    assert (error[side.ravel()] <= error[tail.ravel()]).all()
    assert error[side.ravel()].sum() < error[tail.ravel()].sum()


def test_signal_and_noise_are_told_only_where_002_speaks() -> None:
    study = small(question=("signal 0.5", "feature 0.5"), d=(10**6,))
    found = study.simulate(cells_of(study), WIDE)
    signal = np.asarray(cells_of(study).values["question"]) == "signal 0.5"
    for name in ("gamma", "rho", "noise_active", "signal_learnt", "rho_all"):
        assert np.isfinite(found[name][signal][:, [0, 2]]).all(), name
        assert np.isnan(found[name][~signal]).all(), name
    ratio = found["gamma"][signal] / found["rho"][signal]
    low, high = ends_of("signal 0.5", 6, 2)
    np.testing.assert_allclose(np.log10(ratio[:, [0, 2]]), [[low, high]] * signal.sum(), atol=0.15)
    share = found["noise_active"][signal][:, [0, 2]]
    assert ((share > 0.3) & (share <= 1)).all()


# ------------------------------------------------------------------------------------- the verdicts


def outcomes(study: Any, results: xr.Dataset) -> dict[str, Verdict]:
    return {f"{v.claim}: {v.setting}": v for v in study.verdicts(results, "tiny")}


def said(found: dict[str, Verdict], *words: str) -> set[str]:
    """Outcomes of the verdicts whose setting has all these words."""
    chosen = {v.outcome for name, v in found.items() if all(word in name for word in words)}
    assert chosen, words
    return chosen


def test_results_as_the_theorems_have_them_hold_at_the_largest_dimension() -> None:
    study = synthetic()
    found = outcomes(study, results_of(study))
    assert {v.outcome for v in found.values()} == {"holds"} and len(found) == 11
    assert {v.claim for v in found.values()} == set(study.claims)
    assert all(v.n == study.seeds and v.setting.startswith("d=1e+09: ") for v in found.values())


def test_of_002_nothing_is_decided_in_a_dimension_that_is_too_small() -> None:
    study = synthetic(d=(100, 10**4))  # T n^2 log(4 n^2/delta), n = 128, is 8.8e5
    found = outcomes(study, results_of(study))
    assert {v.outcome for v in found.values() if v.claim[0] == "S"} == {"premise-not-met"}
    assert any("below T n^2 log(4 n^2/delta) = 8.8e+05" in v.note for v in found.values())
    assert {v.outcome for v in found.values() if v.claim[0] == "B"} == {"holds"}


def moved(by: Callable[[str, int, int, int], float], *paths: str) -> Value:
    """As the theorems have it, and ``by`` more on some paths."""

    def place(word: str, size: int, classes: int, d: int) -> float:
        here = read(word)[0] in paths
        return as_theory(word, size, classes, d) + (by(word, size, classes, d) if here else 0.0)

    return place


def along(power: float, axis: str) -> Callable[[str, int, int, int], float]:
    """An exponent too many in one of the axes."""
    at = {"size": 1, "classes": 2, "d": 3}[axis]
    return lambda *point: power * math.log10(float(point[at]))


ALL = ("signal", "feature", "side", "tail")
SIDE, BOTH = "filters' side", "both sides"
AGAINST: list[tuple[dict[str, Any], dict[tuple[str, ...], str]]] = [
    (
        {
            "signal_learnt": 0.1,
            "noise_learnt": 0.1,
            "test_error": 0.4,
            "power": 0.7,
            "place": moved(along(0.4, "size"), *ALL),
        },
        {
            ("all of Theorem 4.2",): "S1",
            ("all of Theorem 4.3",): "S2",
            ("text: generalises poorly",): "S2",
            ("error at least half of chance, though fitted",): "B5",
            ("exponent of gamma/rho",): "S3",
            ("exponent of x* in |S|",): "B3",
            ("exponent of Gamma* in |S|", SIDE): "B4",
            ("exponent of Gamma* in |S|", BOTH): "B4",
        },
    ),
    (
        {"rho_all": 1000.0, "gamma_all": 1000.0},
        {("all of Theorem 4.2",): "S1", ("all of Theorem 4.3",): "S2"},
    ),
    (
        {
            "test_loss": {"low": 0.1, "boundary": 0.5, "high": 0.3},
            "place": moved(lambda *_: 1.0, *ALL),
        },
        {
            ("all of Theorem 4.2",): "S1",
            ("all of Theorem 4.3",): "S2",
            ("error at its level by x =",): "B3",
            ("error at its level by Gamma", SIDE): "B4",
            ("error at its level by Gamma", BOTH): "B4",
        },
    ),
]
"""What is changed, and by claim the verdicts that must fail then."""


@pytest.mark.parametrize(("change", "failing"), AGAINST)
def test_what_contradicts_a_theorem_fails(
    change: dict[str, Any], failing: dict[tuple[str, ...], str]
) -> None:
    study = synthetic(d=(10**4, 10**9))
    found = outcomes(study, results_of(study, **change))
    for words, claim in failing.items():
        assert said(found, *words) == {"fails"}, words
        assert {v.claim for name, v in found.items() if all(w in name for w in words)} == {claim}


def test_a_bound_may_be_undercut_and_an_equality_not() -> None:
    study = synthetic(d=(10**4, 10**9))
    place = moved(lambda w, size, k, d: -0.4 * math.log10(size / 8), "feature", "side", "tail")
    found = outcomes(study, results_of(study, place))
    assert said(found, "exponent of Gamma* in |S|") == {"holds"}
    assert said(found, "exponent of x* in |S|") == {"fails"}


def test_seeds_that_differ_too_much_or_are_missing_decide_nothing() -> None:
    study = synthetic(d=(10**4, 10**9))
    found = outcomes(study, results_of(study, wobble=80.0))
    for words in ("exponent of x* in |S|", "exponent of Gamma* in |S|"):
        assert said(found, words) == {"inconclusive"}
    alone = synthetic(seeds=1, d=(10**4, 10**9))
    assert {v.outcome for v in outcomes(alone, results_of(alone)).values()} == {"inconclusive"}


def test_rows_without_a_boundary_are_counted_at_the_end_they_lie_beyond_and_told() -> None:
    study = synthetic(d=(10**9,))
    results = results_of(study, outside=lambda w, size, *_: float(w == "tail 2" and size > 8))
    found = outcomes(study, results)
    # two sizes of three lie above the end: a rise, although no boundary that was found moves
    words = ("exponent of Gamma* in |S|", "both sides")
    assert said(found, *words) == {"fails"}
    note = next(v.note for name, v in found.items() if all(word in name for word in words))
    assert "boundary out of range in 32 above of 48 rows" in note
    assert said(found, "exponent of Gamma* in |S|", "filters' side") == {"holds"}


def test_where_most_rows_have_no_boundary_nothing_is_called_flat() -> None:
    study = synthetic(d=(10**4, 10**9))
    for where in (1.0, -1.0):
        results = results_of(study, outside=lambda w, *_, to=where: to * (w[:7] == "feature"))
        found = outcomes(study, results)
        assert said(found, "exponent of x* in |S|") == {"inconclusive"}
        expected = "fails" if where > 0 else "holds"
        assert said(found, "error at its level by x =") == {expected}
        note = next(v.note for name, v in found.items() if "exponent of x* in |S|" in name)
        assert "of the rows have none in the range" in note


def test_rows_that_were_not_fitted_in_time_do_not_refute_a_theorem() -> None:
    study = synthetic(d=(10**4, 10**9))
    found = outcomes(study, results_of(study, train_loss=0.5))
    for words in ("all of Theorem 4.2", "all of Theorem 4.3", "though fitted"):
        assert said(found, words) == {"inconclusive"}
    for words in ("exponent of x* in |S|", "exponent of Gamma* in |S|"):
        assert said(found, words) == {"premise-not-met"}
    assert any("1 of the rows have a large training loss" in v.note for v in found.values())
    # but those that are, or would be, do
    found = outcomes(study, results_of(study, test_error=0.1))
    assert said(found, "though fitted") == {"fails"}


def test_one_size_leaves_its_exponents_open_and_a_road_not_walked_its_claims() -> None:
    study = synthetic(size=(8,), classes=(2,))
    assert said(outcomes(study, results_of(study)), "in |S|") == {"inconclusive"}
    study = synthetic(question=("feature 0.1",))
    assert {v.claim for v in outcomes(study, results_of(study)).values()} == {"B3", "B5"}
    assert study.picture(results_of(study)) and study.tables(results_of(study))


# --------------------------------------------------------------------------------- fits and tables


def test_an_exponent_is_that_of_least_squares_and_none_where_columns_say_the_same() -> None:
    rng = np.random.default_rng(3)
    study = synthetic(question=("feature 0.1",), size=(2, 4, 16), classes=(2, 8), d=(10**4,))
    values = {(size, classes): rng.normal() for size in study.size for classes in study.classes}
    results = results_of(study, lambda word, size, classes, d: values[size, classes])
    words = "exponent of x* in |S|"

    def slope() -> Verdict:
        return next(v for name, v in outcomes(study, results).items() if words in name)

    design = np.array([[1, *np.log10(both)] for both in values])
    logs = results["boundary"].values[0, :, :, 0].reshape(len(values), -1)
    expected = np.linalg.lstsq(design, logs, rcond=None)[0][1].mean()
    found = slope()
    assert f"{expected:.3g}" in found.measured and found.n == study.seeds
    assert found.interval is not None and found.interval[0] < expected < found.interval[1]
    # boundaries at two points only, where |S| and K grow together
    apart = (results["size"] == 2) & (results["classes"] == 2)
    apart |= (results["size"] == 4) & (results["classes"] == 8)
    results["boundary"] = results["boundary"].where(apart)
    assert slope().outcome == "inconclusive" and slope().interval is None


def test_the_table_says_from_which_d_on() -> None:
    study = synthetic()
    late = moved(lambda w, size, k, d: 0.5 * math.log10(size) * (d < 10**6), "feature")
    tables = {table.name: table for table in study.tables(results_of(study, late))}
    rows = {row[1]: row for row in tables["seen-from"].rows}
    assert rows["exponent of x* in |S|"][-1] == "1e+06"
    assert str(rows["exponent of x* in |S|"][3]).endswith("(no)")
    assert rows["all of Theorem 4.2 at SNR = T n^(-1/4)"][-1] == "all"
    # at the last d it was not, or it was before: the last miss counts
    few = synthetic(question=("feature 0.1",), size=(8, 16))
    for miss, said in ((10**9, "not at the largest"), (10**6, "1e+09")):
        place = moved(lambda w, size, k, d, at=miss: math.log10(size) * (d == at), "feature")
        again = next(t for t in few.tables(results_of(few, place)) if t.name == "seen-from")
        assert {row[1]: row[-1] for row in again.rows}["exponent of x* in |S|"] == said
