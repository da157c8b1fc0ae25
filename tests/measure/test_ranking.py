"""AUROC: by its definition, against scikit-learn, and what it must not depend on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from torch import Tensor

from rarefy.measure.ranking import auroc

EXACT = 1e-12


@st.composite
def labelled(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Few different scores, so that most are tied; at least one sample of each kind."""
    size = draw(st.integers(2, 40))
    scores = draw(st.lists(st.integers(-6, 6), min_size=size, max_size=size))
    positive = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    positive[0], positive[-1] = True, False
    return torch.tensor(scores, dtype=torch.float64), torch.tensor(positive)


def counted(scores: Tensor, positive: Tensor) -> float:
    """The share of pairs that are in order, ties half, in loops."""
    pairs = [
        1.0 if yes > no else 0.5 if yes == no else 0.0
        for yes in scores[positive].tolist()
        for no in scores[~positive].tolist()
    ]
    return sum(pairs) / len(pairs)


@given(labelled())
def test_it_is_the_share_of_ordered_pairs_and_agrees_with_scikit_learn(
    case: tuple[Tensor, Tensor],
) -> None:
    scores, positive = case
    found = auroc(scores, positive)
    assert found.dtype == torch.float64 and found.shape == ()
    assert float(found) == pytest.approx(counted(scores, positive), abs=EXACT)
    assert float(found) == pytest.approx(roc_auc_score(positive.numpy(), scores.numpy()), abs=EXACT)


MONOTONE: dict[str, Callable[[Tensor], Tensor]] = {
    "exponential": torch.exp,
    "cube": lambda x: x**3,
    "bounded": torch.atan,
    "affine": lambda x: 0.25 * x - 7,
}


@given(labelled(), st.sampled_from(sorted(MONOTONE)))
def test_only_the_order_matters(case: tuple[Tensor, Tensor], name: str) -> None:
    scores, positive = case
    assert auroc(MONOTONE[name](scores), positive) == auroc(scores, positive)


@given(labelled(), st.randoms(use_true_random=False))
def test_it_turns_with_the_order_and_with_the_labels_but_not_with_the_places(
    case: tuple[Tensor, Tensor], random: object
) -> None:
    scores, positive = case
    found = float(auroc(scores, positive))
    assert float(auroc(-scores, positive)) == pytest.approx(1 - found, abs=EXACT)
    assert float(auroc(scores, ~positive)) == pytest.approx(1 - found, abs=EXACT)
    order = list(range(len(scores)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert auroc(scores[order], positive[order]) == auroc(scores, positive)


def test_every_run_of_a_batch_is_as_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(0, 9, (3, 4, 25), generator=generator).to(torch.float32)
    positive = torch.rand(3, 4, 25, generator=generator) < 0.4
    together = auroc(scores, positive)
    assert together.shape == (3, 4)
    for place in range(12):
        row = (place // 4, place % 4)
        assert together[row] == auroc(scores[row], positive[row])
    # a view with other strides, as an expanded or transposed tensor has
    turned = scores.transpose(0, 2).contiguous().transpose(0, 2)
    assert torch.equal(auroc(turned, positive), together)


def test_known_values() -> None:
    positive = torch.tensor([True, True, False, False])
    for scores, expected in (
        ([4.0, 3.0, 2.0, 1.0], 1.0),
        ([1.0, 2.0, 3.0, 4.0], 0.0),
        ([5.0, 5.0, 5.0, 5.0], 0.5),
        ([2.0, 1.0, 1.0, 0.0], 0.875),
    ):
        assert float(auroc(torch.tensor(scores), positive)) == expected


def test_without_both_kinds_or_with_a_score_that_is_not_finite_there_is_none() -> None:
    scores = torch.tensor([[1.0, 2.0, 3.0]]).expand(5, 3).clone()
    scores[2, 1], scores[3, 0] = torch.nan, torch.inf
    positive = torch.tensor(
        [[1, 1, 1], [0, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 1]], dtype=torch.bool
    )
    assert torch.isnan(auroc(scores, positive)).tolist() == [True, True, True, True, False]
    assert torch.isnan(auroc(torch.empty(2, 0), torch.empty(2, 0, dtype=torch.bool))).all()


@pytest.mark.parametrize("kind", ["ties", "separated"])
def test_many_samples_are_ranked_in_float64(kind: str) -> None:
    """The sum of ranks of 30,000 samples needs more than the 24 bits of a float32."""
    size = 30_001
    generator = torch.Generator().manual_seed(1)
    positive = torch.rand(size, generator=generator) < 0.3
    scores = torch.randint(0, size // 3, (size,), generator=generator)
    if kind == "separated":
        scores = scores + size * positive
    found = float(auroc(scores, positive))
    assert found == pytest.approx(roc_auc_score(positive.numpy(), scores.numpy()), abs=EXACT)
