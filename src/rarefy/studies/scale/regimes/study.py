"""How the boundaries of 002 Theorems 4.2 and 4.3 and of 003 Theorem 1 approach the theorems' as the
dimension grows from a hundred to a billion."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.scale.regimes import charts, tables
from rarefy.studies.scale.regimes import claims as judged
from rarefy.studies.scale.regimes.experiment import RegimesExperiment


class RegimesAtScale(RegimesExperiment, Study):
    """A boundary per row, found by bisection, for three paths through the two papers' worlds."""

    name: ClassVar[str] = "regimes-at-scale"
    title: ClassVar[str] = "Where the theorems live: boundaries from a hundred dimensions to 10^9"
    papers: ClassVar[tuple[str, ...]] = ("002", "003")
    shows: ClassVar[str] = "002 Thms 4.2, 4.3, Prop. 5.2; 003 Thm 1"
    claims: ClassVar[tuple[str, ...]] = ("S1", "S2", "S3", "B3", "B4", "B5")
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "Both papers ask for a dimension far above n^2. 002: the signal is learnt where SNR is at "
        "least of order T n^(-1/4) (Theorem 4.2), noise is memorised where it is at most of order "
        "1/n (Theorem 4.3), and signal over noise held by the filters is n SNR^2/T (Prop. 5.2). "
        "003 Theorem 1: the error is exponentially small in |S| |u|^4/|A_k^T A_j|_F^2 (2(a)), on "
        "L-long-tailed data in L^2 Gamma (2(b)), and above a constant where both are small (3). "
        "Where one regime turns into the other neither says. Without pruning, training "
        "needs inner products alone, so that the boundary can be looked for in any dimension."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = tables.tables
