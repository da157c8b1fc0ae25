"""Do pure neurons make features linearly separable? (000 Theorem 3.1, Remark 3)"""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.separability import charts
from rarefy.studies.contrastive.separability import claims as judged
from rarefy.studies.contrastive.separability.experiment import SeparabilityExperiment


class ContrastSeparability(SeparabilityExperiment, Study):
    """Linear probes for single features against the number of neurons pure in them."""

    name: ClassVar[str] = "contrast-separability"
    title: ClassVar[str] = "Are features with more pure neurons easier to read off linearly?"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Theorem 3.1, Remark 3"
    claims: ClassVar[tuple[str, ...]] = ("C16",)
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper and needed at scale large"
    paper_says: ClassVar[str] = (
        "Lucky neurons, pure in one feature, give the representation an axis for each feature, so "
        "that a linear probe extracts it easily: more specialisation, better linear separability "
        "(000 Theorem 3.1, Remark 3). Taken literally this cannot be measured: f is odd and signs "
        "are random, so that no linear function of f(X) tells whether a feature is present (its "
        "AUROC is 1/2). Two readings can: 'present with positive sign' from f(X), and 'present' "
        "from |f(X)|. Probes are trained and tested on balanced data, whatever eps_min was."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
