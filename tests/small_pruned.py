"""A small pruned network, and what ``PruningEffect`` sees of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from small_contrastive import Small, random_attention, small
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.measure.pruning_effect import PruningEffect

EXACT = 1e-12
RUNS, NEURONS, SAMPLES, BATCHES = 2, 4, 7, 3
KEPT = torch.tensor([[1, 1, 0, 1], [1, 0, 1, 0]], dtype=torch.bool)
RARE = (1, 2)
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bias, times tau": {"bias": 0.2, "tau": 0.6, "factor": 0.6},
    "other attention": {"attention": random_attention(6), "tau": 1.7, "spread": "subset"},
}


def case_of(setting: str, **options: Any) -> Small:
    return small(
        **{"name": "effect", "runs": RUNS, "neurons": NEURONS}, **SETTINGS[setting], **options
    )


def effect_of(
    case: Small,
    kept: Tensor = KEPT,
    rare: Sequence[int] = RARE,
    samples: int = SAMPLES,
    batches: int = BATCHES,
    context: Context | None = None,
) -> PruningEffect:
    return PruningEffect(
        case.problem,
        case.parameters,
        kept,
        case.data,
        case.draws,
        torch.tensor(rare),
        samples,
        batches,
        context,
    )


def close(found: Tensor, expected: Any, tolerance: float = EXACT) -> None:
    expected = torch.as_tensor(expected, dtype=torch.float64)
    assert found.shape == expected.shape
    assert torch.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
