"""Does masking the right neurons help where masking the smallest does not? Our own question."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.masking import charts
from rarefy.studies.contrastive.masking import claims as judged
from rarefy.studies.contrastive.masking.experiment import MaskingExperiment


class ContrastMasking(MaskingExperiment, Study):
    """Trained networks that go on with the smallest, random or the rare features' neurons masked.

    All masks of a seed begin with the same trained network and see the same samples.
    """

    name: ClassVar[str] = "contrast-masking"
    title: ClassVar[str] = "Does masking the right neurons help the rare features?"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "our own question on Theorem 3.2 and Algorithm 1"
    claims: ClassVar[tuple[str, ...]] = ("Q1",)
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper and needed at scale large"
    paper_says: ClassVar[str] = (
        "Theorem 3.2 lets a rare feature gain because its own neurons are the smallest, so that "
        "pruning leaves out these. In trained networks the smallest neurons are others. Nothing is "
        "said of masks that are chosen in another way: here an oracle masks the neurons that are "
        "most aligned with the rare features, as many as Algorithm 1 masks."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
