"""Where pruning helps: its benefit over start time and share, for three update rules."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.pruning_map import charts
from rarefy.studies.contrastive.pruning_map import claims as judged
from rarefy.studies.contrastive.pruning_map.experiment import PruningMapExperiment


class ContrastPruningMap(PruningMapExperiment, Study):
    """Every share and start beside the same run without pruning, from random weights."""

    name: ClassVar[str] = "contrast-pruning-map"
    title: ClassVar[str] = "A map of when, and how much, to prune"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Theorem 3.2(c)"
    claims: ClassVar[tuple[str, ...]] = ("P2", "P3")
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "000 proves its gain for pruning that begins at T4 and leaves out no more neurons than the "
        "rare feature has (Theorem 3.2), while Algorithm 1 prunes from the first step and its "
        "experiments do too. The map covers both and what lies between, for Algorithm 1 (dense) "
        "and two other ways to treat what is left out: not updated (masked), set to zero (project)."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
