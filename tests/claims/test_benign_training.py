"""B1, B2, B10: verdicts on results made up, and the study at a small size."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import coordinates_of

import rarefy
from rarefy.core.contracts import Context, Verdict
from rarefy.data.noise_spectrum import spectrum_for
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of
from rarefy.theory.benign_conditions import NoiseGeometry, condition_1
from rarefy.theory.conditions import table_rows

BenignTraining: Any = get_study("benign-training")

pytestmark = pytest.mark.usefixtures("eager")

STUDY = BenignTraining(gamma=(1.0, 10.0), strength=(0.01, 4.0, 8.0))
SEEDS = 6
AS_CLAIMED: dict[str, Any] = {
    "lr": 1.0,
    "constant": (0.8, 1.0, 1.2),
    "bend": 0.9,
    "start": 10.0,
    "bound_worst": 0.5,
    "average_slope": -1.0,
    "loss_slope": -1.0,
    "rank_share": 1.0,
    "active_least": 0.2,
    "active_enough": 1.0,
    "memory_worst": 10.0,
    "memory_pairs": 1.0,
    "tail_own": (0.5, 1.0, 2.0),
    "tail_other": 1.0,
    "log_kappa": 0.3,
    "train_loss": 0.01,
}
OTHERWISE: dict[str, Any] = AS_CLAIMED | {
    "constant": (0.1, 1.0, 9.0),
    "bend": 0.5,
    "bound_worst": 1.5,
    "average_slope": -0.5,
    "loss_slope": -0.5,
    "rank_share": 0.5,
    "active_enough": 0.7,
    "memory_worst": 0.5,
    "log_kappa": 3.0,
}
PRIMARIES = ["B1.1", "B1.2", "B1.3", "B10.1", "B10.2", "B10.3", "B2.1", "B2.2"]


def results(values: dict[str, Any], exponents: tuple[float, float] = (2.0, 1.0)) -> xr.Dataset:
    """Rates are |u|^a |S|^b; every value has a little noise over seeds."""
    a, b = exponents
    noise = np.random.default_rng(0)
    coordinates = coordinates_of(STUDY, SEEDS)
    shape = (len(STUDY.case), 2, 3, SEEDS)
    data = {}
    for output in STUDY.outputs():
        full = np.full((*shape, *(len(coordinates[dim]) for dim in output.dims)), np.nan)
        if output.name in values:
            full[...] = values[output.name]
            if output.name not in ("rank_share", "active_enough"):
                full *= 1 + 0.001 * noise.normal(size=full.shape)
        data[output.name] = ((*STUDY.axes, "seed", *output.dims), full)
    rate = data["class_rate"][1]
    for i, name in enumerate(STUDY.case):
        if name.startswith("slow"):
            u = np.array(STUDY.strength)[None, :, None, None]
            rate[i] = u**a * np.array(STUDY.sizes_of(name)) ** b
            rate[i] *= 1 + 0.001 * noise.normal(size=rate[i].shape)
    return xr.Dataset(data, coordinates)


@cache
def verdicts(as_claimed: bool) -> list[Verdict]:
    data = results(AS_CLAIMED) if as_claimed else results(OTHERWISE, (1.0, 0.0))
    return STUDY.verdicts(data, "paper")


def primaries(found: list[Verdict]) -> dict[str, Verdict]:
    return {v.claim: v for v in found if v.role == "primary"}


@pytest.mark.parametrize(("as_claimed", "wanted"), [(True, "holds"), (False, "fails")])
def test_everything_is_judged_as_it_is(as_claimed: bool, wanted: str) -> None:
    found = verdicts(as_claimed)
    assert sorted(primaries(found)) == PRIMARIES
    for verdict in found:
        if verdict.outcome != "premise-not-met":
            assert verdict.outcome == wanted, verdict
    assert all(v.outcome == wanted for v in primaries(found).values())


def test_lemmas_outside_their_conditions_decide_nothing() -> None:
    """More samples than filters, or initial weights that no size allows."""
    missed = [v for v in verdicts(True) if v.outcome == "premise-not-met"]
    assert {v.claim for v in missed} == {"B10"}
    for verdict in missed:
        few = verdict.setting.startswith(("trained", "carried on"))
        assert few or "Lemma 6" in verdict.setting
        assert ("Condition 1 (b) asks for at most 0.1 m = 10" in verdict.note) == few
    assert len(missed) == 10


def test_lemmas_need_a_small_training_loss() -> None:
    data = results(AS_CLAIMED)
    data["train_loss"][...] = 0.5
    found = primaries(STUDY.verdicts(data, "paper"))
    assert {found[f"B10.{i}"].outcome for i in (1, 2, 3)} == {"premise-not-met"}


def test_the_worst_strength_at_the_smallest_gamma_decides() -> None:
    data = results(AS_CLAIMED)
    data["log_kappa"].loc[{"gamma": 10.0}] = 2.0
    assert primaries(STUDY.verdicts(data, "paper"))["B10.3"].outcome == "holds"
    data["log_kappa"].loc[{"gamma": 1.0, "strength": 0.01}] = 2.0
    assert primaries(STUDY.verdicts(data, "paper"))["B10.3"].outcome == "fails"


def test_the_worst_cell_decides_about_stage_1() -> None:
    data = results(AS_CLAIMED)
    data["constant"].loc[{"gamma": 10.0, "strength": 4.0}] = 0.1
    data["bend"].loc[{"gamma": 10.0, "strength": 8.0}] = 0.5
    found = primaries(STUDY.verdicts(data, "paper"))
    assert found["B1.1"].outcome == found["B1.2"].outcome == "fails"
    assert "0.1 at 4" in found["B1.1"].note and found["B1.3"].note.endswith("|u| = 4, 8")


def test_noise_that_leads_does_not_count_against_features() -> None:
    """Lemma 1 bounds the loss from above: a faster fall is no breach."""
    data = results(AS_CLAIMED)
    data["constant"].loc[{"strength": 0.01}] = 1e4
    assert primaries(STUDY.verdicts(data, "paper"))["B1.1"].outcome == "holds"


def test_one_seed_decides_nothing() -> None:
    one = STUDY.verdicts(results(AS_CLAIMED).isel(seed=[0]), "paper")
    assert {v.outcome for v in one} == {"inconclusive", "premise-not-met"}


def test_filters_that_see_nothing_of_their_own_class_fail_lemma_5() -> None:
    data = results(AS_CLAIMED)
    data["memory_worst"][...] = 0.0  # would be infinite the other way round, and so missing
    data["start"][...] = np.nan
    found = STUDY.verdicts(data, "paper")
    assert primaries(found)["B10.2"].outcome == "fails"
    assert "T_0 never came" in primaries(found)["B2.1"].note
    assert STUDY.tables(data)


def test_axes_may_be_short_and_cases_few() -> None:
    data = results(AS_CLAIMED)
    for cases in (["slow"], ["long"], ["wide"], ["slow", "slow uneven"]):
        some = data.sel(case=cases)
        found = dataclasses.replace(STUDY, case=tuple(cases)).verdicts(some, "paper")
        assert found and all(v.outcome in ("holds", "premise-not-met") for v in found)
    one = data.sel(strength=[8.0], gamma=[1.0])
    assert primaries(STUDY.verdicts(one, "paper"))["B1.3"].outcome == "premise-not-met"


# ------------------------------------------------------------------------ the study at a small size


def test_end_measures_are_those_of_matrices_written_out() -> None:
    """One cell again, with A as a matrix, weights by a plain loop and numpy for the rest."""
    study = BenignTraining.at("tiny", case=("trained",), gamma=(10.0,), strength=(1.0,), seeds=1)
    context = Context(dtype=torch.float64)
    cells = grid_of(study).cells(np.arange(1))
    found = study.simulate(cells, context)
    there = study.at_case("trained")
    spectrum = spectrum_for(10.0, there.d, there.classes, there.base)
    table = spectrum.table()
    experiment = there.setup(
        cells,
        context,
        spectrum=spectrum,
        strength=torch.ones(1, dtype=torch.float64),
        sizes=torch.full((1, there.classes), there.size),
    )
    xi = experiment.samples.noise[0].numpy()
    u = experiment.samples.features[0].numpy()
    label = experiment.samples.labels[0].numpy()
    w, m, n = experiment.initial[0].numpy().copy(), there.filters, len(label)
    total, rate = np.zeros(n), float(found["lr"][0])
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
        w -= rate / (m * n) * gradient
        total += rate * (1 - p[label, np.arange(n)])
        assert loss > there.stop_loss  # it does not stop before the end
    assert found["train_loss"][0] == pytest.approx(loss, rel=1e-8)
    ranks = [np.linalg.matrix_rank(w[k] @ np.diag(table[0, k])) for k in range(3)]
    assert found["rank_share"][0] == pytest.approx(min(ranks) / m)
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
def tiny() -> tuple[Any, xr.Dataset]:
    study = BenignTraining.at("tiny")
    return study, rarefy.run(BenignTraining, scale="tiny", device="cpu")


def test_each_case_measures_its_part_and_no_more() -> None:
    _, data = tiny()
    for case in ("slow", "slow uneven"):
        assert data["constant"].sel(case=case).notnull().all()
        assert data["rank_share"].sel(case=case).isnull().all()
    for case in ("trained", "carried on", "wide", "wide large start"):
        assert data["rank_share"].sel(case=case).notnull().all()
        assert data["constant"].sel(case=case).isnull().all()
    assert data["bound_worst"].sel(case="long").notnull().all()


def test_pictures_can_be_made_of_any_part() -> None:
    study, data = tiny()
    assert [p.name for p in study.picture(data)] == ["stage-1", "stage-2", "memory"]
    assert [p.name for p in study.picture(data.sel(case=["long"]))] == ["stage-2"]
    tables = {t.name for t in study.tables(data)}
    assert tables == {"ends", *(f"conditions-{w}" for w in ("trained", "wide", "wide-large-start"))}


def test_the_table_has_condition_1_of_the_matrices() -> None:
    study, data = tiny()
    there, cell = study.at_case("wide"), data.sel(case="wide", gamma=1.0, strength=1.0)
    noise = there.spectrum(1.0).table()[0].numpy()
    expected = condition_1(
        geometry=NoiseGeometry.of(np.stack([np.diag(row) for row in noise])),
        norms=np.ones(there.classes),
        samples=there.classes * there.size,
        filters=there.filters,
        d=there.d,
        sigma_0=study.small_sigma_0,
        lr=float(cell["lr"].mean()),
        output_scale=1 / there.filters,
        horizon=round(float(cell["updates"].mean())),
    )
    found = next(table for table in study.tables(data) if table.name == "conditions-wide")
    assert [tuple(row) for row in found.rows] == table_rows(expected)
