"""What ``granularity-detectors`` reads off a network while it trains."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from rarefy.data.granularity_labels import Labels
from rarefy.measure import detectors as measure
from rarefy.measure.detectors import pooled, responses
from rarefy.train.descent import State

SETS = {
    "printed": "S* to the letter: open on the feature and on no other word of the dictionary",
    "able": "S: all neurons that may be open on a patch of the feature",
}
"""Sets of neurons, all chosen at the start."""

OVER_TIME = {
    "loss": "training loss of the batch before the last update",
    "common_response": "an output's answer to a patch of its side's common feature, without noise",
    "subclass_response": "its answer to a patch of a subclass with its label, without noise",
    "other_response": "its answer to a patch of any other feature of the data, without noise",
    "common_growth": "how far detectors of the common feature have moved along it, mean",
    "subclass_growth": "how far detectors of a subclass feature have moved along it, mean",
    **{
        f"{kind}_by_{name}": f"part of {kind}_response: {words}"
        for kind, (name, words) in product(("common", "subclass"), SETS.items())
    },
}
"""Measured at every read. A response is a mean over outputs and their own features; detectors are
surely open on their feature, and on no other that occurs."""

AT_START = {
    "printed_size": "neurons of S* to the letter, mean over all features and outputs",
    "start_common": "initial answer to common features, mean over all outputs",
    "start_subclass": "initial answer to subclass features, mean over all outputs",
    "start_spread": "std over mean of the initial answers to all features in all outputs",
}
"""Measured before the first update."""


class Watch:
    """Trackers for networks that begin with ``initial``."""

    def __init__(self, labels: Labels, initial: dict[str, Tensor]) -> None:
        data = labels.data
        self.initial = initial
        self.features = 2 + data.subclasses
        self.roles = measure.roles(labels)
        given = (initial["weights"], initial["bias"], self.features, data.spread, data.sigma)
        self.sets = measure.detector_sets(*given)

    def look(self, state: State) -> Tensor:
        """(run, measure), in the order of ``OVER_TIME``."""
        weights, bias = state.parameters["weights"], state.parameters["bias"]
        seen = responses(weights, bias, self.features)
        total = seen.sum(dim=2)
        moved = measure.growth(weights, self.initial["weights"], self.sets.detector)
        own = (self.roles.common, self.roles.subclass)
        parts = [
            pooled((seen * getattr(self.sets, name)).sum(dim=2), where)
            for where, name in product(own, SETS)
        ]
        found = [
            state.loss.to(weights),
            *(pooled(total, where) for where in (*own, self.roles.other)),
            *(pooled(moved, where) for where in own),
            *parts,
        ]
        return torch.stack(found, dim=1)

    def at_start(self) -> dict[str, Tensor]:
        """Of ``AT_START``, (run,) each."""
        weights, bias = self.initial["weights"], self.initial["bias"]
        total = responses(weights, bias, self.features).sum(dim=2)

        found = [
            self.sets.printed.to(weights).sum(dim=2).mean(dim=(1, 2)),
            total[..., :2].mean(dim=(1, 2)),
            total[..., 2:].mean(dim=(1, 2)),
            total.flatten(1).std(dim=1) / total.flatten(1).mean(dim=1),
        ]
        return dict(zip(AT_START, found, strict=True))
