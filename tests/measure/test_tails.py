"""Errors in the tails: Definition 1 against a plain loop, batches against single runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tails import LENGTHS, RUNS, D, draws, filters, labels, noise, own_law

from rarefy.core.errors import UsageError
from rarefy.data.class_noise import ClassNoise
from rarefy.data.tail_noise import TailSamples
from rarefy.measure import tails
from rarefy.measure.tails import (
    CRITERIA,
    TailTally,
    balanced_log_weight,
    neuron_products,
    own_neurons,
    tail_errors,
)
from rarefy.nets.patch_cnn import responses

# ------------------------------------------------------------------------------------ Definition 1


def loop_ratio(w: np.ndarray, a: np.ndarray, xi: np.ndarray) -> tuple[float, int]:
    """Definition 1 as it is written, with the matrix A; w: (m, d), of the sample's own class."""
    total, count = np.zeros(w.shape[1]), 0
    for row in w:
        if row @ xi > 0:
            total, count = total + row, count + 1
    return (float(total @ xi / np.linalg.norm(a.T @ total)) if count else 0.0), count


def test_the_ratio_is_that_of_definition_1_with_matrices() -> None:
    model, w = noise(), filters()
    samples = model.sample(draws(3), labels(24))
    found = own_neurons(
        responses(w, samples.noise), samples.labels, neuron_products(w, model.eigenvalues)
    )
    # any basis will do: A = U Lambda U^T, everything rotated by U
    basis, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(D, D)))
    for run in range(RUNS):
        for i in range(24):
            k = int(samples.labels[0, i])
            matrix = basis @ np.diag(model.eigenvalues[run, k].numpy()) @ basis.T
            ratio, count = loop_ratio(
                w[run, k].numpy() @ basis.T, matrix, basis @ samples.noise[run, i].numpy()
            )
            assert found.ratio[run, i].item() == pytest.approx(ratio, rel=1e-10)
            assert found.active[run, i] == count


def test_a_sample_that_no_neuron_answers_is_in_no_tail_and_is_counted() -> None:
    model, w = noise(), filters()
    samples = model.sample(draws(3), labels(60))
    w[:, 1] = 0  # class 1 says nothing
    found = own_neurons(
        responses(w, samples.noise), samples.labels, neuron_products(w, model.eigenvalues)
    )
    mute = samples.labels[0] == 1
    assert (found.ratio[:, mute] == 0).all() and (found.active[:, mute] == 0).all()
    result = tail_errors(
        w, lambda count, chunk: own_law(model, count, chunk), 60, LENGTHS, model.eigenvalues, 1.0
    )
    assert torch.equal(result.silent[:, 1], torch.ones(RUNS, dtype=torch.float64))
    definition = result.by["definition"].beyond()
    assert (definition.probability[:, 1, 0] == 1).all()  # L = 0 is everything
    assert (definition.probability[:, 1, 1:] == 0).all()
    assert definition.error[:, 1, 1:].isnan().all() and (definition.effective[:, 1, 1:] == 0).all()
    assert (result.quiet >= result.silent).all()


@settings(max_examples=25, deadline=None)
@given(st.floats(0.1, 100), st.floats(0.1, 100), st.integers(0, 1000))
def test_the_ratio_does_not_change_with_the_size_of_filters_or_noise(
    of_filters: float, of_noise: float, seed: int
) -> None:
    model, w = noise(), filters(seed)
    samples = model.sample(draws(seed), labels(9))
    one = own_neurons(
        responses(w, samples.noise), samples.labels, neuron_products(w, model.eigenvalues)
    )
    scaled = w * of_filters
    other = own_neurons(
        responses(scaled, samples.noise * of_noise),
        samples.labels,
        neuron_products(scaled, model.eigenvalues * of_noise),
    )
    torch.testing.assert_close(one.ratio, other.ratio, rtol=1e-9, atol=0)
    # a projection of zeta: no ratio can be longer than zeta itself
    length = (samples.noise / model.eigenvalues[:, samples.labels[0]].clamp(min=1e-9)).norm(dim=2)
    assert (one.ratio <= length * (1 + 1e-9)).all()


# ------------------------------------------------------------------------------------ batches, use


def test_a_run_measures_the_same_alone_and_in_a_batch() -> None:
    model, w = noise(), filters()
    together = tail_errors(
        w, lambda count, chunk: own_law(model, count, chunk), 1500, LENGTHS, model.eigenvalues, 1.0
    )
    for run in range(RUNS):
        single = ClassNoise(model.eigenvalues[run : run + 1], model.strength[run : run + 1])

        def alone(count: int, chunk: int, single: ClassNoise = single) -> TailSamples:
            return own_law(single, count, chunk)

        found = tail_errors(
            w[run : run + 1], alone, 1500, LENGTHS, single.eigenvalues, 1.0, compile_kernels=False
        )
        for name in CRITERIA:
            one, all_runs = found.by[name].beyond(), together.by[name].beyond()
            torch.testing.assert_close(one.error[0], all_runs.error[run], equal_nan=True)
            torch.testing.assert_close(one.loss[0], all_runs.loss[run], equal_nan=True)


def test_samples_come_in_chunks_of_a_fixed_size(monkeypatch: pytest.MonkeyPatch) -> None:
    model, asked = noise(), []

    def draw(count: int, chunk: int) -> TailSamples:
        asked.append((count, chunk))
        return own_law(model, count, chunk)

    monkeypatch.setattr(tails, "CHUNK", 30)
    tail_errors(filters(), draw, 70, LENGTHS, model.eigenvalues, 1.0)
    assert asked == [(30, 0), (30, 1), (10, 2)]


def test_wrong_use_is_named() -> None:
    model, w = noise(), filters()
    with pytest.raises(UsageError, match=r"lengths=\[\]: must be finite, and at least one"):
        TailTally.empty(1, 2, ())
    with pytest.raises(UsageError, match=r"lengths=\[inf\]: must be finite"):
        TailTally.empty(1, 2, (math.inf,))
    with pytest.raises(UsageError, match=r"eigenvalues=\(2, 3, 5\): must be \(run or 1, 3, 14\)"):
        neuron_products(w, model.eigenvalues[:, :, :5])
    with pytest.raises(UsageError, match="samples=0: must be at least 1"):
        tail_errors(w, lambda a, b: own_law(model, a, b), 0, LENGTHS, model.eigenvalues, 1.0)
    for shares in ((0.5, 0.4), (1.0, 0.0), (1.0,)):
        with pytest.raises(UsageError, match=r"shares=\[.*add up to 1"):
            balanced_log_weight([torch.zeros(1), torch.zeros(1)], shares)
