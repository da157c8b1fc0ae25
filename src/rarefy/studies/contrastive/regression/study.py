"""Test error of a linear regression head against eps_min (000 Fig. 5)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.regression import charts
from rarefy.studies.contrastive.regression import claims as judged
from rarefy.studies.contrastive.regression.experiment import RegressionExperiment


class ContrastRegression(RegressionExperiment, Study):
    """Test error of a linear head on the learned representation against eps_min."""

    name: ClassVar[str] = "contrast-regression"
    title: ClassVar[str] = "How well a linear head reads the features off the representation"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Fig. 5"
    claims: ClassVar[tuple[str, ...]] = ("C12",)
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "A linear regression head is trained on the representations of 1000 pairs and tested on "
        "5000; its mean squared error falls as the frequency eps_min of the rare features grows "
        "(000 Fig. 5). The paper does not give the target: here it is a random linear function "
        "(a unit vector drawn for each run) of the latent summed over tokens. Nor does it give the "
        "frequencies downstream: if they are those of training, the target's variance grows with "
        "eps_min and pushes the error up. Both readings are measured, beside two controls."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
