"""Signal learnt or noise memorised, without pruning (002 Theorems 4.2 and 4.3, Prop. 5.2)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.topk.regimes import charts
from rarefy.studies.topk.regimes import claims as judged
from rarefy.studies.topk.regimes import tables as listed
from rarefy.studies.topk.regimes.experiment import RegimesExperiment


class TopKRegimes(RegimesExperiment, Study):
    """A map of the two regimes over SNR, samples, classes and dimension."""

    name: ClassVar[str] = "topk-regimes"
    title: ClassVar[str] = "Signal or noise: the two regimes without pruning, and what lies between"
    papers: ClassVar[tuple[str, ...]] = ("002",)
    shows: ClassVar[str] = "Thm 4.2, 4.3; Prop. 5.2"
    claims: ClassVar[tuple[str, ...]] = ("S1", "S2", "S3")
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "With SNR = mu/(sigma_p sqrt(d)) at least of order T n^(-1/4) a two-layer network learns "
        "the signals and not the noise, and its test loss is small with its training loss (002 "
        "Theorem 4.2, Lemma F.8); with SNR at most of order 1/n it memorises the noise, and its "
        "test loss stays of order 1 (Theorem 4.3, Lemma H.4). In both the ratio of signal to noise "
        "coefficients is of order n SNR^2/T all along (Prop. 5.2). Of the SNR between nothing is "
        "said; the regimes are measured there too. The dimension is varied up to what Condition "
        "4.1 asks for: without pruning training needs inner products alone, and their law is "
        "known in every dimension."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = listed.tables
