"""TopK pruning where 002 Theorems 4.4 and 4.5 speak."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.topk.window import charts
from rarefy.studies.topk.window import claims as judged
from rarefy.studies.topk.window.experiment import WindowExperiment


class TopKWindow(WindowExperiment, Study):
    """Test loss over K at the two noise levels of which the theorems speak."""

    name: ClassVar[str] = "topk-window"
    title: ClassVar[str] = "TopK pruning where its theorems speak: few samples, many dimensions"
    papers: ClassVar[tuple[str, ...]] = ("002",)
    shows: ClassVar[str] = "Thm 4.4, 4.5"
    claims: ClassVar[tuple[str, ...]] = ("S4", "S5")
    needs: ClassVar[str] = "a CPU; a GPU at scale paper (hours on two cores)"
    headline: ClassVar[bool] = False
    paper_says: ClassVar[str] = (
        "Where SNR = mu/(sigma_p sqrt(d)) is at most of order 1/n and K lies between "
        "d exp(-mu^2/(2 sigma_p^2)) + sqrt(d log(1/delta)) and mu^2 sqrt(n)/(T sigma_p^2), TopK "
        "pruning brings the test loss down to order T times the training loss (002 Theorem 4.4). "
        "With fewer coordinates than about d (1 - sqrt(1 - exp(-2 mu^2/(pi sigma_p^2)))) it stays "
        "of order log T (Theorem 4.5). Both want d far above n^2; in the paper's figure d = n, and "
        "SNR is 14/n or more. Here n = 10 and d = 16,384."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
