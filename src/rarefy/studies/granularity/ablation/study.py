"""What the result needs (004 App. B.2, remark 3), and what coarse fine-tuning leaves (App. G.4)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.granularity.ablation import charts, tables
from rarefy.studies.granularity.ablation import claims as judged
from rarefy.studies.granularity.ablation.experiment import AblationExperiment


class GranularityAblation(AblationExperiment, Study):
    """Other learners beside the standard one, and its fine-tuning on the coarse question."""

    name: ClassVar[str] = "granularity-ablation"
    title: ClassVar[str] = "What the gain of fine labels needs, and whether fine-tuning keeps it"
    papers: ClassVar[tuple[str, ...]] = ("004",)
    shows: ClassVar[str] = "App. B.2 remark 3; App. G.4"
    claims: ClassVar[tuple[str, ...]] = ("G13", "G14")
    needs: ClassVar[str] = "a CPU; a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "The bias keeps noise patches from adding up: without the ReLU no weights reach a small "
        "error, because the noise of many patches outweighs the few features, P sigma >= "
        "polylog(d). It must follow each neuron's own movement (18): a hard-coded rate that suits "
        "the quickly growing detectors of common features would silence the slower ones of "
        "subclasses (004 App. B.2, remark 3; the paper shows no experiment). At finite d the "
        "factor 1/log^5(d) of (18) makes biases all but stand still, so larger rates are run "
        "too. Fine-tuning a fine network on the coarse question, by the maxima over each side's "
        "outputs, can only strengthen its response to features (App. G.4, eq. 234)."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = tables.tables
