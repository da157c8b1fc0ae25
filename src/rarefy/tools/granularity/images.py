"""What ``rarefy granularity`` runs: pre-training with labels of many granularities, and what the
finished networks answer, class by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from rarefy.core.contracts import Output
from rarefy.measure.class_report import ClassReport, class_report, confusion_of
from rarefy.tools.granularity.experiment import GranularityExperiment
from rarefy.tools.granularity.sets import TransferSets, load_sets
from rarefy.tools.granularity.transfer import Transferred


@dataclass(frozen=True, kw_only=True)
class ImageGranularity(GranularityExperiment):
    """The experiment of the studies, with confusions of the target classes."""

    version: ClassVar[int] = 2

    def outputs(self) -> tuple[Output, ...]:
        told = "test images of the finished network, by target class and answer"
        return (*super().outputs(), Output("confusion", ("label", "answer"), told))

    def coordinates(self) -> dict[str, np.ndarray]:
        labels = np.arange(len(self.sets().target))
        return {**super().coordinates(), "label": labels, "answer": labels}

    def sets(self) -> TransferSets:
        return load_sets(self.source(), torch.device("cpu"))

    def _further(self, done: Transferred, sets: TransferSets) -> dict[str, Any]:
        if done.answers is None:
            return {}
        asked = sets.labels(sets.test).cpu()
        return {"confusion": confusion_of(asked, done.answers.cpu(), len(sets.target))}

    def reports(self, results: xr.Dataset) -> dict[str, ClassReport]:
        """The finished networks on the target classes, by pre-training labels that are through
        with a seed."""
        sets = self.sets()
        counts = torch.bincount(sets.labels(sets.tuned), minlength=len(sets.target)).tolist()
        found = {}
        for labels in map(str, results["labels"].values):
            confusion = results["confusion"].sel(labels=labels).transpose("seed", ...).values
            if np.isfinite(confusion).all(axis=(1, 2)).any():
                found[labels] = class_report(confusion, counts, sets.target)
        return found
