"""The patch network against its formula, sample by sample."""

from __future__ import annotations

import pytest
import torch

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.nets.patch_cnn import class_scores, initial_filters, output_scale, pooled, responses


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_factor_is_one_over_m_or_one() -> None:
    assert output_scale("mean", 8) == 1 / 8
    assert output_scale("sum", 8) == 1.0
    with pytest.raises(UsageError, match="combine='max': must be one of mean, sum"):
        output_scale("max", 8)


@pytest.mark.parametrize("groups", [1, 3])
def test_responses_are_inner_products_whether_patches_are_shared_or_not(groups: int) -> None:
    filters, patches = random(3, 2, 4, 5), random(groups, 6, 5, seed=1)
    seen = responses(filters, patches)
    assert seen.shape == (3, 2, 4, 6)
    for run in range(3):
        for k in range(2):
            for r in range(4):
                for p in range(6):
                    expected = filters[run, k, r] @ patches[run % groups, p]
                    torch.testing.assert_close(seen[run, k, r, p], expected)


def test_pooling_sums_what_is_positive_over_filters() -> None:
    seen = torch.tensor([[[[1.0, -2.0], [3.0, 4.0], [-5.0, 0.0]]]])
    assert torch.equal(pooled(seen), torch.tensor([[[4.0, 4.0]]]))


def test_what_is_written_out_for_the_compiler_is_the_same_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = random(2, 3, 5, 7)
    plain = pooled(seen)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    torch.testing.assert_close(pooled(seen), plain)


@pytest.mark.parametrize("groups", [1, 2])
def test_scores_of_a_sample_are_both_its_patches_run_by_run(groups: int) -> None:
    """F_k(x) = scale sum_r ReLU(<w_kr, u_y>) + ReLU(<w_kr, xi>) (002 Sec. 3)."""
    filters = random(2, 3, 4, 7)
    features, noise = random(groups, 3, 7, seed=1), random(groups, 5, 7, seed=2)
    labels = torch.tensor([[0, 2, 2, 1, 0], [1, 1, 0, 2, 0]])[:groups]
    one_hot = torch.nn.functional.one_hot(labels, 3).double()
    scores = class_scores(
        pooled(responses(filters, noise)), pooled(responses(filters, features)), one_hot
    )
    for run in range(2):
        at = run % groups
        for i in range(5):
            sample = torch.stack([noise[at, i], features[at, labels[at, i]]])
            plain = torch.relu(filters[run] @ sample.T).sum(dim=(1, 2))
            torch.testing.assert_close(scores[run, :, i], plain)


def test_initial_filters_have_the_laws_they_are_named_after() -> None:
    draws = Draws([1, 2])
    gaussian = initial_filters(draws, 3, 10, 400)
    assert gaussian.shape == (2, 3, 10, 400)
    assert abs(float(gaussian.std()) - 1) < 0.02
    uniform = initial_filters(draws, 3, 10, 400, "default")
    assert float(uniform.abs().max()) <= 1 / 20
    assert abs(float(uniform.std()) * 20 * 3**0.5 - 1) < 0.02
    with pytest.raises(UsageError, match="initialisation='zero': must be one of gaussian, default"):
        initial_filters(draws, 3, 10, 400, "zero")


def test_a_run_draws_the_same_filters_alone() -> None:
    both = initial_filters(Draws([1, 2]), 2, 3, 5)
    assert torch.equal(initial_filters(Draws([2]), 2, 3, 5)[0], both[1])
