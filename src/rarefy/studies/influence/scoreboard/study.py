"""What the influence score finds and what it does not: wrong labels, rare modes, copies."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.influence.scoreboard import charts
from rarefy.studies.influence.scoreboard import claims as judged
from rarefy.studies.influence.scoreboard.experiment import ScoreboardExperiment


class InfluenceScoreboard(ScoreboardExperiment, Study):
    """Samples are put into real data that a curator would want to find; who finds them?"""

    name: ClassVar[str] = "influence-scoreboard"
    title: ClassVar[str] = "What does the influence score find, and what finds it better?"
    papers: ClassVar[tuple[str, ...]] = ("003",)
    shows: ClassVar[str] = "Eq. (10); Fig. 5"
    claims: ClassVar[tuple[str, ...]] = ("B11",)
    needs: ClassVar[str] = "a CPU; at scale paper also MNIST and CIFAR-10"
    paper_says: ClassVar[str] = (
        "003 Sec. 5.2 calls images with a high influence score, Eq. (10), atypical and says no "
        "more of what the score is for. Here known samples are put into real data sets: labels "
        "flipped at random or between two classes, rare modes (classes merged in pairs, few of the "
        "second; their label is right), and copies with another label, exact or with a little "
        "noise. Every signal that needs no training sorts the samples, highest first. AUROC is the "
        "chance that an injected sample ranks above another; recall the share of them among as "
        "many samples as were injected."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
