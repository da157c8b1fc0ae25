"""Fine labels that are noisy, misaligned or starved of samples (004 Sec. 6.2)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.granularity.labels import charts
from rarefy.studies.granularity.labels import claims as judged
from rarefy.studies.granularity.labels.experiment import LabelsExperiment


class GranularityLabels(LabelsExperiment, Study):
    """Three ways to spoil fine labels, each beside coarse labels that are clean."""

    name: ClassVar[str] = "granularity-labels"
    title: ClassVar[str] = "When fine labels do not help: noisy, misaligned, starved"
    papers: ClassVar[tuple[str, ...]] = ("004",)
    shows: ClassVar[str] = "Section 6.2"
    claims: ClassVar[tuple[str, ...]] = ("G12",)
    needs: ClassVar[str] = "a CPU; a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "On iNaturalist, pre-training with fine labels beats pre-training with coarse ones, both "
        "fine-tuned on the coarse question, only if few fine labels are wrong, if they cut along "
        "the classes that are asked for in the end, and if no subclass is left with too few "
        "samples; random ids, clusters of the whole set and tiny subclasses bring little or "
        "nothing (004 Sec. 6.2, Table 1). The theorems assume clean labels and fresh samples. Here "
        "each fault is a knob of the multi-view model: a share of labels drawn at random; a share "
        "of subclasses whose samples have the side of their label tossed one by one; fewer stored "
        "samples of every subclass (the whole set is thinned, where the paper cuts a fixed set "
        "ever finer). The baseline has clean coarse labels of the same samples. Then both networks "
        "are fine-tuned on the coarse question, with their outputs kept and fresh samples where "
        "the paper puts a new last layer and takes the old samples; gains are shown before and "
        "after."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
