"""Kinds of neurons on maps written by hand."""

from __future__ import annotations

import pytest
import torch

from rarefy.measure.neuron_kinds import KINDS, count_by_group, lucky_examples, neuron_kinds

LITTLE = 0.002


def row(*values: float) -> list[float]:
    """A neuron: the values given, and on the other features what chance gives."""
    return [*values, *[LITTLE] * (9 - len(values))]


@pytest.mark.parametrize(
    ("neuron", "kind", "lucky"),
    [
        (row(0.3), "pure", True),  # 000's neuron 0: one entry near 0.3
        (row(0.29), "pure", False),
        (row(0.13, LITTLE, 0.18, LITTLE, LITTLE, LITTLE, LITTLE, 0.15), "mixed", False),  # its 10
        (row(0.4, 0.1), "pure", True),  # exactly four times the second
        (row(0.39, 0.1), "mixed", False),  # not four times
        (row(0.5, 0.5), "mixed", False),
        (row(0.09), "pure", False),
        (row(0.089), "weak", False),
        (row(0.3, 0.09), "weak", False),  # leads, but unclearly, and nothing else is carried
        (row(), "weak", False),
        ([0.0] * 9, "weak", False),
        ([1.0] + [0.0] * 8, "pure", True),
    ],
)
def test_each_kind_by_the_paper_s_examples_and_at_the_edges(
    neuron: list[float], kind: str, lucky: bool
) -> None:
    cosines = torch.tensor([[neuron]], dtype=torch.float64)
    assert KINDS[int(neuron_kinds(cosines)[0, 0])] == kind
    assert bool(lucky_examples(cosines)[0, 0]) is lucky


def test_kinds_of_a_batch_are_those_of_each_neuron_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    cosines = torch.rand(3, 40, 9, generator=generator).pow(9)
    together = neuron_kinds(cosines)
    assert together.shape == (3, 40) and len(together.unique()) == 3
    for run in range(3):
        for neuron in range(40):
            alone = neuron_kinds(cosines[run : run + 1, neuron : neuron + 1])
            assert alone[0, 0] == together[run, neuron]


def test_counts_go_to_the_group_of_the_strongest_feature() -> None:
    cosines = torch.tensor([[row(0.3), row(0.1, 0.2), [0.0] * 8 + [0.4], row(LITTLE, 0.6)]])
    chosen = torch.tensor([[True, True, True, False]])
    assert count_by_group(cosines, chosen, 1).tolist() == [[1, 2]]
    assert count_by_group(cosines, chosen, 5).tolist() == [[2, 1]]
    assert count_by_group(cosines, torch.zeros(1, 4, dtype=torch.bool), 5).tolist() == [[0, 0]]
