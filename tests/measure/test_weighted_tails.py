"""Errors in the tails: weighted samples against plain ones, and against integrals."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from small_tails import LENGTHS, draws, filters, labels, noise, own_law

from rarefy.data.class_noise import ClassNoise
from rarefy.data.tail_noise import TailSamples, stratified, tilted
from rarefy.measure.tails import CRITERIA, Tails, balanced_log_weight, tail_errors

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
    # and see more of the tail: 400 samples per class and thousand of which one in five is beyond 2
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
    """One filter per class along its special direction, and one of class 2 along another: class 0
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
