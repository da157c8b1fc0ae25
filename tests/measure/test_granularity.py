"""Errors and margins of multi-view networks on the coarse and the fine question."""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.core.rng import Draws
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view import MultiView, MultiViewSamples
from rarefy.measure.granularity import CHUNK, Answers, answers
from rarefy.train.multi_view_classifier import MultiViewClassifier, initial_neurons

DATA = MultiView(d=12, patches=8, plus=2, minus=2, feature_patches=2, sigma=0.05)


def draws(runs: int = 3, first: int = 0) -> Draws:
    return Draws(range(first, first + runs), dtype=torch.float64)


def asked(given: Tensor, labels: Labels, each: int = 3, hard: bool = False) -> Answers:
    """Answers of a network whose scores are (subclass, output), whatever it is shown."""

    def scores(views: MultiViewSamples) -> Tensor:
        return given[views.subclass].transpose(1, 2)

    def label_of(subclass: Tensor) -> Tensor:
        return labels.of(subclass, torch.zeros_like(subclass), draws())

    return answers(scores, DATA, draws(), label_of, labels.side(), each, hard)


def test_a_perfect_and_a_wrong_network() -> None:
    fine = Labels(DATA, 2)
    right = asked(torch.eye(4, dtype=torch.float64), fine)
    assert right.error.tolist() == [0.0] * 3 and right.label_error.tolist() == [0.0] * 3
    assert bool((right.margin == 1).all()) and bool((right.label_margin == 1).all())
    wrong = asked(-torch.eye(4, dtype=torch.float64), fine)
    assert wrong.label_error.tolist() == [1.0] * 3
    # the other output of the own side scores 0, as the other side's do: a tie is an error
    assert wrong.error.tolist() == [1.0] * 3


def test_the_side_is_that_of_its_largest_output() -> None:
    """Theorem G.3: the wrong label of the right side is right on the coarse question."""
    sibling = torch.eye(4, dtype=torch.float64)[[1, 0, 3, 2]]
    found = asked(sibling, Labels(DATA, 2))
    assert found.error.tolist() == [0.0] * 3
    assert found.label_error.tolist() == [1.0] * 3
    assert bool((found.label_margin == -1).all())


def test_nothing_said_is_nothing_right() -> None:
    found = asked(torch.zeros(4, 4, dtype=torch.float64), Labels(DATA, 2))
    assert found.error.tolist() == [1.0] * 3 and found.label_error.tolist() == [1.0] * 3
    lost = asked(torch.full((4, 4), torch.nan, dtype=torch.float64), Labels(DATA, 2))
    assert lost.error.tolist() == [1.0] * 3


def test_every_subclass_is_asked_equally_often_and_errors_are_shares() -> None:
    given = torch.eye(4, dtype=torch.float64)
    given[3] = torch.tensor([5.0, 0, 0, 0])  # the last subclass is put on the wrong side
    for each in (1, CHUNK, CHUNK + 3):
        found = asked(given, Labels(DATA, 2), each)
        assert found.margin.shape == (3, 4 * each)
        for run in range(3):
            assert torch.bincount(found.subclass[run]).tolist() == [each] * 4
        assert found.error.tolist() == [0.25] * 3
        assert bool((found.margin[found.subclass == 3] == -5).all())


def test_coarse_networks_have_two_outputs() -> None:
    given = torch.tensor([[1.0, 0], [0, 1], [0, 1], [0, 2]], dtype=torch.float64)
    found = asked(given, Labels(DATA, 1))
    assert found.error.tolist() == [0.25] * 3
    assert torch.equal(found.error, found.label_error)


def test_samples_are_fresh_and_the_same_alone_and_in_a_batch() -> None:
    labels = Labels(DATA, 2)
    problem = MultiViewClassifier(DATA.patches)

    def of(runs: int, first: int, hard: bool) -> Answers:
        source = draws(runs, first)
        parameters = initial_neurons(source, labels.outputs, 10, DATA.d, 0.5, 0.5)

        def label_of(subclass: Tensor) -> Tensor:
            return labels.of(subclass, torch.zeros_like(subclass), source)

        def scores(views: MultiViewSamples) -> Tensor:
            return problem.scores(parameters, views)

        return answers(scores, DATA, source, label_of, labels.side(), CHUNK + 2, hard)

    for hard in (False, True):
        together = of(4, 0, hard)
        for run in (0, 3):
            alone = of(1, run, hard)
            torch.testing.assert_close(alone.margin[0], together.margin[run])
            torch.testing.assert_close(alone.label_margin[0], together.label_margin[run])
    easy, hard_ones = of(4, 0, False), of(4, 0, True)
    assert not bool((easy.margin == hard_ones.margin).any())
    first = easy.margin[:, easy.subclass[0] == 0]
    assert len(set(first[0].tolist())) == CHUNK + 2  # no sample comes twice
