"""What weights are scored by, and that a score that is none is refused."""

from __future__ import annotations

import pytest
import torch

from rarefy.core.errors import UsageError
from rarefy.pruning.scores import (
    RANDOM,
    check_scores,
    get_score,
    magnitude,
    random_scores,
    saliency,
)

WEIGHT = torch.tensor([[1.0, -2.0], [0.5, 0.0]])
GRADIENT = torch.tensor([[-3.0, 1.0], [4.0, 9.0]])


def test_magnitude_looks_at_the_weight_alone() -> None:
    assert magnitude("w", WEIGHT, None).tolist() == [[1.0, 2.0], [0.5, 0.0]]
    assert torch.equal(magnitude("w", WEIGHT, GRADIENT), magnitude("w", WEIGHT, None))


def test_saliency_is_weight_times_gradient_and_magnitude_before_there_is_one() -> None:
    assert saliency("w", WEIGHT, GRADIENT).tolist() == [[3.0, 2.0], [2.0, 0.0]]
    assert torch.equal(saliency("w", WEIGHT, None), WEIGHT.abs())


def test_names_stand_for_functions_and_functions_for_themselves() -> None:
    assert get_score("magnitude") is magnitude
    assert get_score("saliency") is saliency
    assert get_score("random") == RANDOM

    def own(name: str, weight: torch.Tensor, gradient: torch.Tensor | None) -> torch.Tensor:
        return weight

    assert get_score(own) is own


def test_an_unknown_score_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError) as error:
        get_score("magnitud")
    assert str(error.value) == (
        "unknown score 'magnitud'; did you mean 'magnitude'? "
        "(known: magnitude, norm, random, saliency)"
    )


def test_random_scores_are_those_of_their_generator_whatever_the_weight_is() -> None:
    def drawn(weight: torch.Tensor) -> torch.Tensor:
        return random_scores(weight, torch.Generator().manual_seed(3))

    assert torch.equal(drawn(WEIGHT), drawn(torch.zeros(2, 2)))
    assert drawn(WEIGHT.double()).shape == (2, 2)
    generator = torch.Generator().manual_seed(3)
    first, second = random_scores(WEIGHT, generator), random_scores(WEIGHT, generator)
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    ("found", "words"), [(torch.ones(3), "(3,)"), (None, "NoneType"), (2.0, "float")]
)
def test_a_score_that_is_no_tensor_of_the_weights_shape_is_refused(
    found: object, words: str
) -> None:
    with pytest.raises(UsageError) as error:
        check_scores("head.weight", WEIGHT, found)
    assert str(error.value) == (
        f"score of head.weight: must be a tensor of shape (2, 2), not {words}"
    )


def test_a_score_is_cut_off_from_its_graph() -> None:
    weight = WEIGHT.clone().requires_grad_()
    assert not check_scores("w", weight, weight.abs()).requires_grad
