"""Verdicts of ``benign-correlation`` on made-up results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import xarray as xr
from scipy import stats

from rarefy.core.contracts import Verdict
from rarefy.core.picture import Lines
from rarefy.studies import get_study
from rarefy.theory import benign
from rarefy.theory.class_noise_bayes import least_noise_error, special_ratio

BenignCorrelation: Any = get_study("benign-correlation")

GAMMA, STRENGTH = (1.0, 4.0, 20.0, 200.0, 1400.0), (0.001, 1.0, 2.0, 3.8)


def made(
    accuracy: Callable[[str, np.ndarray, np.ndarray], np.ndarray],
    tail: Callable[[np.ndarray, np.ndarray], np.ndarray],
    train_loss: float = 0.009,
    seeds: int = 6,
    spread: float = 0.002,
) -> tuple[Any, xr.Dataset]:
    """Results as if measured: accuracy(law, |u|, Gamma), error of the stratum from an edge on."""
    whole = BenignCorrelation.at(
        "paper", gamma=GAMMA, strength=STRENGTH, seeds=seeds, schedule=("trained",)
    )
    generator = np.random.default_rng(1)
    u, g = np.array(STRENGTH)[:, None], np.array(GAMMA)[None, :]
    edges = np.array([0.0, *whole.edges])
    shape = (seeds, len(STRENGTH), len(GAMMA))
    errors, strata = [], []
    for law in whole.law:
        error = 1 - np.broadcast_to(accuracy(law, u, g), shape[1:])
        noise = spread * generator.standard_normal(shape) * (error > 0)
        errors.append(np.clip(error + noise, 0, 1))
        there = tail(g[..., None], edges) * np.ones((*shape, 1))
        strata.append(there if law == "gaussian" else np.full((*shape, len(edges)), np.nan))
    dims = ("law", "seed", "strength", "gamma")
    results = xr.Dataset(
        {
            "test_error": (dims, np.stack(errors)),
            "train_loss": (dims, np.full((len(whole.law), *shape), train_loss)),
            "stratum_error": ((*dims, "edge"), np.stack(strata)),
        },
        {
            "law": list(whole.law),
            "seed": np.arange(seeds),
            "strength": list(STRENGTH),
            "gamma": list(GAMMA),
            "edge": edges,
        },
    ).expand_dims(schedule=["trained"])
    return whole, results


def good(law: str, u: np.ndarray, g: np.ndarray) -> np.ndarray:
    """A network at the best by noise, and right with a strong feature."""
    best = 1 - least_noise_error(special_ratio(g, 995), 5)
    return np.where(u >= 1.5, 1.0, best)


def falling(g: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Exactly the form of 2(b), with c_2 = 0.6."""
    return np.where(g > 1, np.minimum(0.8, 4 * np.exp(-0.6 * g * edges**2)), 0.8)


def outcomes(verdicts: list[Verdict], claim: str, part: str) -> set[str]:
    found = {v.outcome for v in verdicts if v.claim == claim and part in v.setting}
    assert found, part
    return found


def test_a_map_as_the_paper_says_holds() -> None:
    whole, results = made(good, falling)
    verdicts = whole.verdicts(results, "paper")
    for part in ("short of the best", "rises with Gamma", "rises with |u|", "least gain", "minus"):
        assert outcomes(verdicts, "B6", part) == {"holds"}, part
    for part in ("largest c_2", "falls with L", "falls with Gamma", "2(b)"):
        assert outcomes(verdicts, "B4", part) == {"holds"}, part
    assert outcomes(verdicts, "B3", "2(a)") == outcomes(verdicts, "B5", "1, 3, error") == {"holds"}
    (constant,) = (v for v in verdicts if "largest c_2" in v.setting)
    assert constant.interval is not None and 0.5 < constant.interval[0] <= 0.7


def test_a_network_far_from_the_best_fails() -> None:
    whole, results = made(lambda law, u, g: 0.85 * good(law, u, g), falling)
    verdicts = whole.verdicts(results, "paper")
    assert outcomes(verdicts, "B6", "short of the best") == {"fails"}
    assert outcomes(verdicts, "B6", "rises with Gamma") == {"holds"}
    assert outcomes(verdicts, "B3", "2(a)") == {"fails"}


def test_a_map_the_other_way_round_fails() -> None:
    whole, results = made(lambda law, u, g: 1.1 - 0.1 * np.log(g * (1 + u)), falling)
    verdicts = whole.verdicts(results, "paper")
    for part in ("short of the best", "rises with Gamma", "rises with |u|", "least gain"):
        assert outcomes(verdicts, "B6", part) == {"fails"}, part


