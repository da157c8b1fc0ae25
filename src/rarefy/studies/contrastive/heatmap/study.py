"""Squared cosines of neurons with features as a map (000 Fig. 6, App. A.2 Trial 5; 001 Fig. 1)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.heatmap import charts
from rarefy.studies.contrastive.heatmap import claims as judged
from rarefy.studies.contrastive.heatmap.experiment import HeatmapExperiment


class ContrastHeatmap(HeatmapExperiment, Study):
    """Maps of neurons against features, as 000 and as 001 show them."""

    name: ClassVar[str] = "contrast-heatmap"
    title: ClassVar[str] = "Neurons against features: lucky neurons, mixed neurons, strong columns"
    papers: ClassVar[tuple[str, ...]] = ("000", "001")
    shows: ClassVar[str] = "000 Fig. 6; 001 Fig. 1"
    claims: ClassVar[tuple[str, ...]] = ("C13",)
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "After training on five majority and four minority features some neurons are lucky, "
        "aligned with one feature (a squared cosine near 0.3 where chance gives 1/d1 = 0.002), "
        "and others mix several (0.13, 0.18 and 0.15; 000 Fig. 6, 24 neurons). Majority columns "
        "are stronger, nearly every neuron is strongly associated with a majority feature, each "
        "majority feature dominates at least one neuron, and majority features have more neurons "
        "than minority ones (001 Fig. 1, the first 13 of 30 neurons)."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
