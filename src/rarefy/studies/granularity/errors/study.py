"""What coarse and fine labels teach: errors on easy and on hard samples (004 Theorems 5.1, 5.2)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.granularity.errors import charts
from rarefy.studies.granularity.errors import claims as judged
from rarefy.studies.granularity.errors.experiment import ErrorsExperiment


class GranularityErrors(ErrorsExperiment, Study):
    """Errors of two networks trained on the same samples, with coarse and with fine labels."""

    name: ClassVar[str] = "granularity-errors"
    title: ClassVar[str] = "Why fine labels help: errors on easy and on hard samples"
    papers: ClassVar[tuple[str, ...]] = ("004",)
    shows: ClassVar[str] = "Thm 5.1; Thm 5.2, G.3"
    claims: ClassVar[tuple[str, ...]] = ("G1", "G2")
    needs: ClassVar[str] = "a CPU; a GPU at scale paper"
    headline: ClassVar[bool] = True
    paper_says: ClassVar[str] = (
        "A sample has patches with a feature that its whole side shares and patches with the "
        "feature of its subclass. Hard samples lack the shared feature and hold weak traces of "
        "the other side's. Trained with coarse labels on easy samples, a network reaches a "
        "vanishing loss and small error on easy samples, but errs on a constant share of hard "
        "ones at all times, if there are polylog(d) subclasses or more (004 Theorem 5.1, eq. "
        "3-5): the shared feature is k times as frequent and is learnt in place of the "
        "subclasses'. Trained with fine labels and at most d^0.4 subclasses its errors on both "
        "kinds are small, in the coarse question (Theorem 5.2, eq. 6), answered by the largest "
        "output of a side, and in the fine one (Theorem G.3). The paper's neurons (d^2 an output) "
        "and noise are out of reach: its effect is looked for at the sizes stated."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
