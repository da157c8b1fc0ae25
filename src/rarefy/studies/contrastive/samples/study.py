"""Does long training on few samples lose rare features? Our own question."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.samples import charts
from rarefy.studies.contrastive.samples import claims as judged
from rarefy.studies.contrastive.samples.experiment import SamplesExperiment


class ContrastSamples(SamplesExperiment, Study):
    """Long training on a finite set: plain, Algorithm 1, two branches with and without a mask.

    All methods of a seed begin with the same weights and see the same samples.
    """

    name: ClassVar[str] = "contrast-samples"
    title: ClassVar[str] = "Does long training on few samples lose rare features?"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "our own question on long-tailed images (Table 2)"
    claims: ClassVar[tuple[str, ...]] = ("Q3", "Q4", "Q8")
    paper_says: ClassVar[str] = (
        "The theory draws fresh samples at every step. On 12,406 long-tailed images SimCLR trained "
        "four times as long loses 5 points, and two branches, one of them masked, keep them. Here "
        "the sparse-coding model has a finite training set too: its samples come back under fresh "
        "noise, with a part of the noise that is their own (as an image under augmentations), or "
        "its pairs come back just as they were. Nothing is said of this by the theory."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
