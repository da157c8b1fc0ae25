"""Similarity of positive test pairs against eps_min (000 Fig. 4)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.similarity import charts
from rarefy.studies.contrastive.similarity import claims as judged
from rarefy.studies.contrastive.similarity.experiment import SimilarityExperiment


class ContrastSimilarity(SimilarityExperiment, Study):
    """Mean cosine similarity of positive test pairs against eps_min."""

    name: ClassVar[str] = "contrast-similarity"
    title: ClassVar[str] = "How alike positive test pairs are, and how much of it the data decide"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Fig. 4"
    claims: ClassVar[tuple[str, ...]] = ("C11",)
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "The mean cosine similarity of positive test pairs grows with the frequency eps_min of the "
        "rare features, at every noise level (000 Fig. 4); it is taken as a sign that the rare "
        "features are learned better. The paper does not give the frequencies of the test pairs. "
        "If they are those of training, eps_min changes the test set too: fewer pairs show no "
        "feature. Both readings are measured, beside an untrained network and a perfect encoder."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
