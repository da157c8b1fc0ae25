"""``benign-correlation``: blocks of training, strata against formulas, wrong use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from small_noise import eigenvalues_for

from rarefy.core.contracts import Cells, Context
from rarefy.core.errors import UsageError
from rarefy.data.noise_spectrum import spectrum_for
from rarefy.data.noise_structure import gram
from rarefy.measure.statistics import BIG_O, OMEGA
from rarefy.studies.benign._benign import equal_spectrum
from rarefy.studies.benign._constants import ONES
from rarefy.studies.benign._correlation_strata import stratum_errors
from rarefy.studies.benign._correlation_theory import (
    Prediction,
    conditions_at,
    feature_boundary,
    least_error,
    tail_errors,
)
from rarefy.studies.benign._experiment import Experiment, Training
from rarefy.studies.benign.benign_correlation import BenignCorrelation
from rarefy.sweep.grid import grid_of
from rarefy.theory import benign
from rarefy.theory.benign_conditions import NoiseGeometry
from rarefy.theory.class_noise_bayes import least_noise_error, special_ratio

FLOAT64 = Context(dtype=torch.float64)


def study(scale: str = "tiny", **parameters: Any) -> BenignCorrelation:
    found = BenignCorrelation.at(scale, **parameters)
    assert isinstance(found, BenignCorrelation)
    return found


def experiment(gamma: list[float], strength: list[float], **more: Any) -> Experiment:
    small = study(**more)
    at = torch.tensor(gamma, dtype=torch.float64)
    return small.setup(
        Cells({"seed": np.zeros(len(gamma))}, np.full(len(gamma), 3, dtype=np.int64)),
        FLOAT64,
        spectrum=small.spectrum(at),
        strength=torch.tensor(strength, dtype=torch.float64),
        sizes=torch.full((1, small.classes), small.size),
        zeta_axes="rotated",
    )


# ----------------------------------------------------------------------------------------- training


def test_training_in_blocks_is_training_at_once() -> None:
    whole = experiment([1.0, 10.0, 1400.0, 1.0], [0.1, 1.0, 2.0, 3.8])
    for training in (Training(20.0, 130, 0.05), Training(20.0, 130, 0.0), Training(20.0, 7, 0.05)):
        done: list[float] = []
        found = whole.fit(Context(dtype=torch.float64, advance=done.append), training)
        expected, stopped = whole.train(FLOAT64, training, {})
        torch.testing.assert_close(
            found.filters, expected.parameters["filters"], rtol=1e-9, atol=1e-11
        )
        assert found.stopped_at.tolist() == stopped.tolist()
        assert found.nonfinite_step.tolist() == [-1] * 4
        assert sum(done) == 4 * training.steps
    assert (found.stopped_at < 0).any() and (found.stopped_at > 0).any()


def test_a_run_that_stops_being_finite_is_left_out_and_has_no_error() -> None:
    whole = experiment([10.0, 10.0], [1.0, 1e200])
    done: list[float] = []
    found = whole.fit(Context(dtype=torch.float64, advance=done.append), Training(20.0, 120, 0.01))
    assert found.nonfinite_step[0] == -1 and found.nonfinite_step[1] >= 0
    known = found.known(whole.test(found.filters, FLOAT64, 60).error)
    assert torch.isnan(known).tolist() == [False, True]
    assert sum(done) == 240


def test_losses_on_training_samples_are_those_of_the_problem() -> None:
    whole = experiment([1.0, 1400.0], [0.1, 3.8])
    trajectory, _ = whole.train(FLOAT64, Training(5.0, 30), {})
    loss, error = whole.on_training_samples(trajectory.parameters["filters"])
    once_more, _ = whole.train(FLOAT64, Training(5.0, 31), {"loss": lambda s: s.loss})
    torch.testing.assert_close(loss, once_more.records["loss"][:, 0])
    assert error.tolist()[1] == 0


def test_equal_classes_have_the_eigenvalues_that_the_search_finds() -> None:
    gamma = torch.tensor([1.0, 1.2, 10.0, 1400.0], dtype=torch.float64)
    found = equal_spectrum(gamma, 40, 3, 0.5).table()
    torch.testing.assert_close(found, eigenvalues_for(gamma, 40, 3, 0.5))
    found = equal_spectrum(gamma, 40, 3, 0.5, rank=20).table()
    torch.testing.assert_close(found, eigenvalues_for(gamma, 40, 3, 0.5, 20))
    assert torch.equal(equal_spectrum(10.0, 40, 3, 0.5, 20).table()[0], found[2])
    with pytest.raises(UsageError, match="rank=2: must be at least classes=3"):
        equal_spectrum(10.0, 40, 3, 0.5, rank=2)
    # in float32 the cell's ratio is that of the rounded value, not of float32 arithmetic
    assert equal_spectrum(gamma.float(), 40, 3, 0.5).eigenvalues.dtype == torch.float64


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
        zeta_axes="rotated",
    )
    trajectory, stopped = whole.train(FLOAT64, small.training("trained"), {})
    filters = trajectory.parameters["filters"][0]
    wrong = []
    for start in (0, 250):
        fresh = whole.fresh(min(250, small.test_samples - start), start // 250)
        scores = torch.relu(fresh.noise[0] @ filters.transpose(1, 2)).sum(dim=2)  # (class, n)
        own = torch.relu(filters @ fresh.features[0].T).sum(dim=1)  # (class, feature)
        scores = scores + own[:, fresh.labels[0]]
        wrong.append(scores.argmax(dim=0) != fresh.labels[0])
    assert found["test_error"][0] == pytest.approx(torch.cat(wrong).double().mean().item())
    assert found["stopped_at"][0] == stopped[0] > 0


# ------------------------------------------------------------------------------------------- strata


def best_filters(small: BenignCorrelation, runs: int) -> torch.Tensor:
    """Two filters a class, along its special direction and against: F_k is |x_k|."""
    filters = torch.zeros(runs, small.classes, 2, small.d, dtype=torch.float64)
    for k in range(small.classes):
        filters[:, k, 0, small.classes + k] = 1
        filters[:, k, 1, small.classes + k] = -1
    return filters


def test_the_best_classifier_errs_as_the_formula_says() -> None:
    gamma = [1.2, 4.0, 30.0]
    small, whole = study(), experiment(gamma, [0.0] * 3)
    filters, samples = best_filters(small, 3), 20_000
    seen = whole.test(filters, FLOAT64, samples).error.numpy()
    expected = least_error(small, np.array(gamma))
    np.testing.assert_allclose(seen, expected, atol=4 * 0.5 / np.sqrt(samples))
    strata = stratum_errors(whole, filters, FLOAT64, small.edges, samples)
    edges = np.array([0.0, *small.edges])
    there = xr.DataArray(strata.numpy(), {"edge": edges}, ("gamma", "edge"))
    found = tail_errors(there).transpose("gamma", "edge").values
    wanted = least_error(small, np.array(gamma)[:, None], "gaussian", edges)
    np.testing.assert_allclose(found, wanted, atol=5 * 0.5 / np.sqrt(samples / 7))
    np.testing.assert_allclose(found[:, 0], seen, atol=0.02)


def test_tail_errors_weigh_strata_by_the_normal_law() -> None:
    strata = xr.DataArray(
        [[0.5, 0.2, 0.1], [0.5, np.nan, 0.1]], {"edge": [0.0, 1.0, 2.0]}, ("x", "edge")
    )
    found = tail_errors(strata)
    inner, outer = 0.317310508, 0.045500264
    expected = [
        0.5 * (1 - inner) + 0.2 * (inner - outer) + 0.1 * outer,
        (0.2 * (inner - outer) + 0.1 * outer) / inner,
        0.1,
    ]
    np.testing.assert_allclose(found.isel(x=0), expected, rtol=1e-7)
    assert np.isnan(found.isel(x=1)).all()


# ------------------------------------------------------------------------------------------- theory


def test_the_prediction_is_theorem_1_class_by_class() -> None:
    small = study(size=20)
    strength, gamma = np.array([0.001, 1.0, 2.0]), np.array([1.0, 3.0, 50.0])
    found = Prediction.of(small, strength, gamma)
    sizes = np.full(small.classes, 20)
    for row, u in enumerate(strength):
        for column, g in enumerate(gamma):
            table = gram(eigenvalues_for(float(g), small.d, small.classes)).numpy()[0]
            norms = np.full(small.classes, u)
            word = benign.regime(table, sizes, norms, BIG_O, BIG_O, 1.0)[0]
            assert found.regime()[row, column] == word
            ratio = 20 * u**4 / table[0, 1]
            assert found.feature_bound()[row, column] == pytest.approx(2 * np.exp(-ratio / 4))
    np.testing.assert_allclose(
        found.tail_bound(np.array([1.0, 2.0]))[0],
        2 * np.exp(-OMEGA * gamma[:, None] * np.array([1.0, 4.0])),
        rtol=1e-6,
    )
    assert set(found.regime(ONES).ravel()) == {"features", "tail"}  # even homogeneous noise
    assert found.regime()[0, 0] == "harmful" and found.regime()[0, 1] == "open"
    edge = feature_boundary(small, gamma, BIG_O)
    at = Prediction.of(small, edge * (1 + 1e-9), gamma).regime()
    assert (np.diag(at) == "features").all()


def test_conditions_are_those_of_the_matrices() -> None:
    small = study()
    found = conditions_at(small, 1.0, 10.0, Training(0.05, 20))
    table = eigenvalues_for(10.0, small.d, small.classes)[0].numpy()
    geometry = NoiseGeometry.of(np.stack([np.diag(row) for row in table]))
    trace = next(c for c in found if c.name.startswith("(a) tr"))
    assert trace.value == pytest.approx(geometry.trace.max())
    shape = next(c for c in found if "op" in c.name)
    wanted = np.sqrt(geometry.gram) / geometry.operator
    assert shape.value == pytest.approx(wanted.min())
    spread = next(c for c in found if "lambda_max" in c.formula)
    assert spread.limit == pytest.approx(np.log(30 / 0.1) * geometry.spread.max() ** 2)


def test_the_best_of_each_law() -> None:
    small, gamma = study(), np.array([10.0])
    ratio = special_ratio(10.0, small.d - small.classes)
    assert least_error(small, gamma, "uniform") == least_error(small, gamma, "gaussian")
    assert least_error(small, gamma, "uniform-own") == least_noise_error(ratio, 3, "uniform")


# ------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"law": ("cauchy",)}, "law='cauchy': must be one of gaussian, uniform, uniform-own"),
        ({"schedule": ("half",)}, "schedule='half': must be one of printed, trained"),
        ({"strength": (-1.0,)}, "strength=-1.0: must be finite and at least 0"),
        ({"gamma": (0.5,)}, "gamma=0.5: must be finite and at least 1"),
        ({"gamma": (float("inf"),)}, "gamma=inf: must be finite and at least 1"),
        ({"size": 0}, "size=0: must be at least 1"),
        ({"tail_samples": 0}, "tail_samples=0: must be at least 1"),
        ({"edges": ()}, "edges=.*must rise from above 0"),
        ({"edges": (0.0, 1.0)}, "edges=.*must rise from above 0"),
        ({"edges": (2.0, 1.0)}, "edges=.*must rise from above 0"),
        ({"edges": (2.0, 9.0)}, "edges=.*stay below 8"),
        ({"classes": 20, "edges": tuple(range(1, 8)), "d": 60}, None),
        ({"classes": 30, "edges": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0), "d": 80}, "may be 7"),
    ],
)
def test_a_value_that_makes_no_sense_is_named(wrong: dict[str, Any], message: str | None) -> None:
    if message is None:
        study(**{**wrong, "edges": tuple(float(e) for e in wrong["edges"])})
        return
    with pytest.raises(UsageError, match=message) as caught:
        study(**wrong)
    assert "\n" not in str(caught.value)
