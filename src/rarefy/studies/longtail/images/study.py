"""Any image set: several ways to pre-train beside each other (``rarefy pretrain``)."""

from __future__ import annotations

from typing import ClassVar

import xarray as xr

from rarefy.core.contracts import Study, Verdict
from rarefy.studies.longtail import charts, tables
from rarefy.tools.longtail.pretrain_run import PretrainImages


class PretrainImagesStudy(PretrainImages, Study):
    """What ``rarefy pretrain`` runs. It judges no claim: answers are about the papers' data, the
    tool's own sentence about the user's."""

    name: ClassVar[str] = "pretrain-images"
    title: ClassVar[str] = "Your own images: features learnt without labels, head and tail"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Remark 2; Table 2"
    claims: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[str] = "a CPU for digits; the data set and a GPU for the rows of Table 2"
    paper_says: ClassVar[str] = (
        "Liao et al., Sec. 4, find that pruning while a contrastive loss is trained gives features "
        "that serve a linear probe better when images are long-tailed. This study asks it of any "
        "set: "
        "rarefy pretrain DATA --rho 20 --method simclr,branches:0.1 runs it. The same seed means "
        "the same first weights, the same images and the same views for all methods. Of each "
        "training the best network on the way is kept, by held-out training images."
    )

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        return []

    picture = charts.pictures
    tables = tables.tables
