"""A scored set: its table, and what a page about it needs besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from rarefy.measure.influence.class_statistics import (
    compared_classes,
    covariance_overlaps,
    gather_statistics,
)
from rarefy.measure.influence.neighbours import make_space, typical_neighbours
from rarefy.measure.influence.passes import ClassScores
from rarefy.tools.influence.neighbours import WIDTH
from rarefy.tools.influence.percentiles import percentiles
from rarefy.tools.influence.triage import TRIAGE_LABELS
from rarefy.tools.samples.samples import Samples

TYPICAL = 50.0
"""Percentile of the Mahalanobis distance up to which a sample counts as typical of its class. (A
low influence makes none typical: off the directions in which a class varies, anything has one.)"""
SHOWN = 5
SCATTERS, LEAST_MEMORY = 8, 1 << 30
"""Bytes of an entry of a scatter matrix, and what such matrices may take in any case."""
MOST_COLUMNS = 64
"""Features of a sample that has no picture, as many as a page can show."""


@dataclass(frozen=True, eq=False)
class ScoredSamples:
    """``table`` has one row per sample; ``samples`` are what was scored."""

    samples: Samples
    table: pd.DataFrame
    scores: ClassScores
    memory: int
    device: torch.device

    def overlaps(self) -> NDArray[np.float64] | None:
        """tr(Sigma_i Sigma_j) between the compared classes (003 Fig. 6); None where all their
        scatter matrices together take too much memory."""
        samples, chosen = self.samples, compared_classes(self.samples.counts)
        width = samples.features.shape[1]
        if SCATTERS * len(chosen) * width**2 > max(self.memory, LEAST_MEMORY):
            return None
        statistics = gather_statistics(
            samples.features,
            samples.labels,
            len(samples.classes),
            device=self.device,
            memory=2**62,
            chosen=chosen,
        )
        return covariance_overlaps(statistics, self.scores.ddof, samples.scale)

    def typical_neighbours(self, rows: Sequence[int]) -> dict[int, list[int]]:
        """For each asked sample the nearest typical ones of its class: what it might look like."""
        samples, asked = self.samples, np.asarray(rows, dtype=np.int64)
        found = typical_neighbours(
            samples.features,
            samples.labels,
            percentiles(self.table["mahalanobis"].to_numpy(), samples.labels),
            asked,
            SHOWN,
            below=TYPICAL,
            space=make_space(samples.features, WIDTH, device=self.device),
            device=self.device,
        )
        return {
            row: [int(other) for other in others if other >= 0]
            for row, others in zip(asked.tolist(), found.indices, strict=True)
        }

    def columns(self, row: int) -> list[tuple[str, float]]:
        """The features of a sample, by name, in the units in which they were read."""
        samples = self.samples
        held = samples.features if samples.as_read is None else samples.as_read
        values = np.asarray(held[row][:MOST_COLUMNS], dtype=np.float64) * samples.scale
        names = samples.feature_names or tuple(str(place) for place in range(len(values)))
        return [(name, float(value)) for name, value in zip(names, values, strict=False)]

    def words(self) -> list[str]:
        """Those that occur, in order of certainty."""
        there = set(self.table["triage"])
        return [word for word in TRIAGE_LABELS if word in there]

    def by_class(self) -> pd.DataFrame:
        """A row per class that has samples: how many in all, without a score, and of each word."""
        table, labels = self.table, self.samples.labels
        counted = {
            "samples": np.ones(len(table), dtype=bool),
            "undefined": table["influence"].isna().to_numpy(),
            **{word: (table["triage"] == word).to_numpy() for word in self.words()},
        }
        names = table.attrs["classes"]
        found = {
            head: np.bincount(labels[of], minlength=len(names)) for head, of in counted.items()
        }
        rows = pd.DataFrame({"class": names, **found})
        return rows[rows["samples"] > 0]

    def facts(self) -> list[tuple[str, object]]:
        """For the head of a page."""
        told = self.table.attrs
        found: list[tuple[str, object]] = [
            ("data", f"{told['data']} {told['split']}".strip()),
            ("samples", f"{told['samples']:,}"),
            ("features", f"{told['features']:,}"),
            ("covariance divided by", "n - 1" if told["ddof"] else "n"),
            ("scored in", f"{told['seconds']:g} s"),
            ("made", f"{told['date'][:10]}, rarefy"),
        ]
        if told["neighbours"]:
            among = f"{told['neighbours']} each, among {told['neighbours_among']:,} samples"
            found.append(("neighbours", f"{among} in {told['neighbours_width']} directions"))
        found += [("note", note) for note in told["notes"]]
        if told["left_out"]:
            found.append(("left out", f"{len(told['left_out'])} files that cannot be read"))
        return found
