"""Levels of frequency, their meetings and the phases between."""

from __future__ import annotations

import numpy as np
import torch

from rarefy.core.rng import Draws
from rarefy.data.sparse_coding import dictionary
from rarefy.measure.levels import LevelWatch
from rarefy.measure.phases import Phase, growth
from rarefy.train.descent import State

D, NEURONS = 6, 12
"""three levels of two features, two neurons each"""


def atoms(runs: int) -> torch.Tensor:
    return dictionary(Draws(list(range(runs)), dtype=torch.float64), 10, D)


def pure(matrix: torch.Tensor, coefficients: list[float]) -> torch.Tensor:
    """Neuron i carries feature i mod 6 with the given weight."""
    scale = torch.tensor(coefficients, dtype=torch.float64).repeat(NEURONS // D)
    return scale[None, :, None] * matrix.transpose(1, 2).repeat(1, NEURONS // D, 1)


def test_strength_of_pure_neurons_is_their_weight() -> None:
    matrix = atoms(2)
    weights = pure(matrix, [4.0, 2.0, 1.0, 1.0, 0.5, 0.25])
    strength = LevelWatch(matrix, weights, 2, 0).strength(weights)
    expected = torch.tensor([[3.0, 1.0, 0.375]], dtype=torch.float64).expand(2, 3)
    assert torch.allclose(strength, expected)


def test_meetings_are_the_first_steps_within_five_percent_counted_from_the_start() -> None:
    matrix = atoms(1)
    far = pure(matrix, [1, 1, 0.5, 0.5, 0.25, 0.25])
    watch = LevelWatch(matrix, far, 2, start=3)

    def see(step: int, middle: float, rare: float) -> None:
        weights = pure(matrix, [1, 1, middle, middle, rare, rare])
        watch(State(step, {"weights": weights}, torch.zeros(1)))

    see(2, 0.5, 0.5)  # before the start: not counted
    see(3, 0.5, 0.4)
    assert watch.met.tolist() == [[-1, -1]]
    see(7, 0.6, 0.571)  # 0.951 of the next level
    see(8, 0.6, 0.3)  # apart again: the first meeting stands
    see(9, 0.949, 0.3)
    assert watch.met.tolist() == [[4, -1]]
    see(10, 0.951, 0.3)
    assert watch.met.tolist() == [[4, 7]]
    together = pure(matrix, [1, 1, 0.5, 0.5, 0.5, 0.5])
    assert LevelWatch(matrix, together, 2, start=0).met.tolist() == [[0, -1]]


def test_composition_counts_chosen_neurons_by_the_level_of_their_strongest_feature() -> None:
    matrix = atoms(2)
    weights = pure(matrix, [1.0] * D)
    chosen = torch.zeros(2, NEURONS, dtype=torch.bool)
    chosen[0, [0, 4, 5, 10]] = True  # neuron i carries feature i mod 6: levels 0, 2, 2, 2
    watch = LevelWatch(matrix, weights, 2, 0)
    shares = watch.composition(weights, chosen)
    assert shares[0].tolist() == [0.25, 0.0, 0.75]
    assert shares[1].isnan().all()
    assert torch.allclose(watch.purity(weights), torch.ones(2, dtype=torch.float64))


def test_growth_between_two_times_of_each_run() -> None:
    read = np.array([0, 10, 20])
    line = np.array([[0.0, 1.0, 4.0], [0.0, 1.0, 4.0]])
    start, end = np.array([0.0, 5.0]), np.array([10.0, 15.0])
    assert np.allclose(growth(read, line, start, end), [0.1, 0.2])
    assert np.isnan(growth(read, line, start, np.array([0.0, np.nan]))).all()


def test_phases_end_with_the_meeting_and_are_equally_long() -> None:
    phase = Phase.of(np.array([10, 40, -1, 60]), 60)
    assert phase.end.tolist() == [10, 40, 60, 60]
    assert phase.later[:2].tolist() == [20, 60] and np.isnan(phase.later[2:]).all()
    assert phase.who_met == "; only 2 of 4 runs met"
    assert Phase.of(np.array([10, 20]), 60).who_met == ""
