"""B1, B2, B10: verdicts on results made up, wrong values, and the study at a small size."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import rarefy
from rarefy.core.contracts import Context, Verdict
from rarefy.core.errors import UsageError
from rarefy.data.noise_ratio import eigenvalues_for
from rarefy.studies.benign._training_cases import CASES, ENDS, STAGE_1, class_sizes
from rarefy.studies.benign._training_verdicts import feature_share
from rarefy.studies.benign.benign_training import BenignTraining
from rarefy.sweep.grid import grid_of

pytestmark = pytest.mark.usefixtures("eager")

STUDY = BenignTraining(gamma=(1.0, 10.0), strength=(0.01, 4.0, 8.0))
SEEDS = 6
AS_CLAIMED: dict[str, Any] = {
    "lr": 1.0,
    "constant": (0.8, 1.0, 1.2),
    "bend": 0.9,
    "left": 1.0,
    "falls": 1.0,
    "gain_least": 1.2,
    "gain_enough": 1.0,
    "first_drop": 1.0,
    "start": 10.0,
    "bound_worst": 0.5,
    "average_slope": -1.0,
    "loss_slope": -1.0,
    "kappa_slope": 0.0,
    "rank_share": 1.0,
    "largest_over_order": 1.0,
    "numbered_over_floor": 5.0,
    "active_least": 0.2,
    "active_enough": 1.0,
    "memory_worst": 10.0,
    "memory_pairs": 1.0,
    "memory_pairs_strong": 1.0,
    "still_active": 1.0,
    "tail_share": 0.3,
    "tail_own": (0.5, 1.0, 2.0),
    "tail_other": 1.0,
    "log_kappa": 0.3,
    "train_loss": 0.01,
}
OTHERWISE: dict[str, Any] = AS_CLAIMED | {
    "constant": (0.1, 1.0, 9.0),
    "bend": 0.1,
    "falls": 0.9,
    "gain_least": -3.0,
    "bound_worst": 1.5,
    "average_slope": -0.5,
    "loss_slope": -0.5,
    "kappa_slope": 0.5,
    "rank_share": 0.5,
    "largest_over_order": 9.0,
    "numbered_over_floor": 0.2,
    "active_enough": 0.7,
    "memory_worst": 0.5,
    "still_active": 0.5,
    "tail_own": (0.01, 1.0, 9.0),
    "tail_other": 9.0,
    "log_kappa": 3.0,
}


def results(values: dict[str, Any], exponents: tuple[float, float, float, float]) -> xr.Dataset:
    """Rates are |u|^a |S|^b m^c eta^d; every value has a little noise over seeds."""
    a, b, c, d = exponents
    noise = np.random.default_rng(0)
    coordinates: dict[str, Any] = {name: list(getattr(STUDY, name)) for name in STUDY.axes}
    coordinates |= {"seed": np.arange(SEEDS), **STUDY.coordinates()}
    shape = (len(STUDY.case), 2, 3, SEEDS)
    data = {}
    for output in STUDY.outputs():
        full = np.full((*shape, *(len(coordinates[dim]) for dim in output.dims)), np.nan)
        if output.name in values:
            full[...] = values[output.name]
            if output.name not in ("falls", "rank_share", "still_active", "active_enough"):
                full *= 1 + 0.001 * noise.normal(size=full.shape)
        data[output.name] = ((*STUDY.axes, "seed", *output.dims), full)
    data["train_loss"][1][STUDY.case.index("printed")] = 1.5  # hardly begun
    rate, lr = data["class_rate"][1], data["lr"][1]
    for i, name in enumerate(STUDY.case):
        case = CASES[name]
        lr[i] = case.rate
        if name in STAGE_1:
            sizes = np.array(class_sizes(case, STUDY.classes, STUDY.size))
            m = STUDY.at_case(case).filters
            u = np.array(STUDY.strength)[None, :, None, None]
            rate[i] = u**a * sizes**b * float(m) ** c * case.rate**d
            rate[i] *= 1 + 0.001 * noise.normal(size=rate[i].shape)
    return xr.Dataset(data, coordinates)


CLAIMED_EXPONENTS, OTHER_EXPONENTS = (2.0, 1.0, -1.0, 1.0), (1.0, 0.0, 0.0, 0.5)


@cache
def verdicts(as_claimed: bool) -> list[Verdict]:
    values = AS_CLAIMED if as_claimed else OTHERWISE
    exponents = CLAIMED_EXPONENTS if as_claimed else OTHER_EXPONENTS
    return STUDY.verdicts(results(values, exponents), "paper")


def trained(found: list[Verdict]) -> list[Verdict]:
    """Without those of the printed training, whose loss is not small."""
    return [verdict for verdict in found if "as printed" not in verdict.setting]


def test_everything_holds_where_it_is_as_claimed() -> None:
    for verdict in verdicts(True):
        wanted = "inconclusive" if "premise not met" in verdict.note else "holds"
        assert verdict.outcome == wanted, verdict


def test_everything_fails_where_it_is_not() -> None:
    for verdict in verdicts(False):
        wanted = "inconclusive" if "premise not met" in verdict.note else "fails"
        assert verdict.outcome == wanted, verdict


def test_a_premise_is_missed_by_the_printed_training_and_by_few_filters_only() -> None:
    missed = [v for v in verdicts(True) if "premise not met" in v.note]
    assert {v.claim for v in missed} == {"B2", "B10"}
    for verdict in missed:
        printed = "as printed" in verdict.setting
        assert printed or (verdict.n == 0 and "singular value min{m,d,rank A}-n" in verdict.setting)
        assert not printed or verdict.outcome == "inconclusive"
    assert not any(v.setting.startswith("K=2") for v in missed)  # there are filters enough


def test_both_trainings_are_judged_and_every_lemma_for_each_end() -> None:
    for claim in ("B1", "B10"):
        settings = [v.setting for v in verdicts(True) if v.claim == claim]
        assert any("as printed" in setting for setting in settings)
    for name in ENDS:
        of_case = [v for v in verdicts(True) if f", {CASES[name].text}: " in v.setting]
        said = " ".join(v.setting for v in of_case if v.claim == "B10")
        assert all(f"Lemma {number}" in said for number in (3, 4, 5, 6, 7)) and "(86)" in said


def test_the_worst_gamma_decides_and_the_note_has_all() -> None:
    data = results(AS_CLAIMED, CLAIMED_EXPONENTS)
    data["log_kappa"].loc[{"gamma": 10.0}] = 2.0
    found = [v for v in STUDY.verdicts(data, "paper") if "Lemma 7: log10" in v.setting]
    assert len(found) == len(ENDS) and all(v.outcome == "fails" for v in trained(found))
    assert all("at Gamma 1, 10: 0.3" in v.note for v in found)


def test_the_worst_strength_decides() -> None:
    data = results(AS_CLAIMED, CLAIMED_EXPONENTS)
    data["active_enough"].loc[{"strength": 0.01}] = 0.5
    found = [v for v in STUDY.verdicts(data, "paper") if "Lemma 4" in v.setting]
    assert found and all(v.outcome == "fails" for v in trained(found))


def test_a_fall_like_1_over_t_is_not_geometric() -> None:
    data = results(AS_CLAIMED, CLAIMED_EXPONENTS)
    data["bend"][...] = 0.5
    (found,) = (v for v in STUDY.verdicts(data, "paper") if "nearer to geometric" in v.setting)
    assert found.outcome == "fails" and "0.5 at 0.01" in found.note


def test_noise_can_lead_where_features_are_small() -> None:
    data = results(AS_CLAIMED, CLAIMED_EXPONENTS)
    data["constant"].loc[{"strength": 0.01}] = 1e4
    found = {
        v.setting: v for v in STUDY.verdicts(data, "paper") if "none falls faster" in v.setting
    }
    assert len(found) == 4
    for setting, verdict in found.items():
        led = "features lead" in setting
        assert verdict.outcome == ("holds" if led else "fails")
        assert ("|u| = 4, 8" if led else "|u| = 0.01") in verdict.note
    share = feature_share(STUDY, np.array([0.01, 4.0, 8.0]), STUDY.size)
    np.testing.assert_allclose(share, [4e-5, 0.8654, 0.9626], rtol=1e-2)


def test_few_seeds_or_a_wide_spread_decide_nothing() -> None:
    data = results(AS_CLAIMED, CLAIMED_EXPONENTS)
    one = STUDY.verdicts(data.isel(seed=[0]), "paper")
    assert all(v.outcome == "inconclusive" for v in one), [v for v in one if v.outcome == "holds"]
    data["bound_worst"][...] = np.random.default_rng(1).uniform(0, 2, data["bound_worst"].shape)
    bound = [v for v in STUDY.verdicts(data, "paper") if "Lemma 2's bound" in v.setting]
    assert [v.outcome for v in bound] != ["holds"]


def test_filters_that_see_nothing_of_their_own_class_fail_lemma_5() -> None:
    data = results(AS_CLAIMED, CLAIMED_EXPONENTS)
    data["memory_worst"][...] = 0.0  # would be infinite the other way round, and so missing
    data["class_rate"][...] = -data["class_rate"]  # losses that rise have no logarithm
    data["bend"][...] = np.nan
    data["start"][...] = np.nan
    found = STUDY.verdicts(data, "paper")
    assert all(v.outcome == "fails" for v in trained(found) if "Lemma 5" in v.setting)
    assert not any(v.outcome == "holds" for v in found if "exponent of the rate" in v.setting)
    assert STUDY.tables(data)


def test_axes_may_be_short_and_cases_few() -> None:
    data = results(AS_CLAIMED, CLAIMED_EXPONENTS)
    for cases in (["slow"], ["long"], ["printed"], ["wide"], ["slow", "slow m/4"]):
        some = data.sel(case=cases)
        found = dataclasses.replace(STUDY, case=tuple(cases)).verdicts(some, "paper")
        assert found and all(v.outcome in ("holds", "inconclusive") for v in found)
    one = data.sel(strength=[8.0], gamma=[1.0])
    slopes = [v for v in STUDY.verdicts(one, "paper") if "rate in |u|" in v.setting]
    assert all(v.outcome == "inconclusive" for v in slopes)


# ------------------------------------------------------------------------------------ wrong values


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"case": ("slow", "fast")}, "case='fast': must be one of slow, slow m/4"),
        ({"strength": (1.0, 0.0)}, "strength=0.0: must be positive and finite"),
        ({"gamma": (0.5,)}, "gamma=0.5: must be finite and at least 1"),
        ({"size": 0}, "size=0: must be at least 1"),
        ({"slow_steps": 0}, "slow_steps=0: must be at least 1"),
        ({"long_steps": -1}, "long_steps=-1: must be at least 1"),
        ({"wide_size": 0}, "wide_size=0: must be at least 1"),
        ({"small_sigma_0": 0.0}, "small_sigma_0=0.0: must be positive"),
        ({"wide_classes": 1}, "wide_classes=1: must be at least 2 and at most wide_d/2=30"),
    ],
)
def test_wrong_values_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        BenignTraining.at("tiny", **wrong)
    assert "\n" not in str(caught.value)


# --------------------------------------------------------------------------------------- small runs


def test_end_measures_are_those_of_matrices_written_out() -> None:
    """One cell again, with A as a matrix, weights by a plain loop and numpy for the rest."""
    study = BenignTraining.at(
        "tiny", case=("small start",), gamma=(10.0,), strength=(1.0,), seeds=1
    )
    assert isinstance(study, BenignTraining)
    context = Context(dtype=torch.float64)
    cells = grid_of(study).cells(np.arange(1))
    found = study.simulate(cells, context)
    there = study.at_case(CASES["small start"])
    table = eigenvalues_for(10.0, there.size, there.d, there.classes, there.base)
    experiment = there.setup(
        cells,
        context,
        eigenvalues=table,
        strength=torch.ones(1, dtype=torch.float64),
        sizes=torch.full((1, there.classes), there.size),
    )
    xi = experiment.samples.noise[0].numpy()
    u = experiment.samples.features[0].numpy()
    label = experiment.samples.labels[0].numpy()
    w, m, n = experiment.initial[0].numpy().copy(), there.filters, len(label)
    total = np.zeros(n)
    for step in range(there.trained_steps + 1):
        noise, feature = w @ xi.T, w @ u.T  # (class, m, n), (class, m, class)
        score = (np.maximum(noise, 0).sum(1) + np.maximum(feature, 0).sum(1)[:, label]) / m
        p = np.exp(score - score.max(0))
        p /= p.sum(0)
        loss = -np.log(p[label, np.arange(n)]).mean()
        if step == there.trained_steps:
            break
        error = p.copy()
        error[label, np.arange(n)] -= 1
        gradient = np.einsum("kn,kmn,nd->kmd", error, noise >= 0, xi)
        gradient += np.einsum("kn,kmn,nd->kmd", error, (feature >= 0)[:, :, label], u[label])
        w -= there.trained_lr / (m * n) * gradient
        total += there.trained_lr * (1 - p[label, np.arange(n)])
        assert loss > there.stop_loss  # it does not stop before the end
    assert found["train_loss"][0] == pytest.approx(loss, rel=1e-8)
    values = [np.linalg.svd(w[k] @ np.diag(table[0, k]), compute_uv=False) for k in range(3)]
    floor = 0.1 * np.sqrt(m) * study.small_sigma_0
    assert found["smallest_over_floor"][0] == pytest.approx(
        min(v[-1] for v in values) / floor, rel=1e-5
    )
    order = np.sqrt(m) * np.log(there.trained_steps)
    assert found["largest_over_order"][0] == pytest.approx(max(v[0] for v in values) / order)
    response = np.maximum(w @ xi.T, 0).sum(1)  # (class, n)
    own = [response[k, label == k] for k in range(3)]
    other = [response[k, label != k] for k in range(3)]
    assert found["memory_worst"][0] == pytest.approx(
        min(a.min() / b.max() if b.max() > 0 else np.inf for a, b in zip(own, other, strict=True))
    )
    assert found["memory_own"][0] == pytest.approx(np.mean([a.mean() for a in own]))
    fresh = experiment.fresh(there.test_samples, 0)
    new, kind = fresh.noise[0].numpy(), fresh.labels[0].numpy()
    active = np.array([(w[k] @ x > 0).mean() for x, k in zip(new, kind, strict=True)])
    assert found["active_least"][0] == pytest.approx(active.min())
    assert found["active_enough"][0] == pytest.approx((active >= 0.1).mean())
    stored = [np.sqrt((total[label == k] ** 2).sum()) for k in range(3)]
    gram = (table[0].square() @ table[0].square().T).sqrt().numpy()
    level, others = [], []
    for x, k in zip(new, kind, strict=True):
        alive = w[k] @ x > 0
        together = w[k][alive].sum(0)
        length = np.linalg.norm(np.diag(table[0, k]) @ together)
        if alive.any() and together @ x >= length:
            level.append(length / (gram[k, k] * stored[k] / n))
        others += [
            np.maximum(w[j] @ x, 0).sum() / (gram[k, j] * stored[j] / n) for j in range(3) if j != k
        ]
    np.testing.assert_allclose(
        found["tail_own"][0], np.quantile(level, [0.05, 0.5, 0.95]), rtol=1e-6
    )
    assert found["tail_other"][0] == pytest.approx(np.mean(others) / np.sqrt(2 / np.pi), rel=1e-6)


@cache
def tiny() -> tuple[BenignTraining, xr.Dataset]:
    study = BenignTraining.at("tiny")
    assert isinstance(study, BenignTraining)
    return study, rarefy.run(BenignTraining, scale="tiny", device="cpu")


def test_each_case_measures_its_part_and_no_more() -> None:
    _, data = tiny()
    for case in STAGE_1:
        assert data["constant"].sel(case=case).notnull().all()
        assert data["rank_share"].sel(case=case).isnull().all()
    for case in ENDS:
        assert data["rank_share"].sel(case=case).notnull().all()
        assert data["decision"].sel(case=case).notnull().all()
    assert data["numbered_over_floor"].sel(case="wide").notnull().all()
    assert data["numbered_over_floor"].sel(case="trained").isnull().all()
    assert data["bound_worst"].sel(case="long").notnull().all()
    np.testing.assert_allclose(data["active"].sel(case="trained").sum("bin"), 1, rtol=1e-5)


def test_margins_in_parts_agree_with_who_is_right() -> None:
    """Kinds whose mean margin is clearly positive are mostly classified right."""
    _, data = tiny()
    margin = data["decision"].sel(case="trained").sum("part")
    right = data["decision_right"].sel(case="trained")
    assert float(right.where(margin > 2).min()) > 0.6
    assert float(np.abs(data["decision"].sel(case="printed", part="own")).max()) < 1


def test_pictures_can_be_made_of_any_part() -> None:
    study, data = tiny()
    assert {p.name for p in study.picture(data)} == {
        "stage-1",
        "stage-2",
        "filters",
        "memory",
        "decisions",
    }
    assert [p.name for p in study.picture(data.sel(case=["long"]))] == ["stage-2"]
    tables = {t.name for t in study.tables(data)}
    assert {"rates", "ends", "conditions-trained", "conditions-wide"} <= tables
