"""Who detects which feature, and how fast: coarse against fine labels (004 Sec. 5.2, App. C-G)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.granularity.detectors import charts, tables
from rarefy.studies.granularity.detectors import claims as judged
from rarefy.studies.granularity.detectors.experiment import DetectorsExperiment


class GranularityDetectors(DetectorsExperiment, Study):
    """Detectors of two networks, one with coarse and one with fine labels."""

    name: ClassVar[str] = "granularity-detectors"
    title: ClassVar[str] = "Which features are learnt: detectors under coarse and fine labels"
    papers: ClassVar[tuple[str, ...]] = ("004",)
    shows: ClassVar[str] = "eq. 7-13; Thm D.1; Lemma E.4"
    claims: ClassVar[tuple[str, ...]] = ("G3", "G4", "G5")
    needs: ClassVar[str] = "a CPU; a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "At the start a few lucky neurons of every output are open on one feature only: its "
        "detectors. There are equally many for every feature and they carry almost all of the "
        "response to it, then and later (004 eq. 7, 8, App. C). With coarse labels, detectors of "
        "a common feature grow by eta s*/(4P) a step and those of a subclass feature k times "
        "slower, since its patches are k times rarer (Theorem D.1, eq. 9, 33, 35); the response "
        "to the common feature ends of order log d and grows with log t (Lemma E.4, eq. 10), that "
        "to a subclass feature stays below log(d)/k (eq. 11). With fine labels both grow equally "
        "fast up to a constant (eq. 12, 202, 205) and both responses reach order 1 (eq. 13)."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = tables.tables