def test_gamma_that_hurts_at_one_strength_only_is_seen() -> None:
    def accuracy(law: str, u: np.ndarray, g: np.ndarray) -> np.ndarray:
        return np.where(u == 2.0, 1.0 - 0.05 * (g > 100), good(law, u, g))

    whole, results = made(accuracy, falling)
    found = [v for v in whole.verdicts(results, "paper") if "least gain" in v.setting]
    assert {v.outcome for v in found} == {"fails"}
    assert all("at |u|=2:" in v.note for v in found)


def test_a_fall_within_the_tolerance_is_told_where_it_is_certain() -> None:
    def accuracy(law: str, u: np.ndarray, g: np.ndarray) -> np.ndarray:
        return np.where(u == 2.0, 1.0 - 0.005 * (g > 100), good(law, u, g))

    whole, results = made(accuracy, falling, spread=1e-4)
    found = [v for v in whole.verdicts(results, "paper") if "least gain" in v.setting]
    assert {v.outcome for v in found} == {"holds"}
    assert all("a certain fall, but 0.01 less counts as none" in v.note for v in found)


def test_laws_that_differ_are_told() -> None:
    shift = {"gaussian": 0.0, "uniform": 0.0, "uniform-own": 0.05}
    whole, results = made(lambda law, u, g: 0.9 * good(law, u, g) + shift[law], falling)
    verdicts = whole.verdicts(results, "paper")
    assert outcomes(verdicts, "B6", "uniform minus") == {"holds"}
    assert outcomes(verdicts, "B6", "uniform-own minus gaussian, mean") == {"fails"}


def test_laws_that_differ_in_one_cell_are_told_though_their_means_agree() -> None:
    def accuracy(law: str, u: np.ndarray, g: np.ndarray) -> np.ndarray:
        there = (u == 1.0) & (g == 20.0) & (law == "uniform-own")
        return 0.8 * good(law, u, g) + 0.1 * there

    whole, results = made(accuracy, falling)
    verdicts = whole.verdicts(results, "paper")
    assert outcomes(verdicts, "B6", "uniform-own minus gaussian, mean") == {"holds"}
    assert outcomes(verdicts, "B6", "uniform-own minus gaussian, largest") == {"fails"}
    assert outcomes(verdicts, "B6", "uniform minus gaussian, largest") == {"holds"}
    (found,) = (v for v in verdicts if "uniform-own minus gaussian, largest" in v.setting)
    assert "at |u|=1 Gamma=20" in found.note


def test_long_tailed_data_no_better_than_others_fail() -> None:
    whole, results = made(good, lambda g, edges: 0.3 + 0 * g * edges)
    verdicts = whole.verdicts(results, "paper")
    assert outcomes(verdicts, "B4", "largest c_2") == {"fails"}
    assert outcomes(verdicts, "B4", "2(b)") == {"fails"}
    assert outcomes(verdicts, "B4", "falls with L") == {"inconclusive"}
    whole, results = made(good, lambda g, edges: 0.3 + 0.1 * edges + 0.1 * (g > 10))
    verdicts = whole.verdicts(results, "paper")
    assert outcomes(verdicts, "B4", "falls with L") == {"fails"}
    assert outcomes(verdicts, "B4", "falls with Gamma") == {"fails"}


def test_overfitting_that_does_no_harm_speaks_against_statement_3() -> None:
    whole, results = made(lambda law, u, g: 0.9 + 0 * u * g, falling)
    assert outcomes(whole.verdicts(results, "paper"), "B5", "1, 3, error") == {"fails"}


def test_without_a_small_training_loss_theorem_1_says_nothing() -> None:
    whole, results = made(good, falling, train_loss=1.5)
    verdicts = [v for v in whole.verdicts(results, "paper") if v.claim != "B6"]
    assert {v.outcome for v in verdicts} == {"inconclusive"}
    assert all("premise not met: training loss 1.5 or more" in v.note for v in verdicts)
    assert all(v.n == 0 for v in verdicts)


def test_no_error_at_all_decides_nothing_about_the_constant() -> None:
    whole, results = made(good, lambda g, edges: 0 * g * edges)
    (verdict,) = (v for v in whole.verdicts(results, "paper") if "largest c_2" in v.setting)
    assert (
        verdict.outcome == "inconclusive"
        and "errors enough to tell from none in 0 cells" in verdict.note
    )


def test_two_seeds_that_disagree_decide_nothing() -> None:
    whole, results = made(good, falling, seeds=2, spread=0.1)
    assert outcomes(whole.verdicts(results, "paper"), "B6", "short of the best") == {"inconclusive"}


