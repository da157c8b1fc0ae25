"""Any image set: several ways to pre-train beside each other (``rarefy pretrain``)."""

from __future__ import annotations

from functools import partialmethod
from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.longtail import charts, tables
from rarefy.studies.longtail import claims as judged
from rarefy.tools.longtail.pretrain_run import PretrainImages


class PretrainImagesStudy(PretrainImages, Study):
    """What ``rarefy pretrain`` runs, with the claim of P6 asked of one's own data."""

    name: ClassVar[str] = "pretrain-images"
    title: ClassVar[str] = "Your own images: features learnt without labels, head and tail"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Remark 2; Table 2"
    claims: ClassVar[tuple[str, ...]] = ("P4", "P6")
    needs: ClassVar[str] = "a CPU for digits; the data set and a GPU for the rows of Table 2"
    paper_says: ClassVar[str] = (
        "000 Sec. 4 finds that pruning while a contrastive loss is trained gives features that "
        "serve a linear probe better when images are long-tailed. This study asks it of any set: "
        "`rarefy pretrain DATA --rho 20 --method simclr,branches:0.1` runs it. The same seed means "
        "the same first weights, the same images and the same views for all methods."
    )

    verdicts = partialmethod(judged.verdicts, growth=False)

    picture = charts.pictures
    tables = tables.tables
