"""How much of a feature is image and view: closed forms, chance, and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.measure.representation.instance import FOLDS, RIDGE, instance_retrieval, readable


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---------------------------------------------------------------------------------------- the image


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 8), st.integers(0, 99))
def test_retrieval_as_in_a_plain_loop(n, seed):
    first, second = drawn(n, 3, seed=seed), drawn(n, 3, seed=seed + 100)
    points = torch.nn.functional.normalize(torch.cat([first, second]), dim=1)
    right = 0
    for i in range(2 * n):
        near = [float(points[i] @ points[j]) if j != i else -2 for j in range(2 * n)]
        right += int(np.argmax(near)) == (i + n) % (2 * n)
    assert instance_retrieval(first, second) == right / (2 * n)


def test_retrieval_of_views_alike_of_noise_and_of_nothing() -> None:
    images = drawn(50, 8)
    assert instance_retrieval(images, images + 1e-3 * drawn(50, 8, seed=1)) == 1.0
    assert instance_retrieval(images, 5 * images) == 1.0  # (by direction)
    assert instance_retrieval(torch.ones(50, 8), torch.ones(50, 8)) == 0.0  # (ties)
    found = [
        instance_retrieval(drawn(40, 8, seed=s), drawn(40, 8, seed=s + 500)) for s in range(60)
    ]
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - 1 / 79) < 4 * error


# ----------------------------------------------------------------------------------------- the view


def test_what_is_linear_is_read_as_well_as_its_noise_lets() -> None:
    rows, n = drawn(4000, 5), 4000
    exact = rows @ torch.tensor([1.0, -2.0, 0.5, 0.0, 0.0], dtype=torch.float64)
    targets = torch.stack([exact, exact + exact.std() * drawn(n, seed=1), drawn(n, seed=2)], dim=1)
    found = readable(rows, targets + 3, torch.arange(n))
    # the ridge keeps 1 / (1 + RIDGE) of a weight
    assert float(found[0]) == pytest.approx(1 - (RIDGE / (1 + RIDGE)) ** 2, abs=1e-3)
    assert float(found[1]) == pytest.approx(0.5, abs=0.05)
    assert float(found[2]) == pytest.approx(-5 / n, abs=0.01)


def test_scale_does_not_matter_and_what_does_not_vary_is_not_read() -> None:
    rows, target = drawn(200, 4), drawn(200, 1, seed=1)
    groups = torch.arange(200) // 2
    scale = torch.tensor([1e-3, 1.0, 10.0, 0.0], dtype=torch.float64)
    kept = torch.cat([rows[:, :3], torch.zeros(200, 1)], dim=1)
    plain, scaled = (readable(x, target, groups) for x in (kept, rows * scale))
    torch.testing.assert_close(plain, scaled)
    assert readable(rows, torch.full((200, 1), 0.1), groups).isnan().all()


def test_a_feature_that_was_silent_in_the_fit_does_no_harm() -> None:
    """Hardly alive in one fold, loud in another: taken for a huge value it would ruin all."""
    rows = torch.cat([drawn(200, 3), torch.zeros(200, 1, dtype=torch.float64)], dim=1)
    groups = torch.arange(200)
    rows[:, 3] = torch.where(groups % FOLDS == 0, 100.0, 1e-6 * rows[:, 0])
    assert float(readable(rows, rows[:, 1:2], groups)) > 0.5


def test_views_of_one_image_are_on_one_side() -> None:
    """A target that is the same for both views and noise otherwise could else be learnt by heart:
    as many features as images, each one an image's own."""
    images = torch.eye(60, dtype=torch.float64).repeat_interleave(2, dim=0)
    target = drawn(60, 1).repeat_interleave(2, dim=0)
    groups = torch.arange(60).repeat_interleave(2)
    assert float(readable(images, target, groups)) < 0.1
    assert float(readable(images, target, torch.arange(120))) > 0.5  # (not kept together)


def test_readable_errors() -> None:
    with pytest.raises(UsageError, match=r"second=\(3, 2\): must have the shape \(4, 2\)"):
        instance_retrieval(torch.ones(4, 2), torch.ones(3, 2))
    rows = drawn(10, 2)
    with pytest.raises(UsageError, match="targets and groups=9: must be one per row, 10"):
        readable(rows, rows[:9], torch.arange(10))
    with pytest.raises(UsageError, match="folds=5: must be 2 to the number of groups, 3"):
        readable(rows, rows, torch.arange(10) % 3)
