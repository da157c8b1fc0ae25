"""Errors in the tails: against a plain loop, and weighted samples against plain ones."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.data.class_noise import ClassNoise
from rarefy.data.noise_structure import special_direction
from rarefy.data.tail_noise import TailSamples, stratified, tilted
from rarefy.measure import tails
from rarefy.measure.tails import (
    CRITERIA,
    Tails,
    TailTally,
    balanced_log_weight,
    neuron_products,
    own_neurons,
    tail_errors,
)
from rarefy.nets.patch_cnn import responses

CLASSES, D, M, RUNS = 3, 14, 6, 2
LENGTHS = (0.0, 0.7, 1.5)


def draws(seed: int = 0) -> Draws:
    return Draws([seed], dtype=torch.float64)


def noise(special: float = 2.0) -> ClassNoise:
    table = special_direction(torch.tensor([[special] * CLASSES, [special / 2] * CLASSES]), D, 3)
    return ClassNoise(table, torch.full((RUNS, CLASSES), 0.4, dtype=torch.float64))


def filters(seed: int = 1) -> Tensor:
    """Random filters that know something: each has a part along its class's special direction."""
    found = draws(seed).normal("filters", (RUNS * CLASSES * M * D,)).reshape(RUNS, CLASSES, M, D)
    for k in range(CLASSES):
        found[:, k, :, CLASSES + k] *= 3
    return found


def labels(count: int) -> Tensor:
    return (torch.arange(count) % CLASSES)[None]


def own_law(model: ClassNoise, count: int, chunk: int, seed: int = 2) -> TailSamples:
    samples = model.sample(draws(seed), labels(count), "test", chunk)
    there = (model.special_axes()[samples.labels])[:, :, None]
    lam = model.eigenvalues[:, torch.arange(CLASSES), model.special_axes()][:, samples.labels[0]]
    z = samples.noise.gather(2, there)[:, :, 0] / lam
    zero = torch.zeros(1, count, dtype=torch.float64)
    return TailSamples(samples, z, zero.long(), zero)


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


# ----------------------------------------------------------------------------------------- tallies


def loop_estimate(
    inside: np.ndarray, error: np.ndarray, weight: np.ndarray
) -> tuple[float, float, float, float]:
    w = weight[inside]
    if not len(w):
        return math.nan, math.nan, 0.0, 0.0
    mean = (w * error[inside]).sum() / w.sum()
    spread = math.sqrt((w**2 * (error[inside] - mean) ** 2).sum()) / w.sum()
    wrong = w[error[inside] == 1]
    seen = wrong.sum() ** 2 / (wrong**2).sum() if len(wrong) else 0.0
    return mean, spread, w.sum() ** 2 / (w**2).sum(), seen


def test_estimates_are_those_of_a_plain_loop_over_classes_and_lengths() -> None:
    generator = np.random.default_rng(1)
    n = 40
    statistic = generator.normal(size=(RUNS, n))
    error = (generator.random((RUNS, n)) < 0.4).astype(float)
    loss = generator.random((RUNS, n))
    weight = generator.random((1, n)) + 0.1
    label = generator.integers(0, CLASSES, n)
    one_hot = torch.tensor(label[:, None] == np.arange(CLASSES)).double()[None]
    tally = TailTally.empty(RUNS, CLASSES, LENGTHS)
    for part in (slice(0, 17), slice(17, n)):  # in two chunks
        tally.add(
            torch.tensor(statistic[:, part]),
            one_hot[:, part],
            torch.tensor(loss[:, part]),
            torch.tensor(error[:, part]),
            torch.tensor(weight[:, part]).log(),
        )
    sizes = np.bincount(label)
    for run in range(RUNS):
        for place, length in enumerate(LENGTHS):
            for estimate, inside in (
                (tally.beyond(), statistic[run] >= length),
                (tally.below(), statistic[run] < length),
            ):
                for k in range(CLASSES):
                    here = inside & (label == k)
                    mean, spread, effective, seen = loop_estimate(here, error[run], weight[0])
                    got = (run, k, place)
                    assert estimate.error[got].item() == pytest.approx(mean, nan_ok=True)
                    assert estimate.effective[got].item() == pytest.approx(effective)
                    assert estimate.errors_seen[got].item() == pytest.approx(seen)
                    if here.any():
                        assert estimate.spread[got].item() == pytest.approx(spread, abs=1e-8)
                        w = weight[0][here]
                        assert estimate.loss[got].item() == pytest.approx(
                            (w * loss[run][here]).sum() / w.sum()
                        )
                        assert estimate.probability[got].item() == pytest.approx(w.sum() / sizes[k])
            # overall: every class counts the same, however many samples it has
            mean, spread, effective, seen = loop_estimate(
                statistic[run] >= length, error[run], weight[0] / sizes[label]
            )
            whole = tally.beyond(overall=True)
            assert whole.error[run, place].item() == pytest.approx(mean, nan_ok=True)
            assert whole.spread[run, place].item() == pytest.approx(spread, nan_ok=True)
            assert whole.effective[run, place].item() == pytest.approx(effective)
            assert whole.errors_seen[run, place].item() == pytest.approx(seen)


def test_a_class_that_is_not_there_has_no_error_and_does_not_disturb_the_others() -> None:
    tally = TailTally.empty(1, CLASSES, (0.0,))
    one_hot = torch.tensor([[[1.0, 0, 0], [0, 1.0, 0]]], dtype=torch.float64)
    ones = torch.ones(1, 2, dtype=torch.float64)
    tally.add(ones, one_hot, ones, torch.tensor([[1.0, 0.0]]), torch.zeros(1, 2))
    assert tally.beyond().error[0, :, 0].tolist()[:2] == [1.0, 0.0]
    assert tally.beyond().error[0, 2, 0].isnan()
    assert tally.beyond(overall=True).error.item() == 0.5
    assert tally.beyond(overall=True).probability.item() == 1.0


