"""Does the influence score put hard images first? (003 Fig. 5, as numbers)"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.parameters import Count, InRange, Rule
from rarefy.core.rng import Draws
from rarefy.measure.influence.passes import ClassScores, score_classes
from rarefy.measure.ranking import auroc
from rarefy.measure.ranking_in_class import DECILES, mean_by_decile, ranks_within, rho_within
from rarefy.sweep.one_by_one import one_by_one
from rarefy.tools.influence.drawn_parts import check_sets, identities, some_of, training_part
from rarefy.tools.influence.out_of_fold import CLASSIFIERS, folds_of, isolation, out_of_fold
from rarefy.tools.samples.samples import Samples

INFLUENCE, RANDOM = "influence", "random"
SIGNALS = (INFLUENCE, "shared", "distance", "mahalanobis", "norm", RANDOM)
"""The score's part ``own`` grows with the distance: within a class both sort alike."""
SCORES = ("shared", "distance", "mahalanobis", "norm")
COMPARED = (*SCORES, "isolation", *(f"loss, {one}" for one in CLASSIFIERS))
MOST = 0.5
"""Largest share of a set that a seed draws: what all would draw alike has no spread to see."""
SAMPLES = Rule("must be at least 200 (tenths of classes)", lambda value: value >= 200)
CELL_BYTES = 1_500_000_000


@dataclass(frozen=True, kw_only=True)
class GalleryExperiment(Experiment):
    """Fig. 5 shows some images with high and low scores. Here all are asked, by classifiers that
    were trained without them, and plainer scores stand beside."""

    axes: ClassVar[tuple[str, ...]] = ("data",)
    one_at_a_time: ClassVar[bool] = True
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"data": ("digits",), "seeds": 3, "samples": 400, "components": 20, "folds": 3},
        "quick": {"data": ("digits",), "seeds": 10, "components": 20},
        "paper": {},
    }

    seeds: int = 10
    data: tuple[str, ...] = ("mnist", "cifar10")
    """image sets by name; their training parts are used"""
    samples: Annotated[int, SAMPLES] = 10_000
    """images that a seed draws, at most half of the set"""
    components: Count = 50
    """principal components that the classifiers see"""
    folds: Annotated[int, InRange(2, 20)] = 5
    """parts of the images, of which one at a time is asked"""

    def check(self) -> None:
        check_sets(self.data)

    def inputs(self) -> dict[str, str]:
        return identities(self.data)

    def outputs(self) -> tuple[Output, ...]:
        asked = ("classifier", "signal", "decile")
        return (
            Output("error", asked, "share misclassified among a tenth of each class"),
            Output("loss", asked, "mean loss among a tenth of each class"),
            Output("isolation", asked[1:], "mean distance to the nearest of the class, relative"),
            Output("mistakes", asked[:2], "AUROC of the ranks within classes for mistakes"),
            Output("alike", ("compared",), "Spearman's rho with influence, mean over classes"),
            Output("share", (), "share of the set that was drawn"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {
            "classifier": np.array(CLASSIFIERS),
            "signal": np.array(SIGNALS),
            "decile": np.arange(1, DECILES + 1),
            "compared": np.array(COMPARED),
        }

    def cost(self) -> Cost:
        return Cost(bytes_per_cell=CELL_BYTES, steps_per_cell=1)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return one_by_one(cells, lambda cell, key: self._cell(cell, key, context.device), context)

    def _cell(
        self, cell: Mapping[str, Any], key: int, device: torch.device
    ) -> dict[str, np.ndarray]:
        draws, whole = Draws([key]), training_part(str(cell["data"]))
        samples = some_of(whole, draws, self.samples, MOST)
        hard = out_of_fold(samples, folds_of(draws, samples.labels, self.folds), self.components)
        scores = scores_of(samples, device)
        chance = draws.uniform("random", (len(samples),))[0].cpu().numpy()
        values = [chance if signal == RANDOM else getattr(scores, signal) for signal in SIGNALS]
        ranks = np.stack([ranks_within(one, samples.labels) for one in values])
        tenth = np.minimum((DECILES * ranks).astype(np.int64), DECILES - 1)
        wrong = np.stack([hard[one].wrong for one in CLASSIFIERS]).astype(np.float64)
        loss = np.stack([hard[one].loss for one in CLASSIFIERS])
        lonely = isolation(samples, device)
        return {
            "error": mean_by_decile(wrong, tenth),
            "loss": mean_by_decile(loss, tenth),
            "isolation": mean_by_decile(lonely[None], tenth)[0],
            "mistakes": auroc(
                torch.from_numpy(ranks)[None], torch.from_numpy(wrong > 0)[:, None]
            ).numpy(),
            "alike": np.array(
                [
                    rho_within(scores.influence, other, samples.labels)
                    for other in (*(getattr(scores, one) for one in SCORES), lonely, *loss)
                ]
            ),
            "share": np.asarray(len(samples) / len(whole)),
        }


def scores_of(samples: Samples, device: torch.device) -> ClassScores:
    return score_classes(
        samples.features,
        samples.labels,
        len(samples.classes),
        scale=samples.scale,
        device=device,
    )
