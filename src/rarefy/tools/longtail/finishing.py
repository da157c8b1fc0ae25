"""What is left of a pre-training: an encoder whose statistics belong to its weights."""

from __future__ import annotations

from rarefy.nets.backbones import Encoder
from rarefy.pruning.finishing.batchnorm import reestimate
from rarefy.train.simclr.pretraining import Pretraining

STATISTICS_BATCHES = 50
"""Batches from which BatchNorm's statistics are estimated for weights that never saw an image."""


def finished(training: Pretraining) -> Encoder:
    """The encoder as a user takes it home: all its weights, with statistics that belong to them."""
    encoder = training.export_encoder("dense")
    if training.has_foreign_statistics:
        views = (
            batch.flatten(0, 1).to(training.model_dtype) for batch in training.batches.epoch(0)
        )
        reestimate(encoder, views, STATISTICS_BATCHES)
    return encoder
