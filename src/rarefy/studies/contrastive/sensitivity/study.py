"""Fig. 2-3's trend where the paper leaves something out or assumes something (000 Fig. 2-3)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.sensitivity import charts
from rarefy.studies.contrastive.sensitivity import claims as judged
from rarefy.studies.contrastive.sensitivity.experiment import SensitivityExperiment


class ContrastSensitivity(SensitivityExperiment, Study):
    """One thing changed at a time, the trend in eps_min read at several steps."""

    name: ClassVar[str] = "contrast-sensitivity"
    title: ClassVar[str] = "Minority alignment under other hyper-parameters and assumptions"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Fig. 2-3"
    claims: ClassVar[tuple[str, ...]] = ("C10",)
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "Minority alignment grows with eps_min (Fig. 2-3). The paper refers to its code for "
        "learning rate, temperature, batch size, tokens, activation probability and the step at "
        "which the figures are read; it keeps attention fixed at the identity and lets features "
        "appear independently. Here each is changed alone, from contrast-alignment's value."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
