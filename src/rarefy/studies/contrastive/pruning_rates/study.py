"""How fast pruning makes a rare feature grow, against d, alpha and eps (000 (15)-(16))."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.pruning_rates import charts
from rarefy.studies.contrastive.pruning_rates import claims as judged
from rarefy.studies.contrastive.pruning_rates.experiment import PruningRatesExperiment


class ContrastPruningRates(PruningRatesExperiment, Study):
    """One step with and one without pruning from the theorem's state, one rare feature."""

    name: ClassVar[str] = "contrast-pruning-rates"
    title: ClassVar[str] = "How much one pruned step adds to a rare feature, and to the others"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Theorem 3.2(a), (b)"
    claims: ClassVar[tuple[str, ...]] = ("P1", "P5")
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "With a share alpha of the neurons pruned, all of them the rare feature's, its neurons "
        "grow along it by at least of order eta eps^2 alpha C_z log log d / d more a step (15), "
        "and all neurons along any other feature by at most of order eta eps^3 alpha C_z log log "
        "d / d^2 (16): d/eps times less. Here C_z log log d / d, not stated, is stage 1's growth."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