# --------------------------------------------------------------------- weighted against plain draws

EDGES = (0.5, 1.0, 1.5, 2.0)


def measured(draw: object, samples: int) -> Tails:
    model, w = noise(), filters()
    return tail_errors(w, draw, samples, LENGTHS, model.eigenvalues, 0.2)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def by_plain_draws() -> Tails:
    model = noise()
    return measured(lambda count, chunk: own_law(model, count, chunk, 10), 30_000)


def agree(first: Tails, second: Tails) -> None:
    """Within 4.5 standard errors of the difference, every entry of 2 runs x 3 criteria x 3 classes
    x 3 lengths: by chance one in 3000 repetitions would not be."""
    for name in CRITERIA:
        a, b = first.by[name].beyond(), second.by[name].beyond()
        allowed = 4.5 * (a.spread**2 + b.spread**2).sqrt() + 1e-9
        assert ((a.error - b.error).abs() <= allowed).all(), name
        # the share in the tail: a mean of weights, whose squares add up to p^2/effective
        share = (a.probability**2 / a.effective + b.probability**2 / b.effective).sqrt()
        assert ((a.probability - b.probability).abs() <= 4.5 * share).all(), name
    assert ((first.silent - second.silent).abs() <= 0.02).all()


def test_stratified_samples_say_the_same_as_plain_ones(by_plain_draws: Tails) -> None:
    model = noise()
    found = measured(
        lambda count, chunk: stratified(model, draws(11), labels(count), EDGES, "test", chunk),
        12_000,
    )
    agree(found, by_plain_draws)
    # and see more of the tail: 400 samples a class and thousand of which one in five is beyond 2
    far = found.by["special"].beyond().effective[..., -1]
    same = by_plain_draws.by["special"].beyond().effective[..., -1] * 12_000 / 30_000
    assert (far > 2 * same).all()


def test_tilted_samples_say_the_same_as_plain_ones(by_plain_draws: Tails) -> None:
    model = noise()
    found = measured(
        lambda count, chunk: tilted(model, draws(12), labels(count), 1.0, step=chunk), 30_000
    )
    agree(found, by_plain_draws)


def test_small_errors_of_the_tail_are_seen() -> None:
    """One filter a class along its special direction, and one of class 2 along another: class 0
    errs where zeta_s < c zeta_b, an event beyond L whose probability is an integral."""
    table = torch.zeros(1, 2, 6, dtype=torch.float64)
    table[:, :, 2:] = 1.0
    model = ClassNoise(table, torch.zeros(1, 2, dtype=torch.float64))
    w = torch.zeros(1, 2, 1, 6, dtype=torch.float64)
    slope, length = 0.8, 3.0
    w[0, 0, 0, 2] = 1.0
    w[0, 1, 0, 4] = slope
    one_class = torch.zeros(1, 1000, dtype=torch.int64)

    towards = torch.zeros(2, 1, 2, 6, dtype=torch.float64)
    towards[:, :, :, 2], towards[1, :, :, 4] = (
        length,
        length / slope,
    )  # the tail, its likeliest error

    def tilting(count: int, chunk: int) -> TailSamples:
        """Half towards the tail, half towards its errors, each weighted by both laws."""
        parts = [
            tilted(
                model, draws(4), one_class[:, : count // 2], shift, 1.0, where, False, word, chunk
            )
            for shift, where, word in zip(shifts, towards, ("tail", "errors"), strict=True)
        ]
        xi = torch.cat([part.samples.noise for part in parts], dim=1)  # zeta: all eigenvalues are 1
        ratios = [
            xi @ where[0, 0] - shift**2 / 2 for shift, where in zip(shifts, towards, strict=True)
        ]
        samples = dataclasses.replace(parts[0].samples, noise=xi, labels=one_class[:, :count])
        zero = torch.zeros(1, count, dtype=torch.int64)
        return TailSamples(samples, xi[:, :, 2], zero, balanced_log_weight(ratios, (0.5, 0.5)))

    shifts = [where[0, 0].norm().item() for where in towards]
    found = tail_errors(w, tilting, 20_000, (length,), table, 1.0).by["definition"].beyond()
    grid = np.linspace(length, 12, 20_001)
    normal = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
    worse = np.array([0.5 * math.erfc(z / slope / math.sqrt(2)) for z in grid])
    step = grid[1] - grid[0]
    exact = (normal * worse).sum() * step / (normal.sum() * step)
    assert exact < 1e-4
    assert found.errors_seen[0, 0, 0] > 100
    assert abs(found.error[0, 0, 0] - exact) < 4.5 * found.spread[0, 0, 0]
    assert found.spread[0, 0, 0] < 0.1 * exact  # plain draws: one error in 20 million


def test_samples_of_several_laws_are_weighted_by_all_of_them() -> None:
    """N(0, 1) from halves of N(0, 1) and N(2, 1): unbiased, no weight above 2."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200_000, generator=generator, dtype=torch.float64)
    x[100_000:] += 2
    weight = balanced_log_weight([torch.zeros_like(x), 2 * x - 2], (0.5, 0.5)).exp()
    assert weight.max() <= 2
    exact = 0.5 * math.erfc(2.5 / math.sqrt(2))
    found = (weight * (x >= 2.5)).mean().item()
    error = (weight * (x >= 2.5)).std().item() / math.sqrt(len(x))
    assert abs(found - exact) < 4 * error and error < 0.01 * exact
    assert weight.mean().item() == pytest.approx(1, abs=4 * weight.std().item() / 447)


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
