"""Test error by how far out a sample lies along its class's special direction."""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.data.tail_noise import stratified
from rarefy.measure.generalisation import CHUNK, sample_losses, scores_of
from rarefy.studies.benign.trial import Trial


def stratum_errors(
    experiment: Trial,
    filters: Tensor,
    context: Context,
    edges: tuple[float, ...],
    samples: int,
) -> Tensor:
    """Test error given that |zeta| along the class's special direction lies between two ``edges``
    (0 before the first, infinity after the last): (run, stratum), equally many samples in each."""
    wrong = torch.zeros(len(filters), len(edges) + 1, dtype=torch.float64, device=filters.device)
    count = torch.zeros_like(wrong[:1])
    labels = experiment.test_labels(CHUNK)
    for chunk in range(-(-samples // CHUNK)):
        tail = stratified(experiment.data, experiment.draws, labels, edges, "tail", chunk)
        scores = scores_of(filters, tail.samples, experiment.scale, context.compiled)
        _, error = sample_losses(scores, tail.samples.labels)
        inside = tail.stratum[0, :, None] == torch.arange(len(edges) + 1, device=filters.device)
        wrong += error.double() @ inside.double()
        count += inside.double().sum(dim=0)
    return (wrong / count).to(filters.dtype)
