"""Error on long-tailed data against L and Gamma (003 Theorem 1, statement 2(b))."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.benign.tail import charts
from rarefy.studies.benign.tail import claims as judged
from rarefy.studies.benign.tail.experiment import TailExperiment


class BenignTail(TailExperiment, Study):
    """How fast the error falls towards the tail, for several noise correlation ratios."""

    name: ClassVar[str] = "benign-tail"
    title: ClassVar[str] = "Errors on long-tailed data, against L^2 Gamma"
    papers: ClassVar[tuple[str, ...]] = ("003",)
    shows: ClassVar[str] = "Theorem 1, 2(b)"
    claims: ClassVar[tuple[str, ...]] = ("B4",)
    needs: ClassVar[str] = "a CPU; a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "Long-tailed data of a trained network are those whose own class's active neurons answer "
        "at least L times as strongly as they do on average (003 Definition 1). Theorem 1 2(b): "
        "where the noise correlation ratio Gamma is large, the error on them is at most a sum over "
        "the other classes of exp(-c L^2 Gamma), so that its logarithm falls at least linearly in "
        "L^2 Gamma. The paper shows no experiment. Definition 1 asks for a large output of the "
        "right class, so that errors become rare by selection alone: Gamma = 1, where the noise "
        "says nothing about the class, is run as a control, and a second tail asks no network, "
        "|zeta| >= L along the class's special direction. Trained with the mean of (1) until "
        "the loss is small, as the theorem has it; and the printed training carried on, with the "
        "sum over filters."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
