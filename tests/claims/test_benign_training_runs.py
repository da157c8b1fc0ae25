"""B1, B2, B10: small runs of ``benign-training`` against matrices written out."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import rarefy
from rarefy.core.contracts import Context
from rarefy.data.noise_spectrum import spectrum_for
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of
from rarefy.theory.benign_conditions import NoiseGeometry, condition_1
from rarefy.theory.conditions import table_rows

BenignTraining: Any = get_study("benign-training")

pytestmark = pytest.mark.usefixtures("eager")


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