def test_a_grid_without_gaussian_noise_leaves_theorem_1_open() -> None:
    whole, results = made(good, falling)
    part = results.sel(law=["uniform"])
    verdicts = whole.verdicts(part, "paper")
    theorem = [v for v in verdicts if v.claim != "B6"]
    assert [v.claim for v in theorem] == ["B3", "B4", "B5"]
    assert all(v.outcome == "inconclusive" and "needs gaussian" in v.note for v in theorem)
    assert len(whole.picture(part)) == 2 and len(whole.tables(part)) == 1


# -------------------------------------------------------------------- what Theorem 1 says of a cell


def gram_of(whole: Any) -> np.ndarray:
    """|A_k^T A_j|_F^2 for j != k, (gamma,)."""
    table = whole.spectrum(torch.tensor(GAMMA)).table().square().numpy()
    return np.einsum("gd,gd->g", table[:, 0], table[:, 1])


def test_the_bound_is_that_of_theorem_1_with_a_quarter_for_c_1() -> None:
    """Errors a little below and above (K-1) exp(-x/4), and tests that see the smallest."""
    whole = BenignCorrelation.at("paper", gamma=GAMMA, test_samples=10**9)
    x = whole.size * np.array(STRENGTH)[:, None] ** 4 / gram_of(whole)
    for factor, outcome in ((0.99, "holds"), (1.01, "fails")):
        error = np.minimum(0.5, factor * 4 * np.exp(-x / 4))
        _, results = made(lambda law, u, g, error=error: 1 - error, falling, spread=0.0)
        verdicts = whole.verdicts(results, "paper")
        assert outcomes(verdicts, "B3", "2(a)") == {outcome}
    said = " ".join(v.setting for v in verdicts)
    assert "where |S||u|^4/|A_k^T A_j|_F^2 >= 4" in said and "where only Gamma >= 4" in said
    assert "3, error at least 0.2, where both ratios are at most 1" in said


def test_the_table_counts_the_cells_of_each_regime() -> None:
    whole, results = made(good, falling)
    rows = whole.tables(results)[0].rows
    sizes, norms = np.full(5, whole.size), np.array(STRENGTH)
    table = whole.spectrum(torch.tensor(GAMMA)).gram().numpy()
    for words, limits in (
        ("C_1=C_2=4, C_3=1, c=1/4", (4.0, 4.0, 1.0)),
        ("all 1, c_3=1/4", (1, 1, 1)),
    ):
        said = [
            benign.regime(table[g], sizes, np.full(5, u), *limits)[0]
            for u in norms
            for g in range(len(GAMMA))
        ]
        counted = {row[2]: row[3] for row in rows if row[0] == words}
        assert counted == {name: said.count(name) for name in counted}
        assert sum(counted.values()) == len(GAMMA) * len(STRENGTH)


def test_an_error_that_so_few_samples_cannot_tell_from_0_is_below_any_bound() -> None:
    """3 of the test samples; twice as many are seen."""
    for errors, outcome in ((3, "holds"), (6, "fails")):
        whole, results = made(
            lambda law, u, g, few=errors: 1 - np.full_like(u * g, few / 10_000),
            lambda g, edges, few=errors: np.full_like(g * edges, few * 7 / 10_000),
            spread=0.0,
        )
        assert (whole.test_samples, whole.tail_samples) == (10_000, 10_000)
        verdicts = whole.verdicts(results, "paper")
        assert outcomes(verdicts, "B3", "2(a)") == {outcome}
        assert outcomes(verdicts, "B4", "2(b)") == {outcome}


def test_strata_are_weighed_by_the_normal_law() -> None:
    strata = np.array([0.5, 0.4, 0.3, 0.2, 0.1, 0.06, 0.02])
    whole, results = made(good, lambda g, edges: strata + 0 * g)
    tail = next(picture for picture in whole.picture(results) if picture.name == "tail")
    assert isinstance(tail.panels[0], Lines)
    beyond = 2 * stats.norm.sf([0.0, *whole.edges])
    chance = beyond - np.append(beyond[1:], 0)
    expected = [(strata * chance)[k:].sum() / beyond[k] for k in range(7)]
    np.testing.assert_allclose(tail.panels[0].curves[0].y, expected, rtol=1e-9)


def test_the_best_by_noise_alone_is_drawn_for_each_law() -> None:
    whole, results = made(good, falling)
    best = next(picture for picture in whole.picture(results) if picture.name == "best")
    for panel, law in zip(best.panels, ("gaussian", "gaussian", "uniform"), strict=True):
        assert isinstance(panel, Lines)
        line = panel.curves[-1]
        error = least_noise_error(special_ratio(line.x, 995), 5, law)
        np.testing.assert_allclose(line.y, 1 - error, rtol=1e-12)
