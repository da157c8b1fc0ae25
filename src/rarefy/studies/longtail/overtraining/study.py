"""What happens inside SimCLR when it is trained too long on few, long-tailed images."""

from __future__ import annotations

from typing import Any, ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.longtail.overtraining import charts
from rarefy.studies.longtail.overtraining import claims as judged
from rarefy.studies.longtail.overtraining.claims import CONTROLS, FREE, MASKED, SIMCLR
from rarefy.studies.longtail.overtraining.experiment import OvertrainingExperiment
from rarefy.studies.longtail.table.study import ON_CIFAR, ON_DIGITS
from rarefy.tools.longtail.experiment import SMALLEST

ON_LONG_TAIL: dict[str, Any] = {
    **ON_CIFAR,
    "data": "cifar10",
    "algorithm": (SIMCLR, MASKED, FREE),
    "rho": (100.0,),
    "protocols": ("linear", "long-tail", "knn"),
    "evaluations": 20,
    "seeds": 5,
}
SMALL: dict[str, Any] = {**ON_LONG_TAIL, "head": "1250", "epochs": 1000, "warm_up": 0.01}
"""A quarter of the images (3,101): trained too long sooner, and cheaply."""
FEW: dict[str, Any] = {
    **ON_DIGITS,
    "network": "lenet",
    "algorithm": (SIMCLR, MASKED, FREE, CONTROLS[0]),
    "images": ("long-tail",),
    "rho": (10.0,),
    "head": "40",
    "batch": 64,
    "epochs": 2000,
    "warm_up": 0.05,
    "evaluations": 20,
    "seeds": 5,
}
"""160 digits and a small network: what two cores can train too long. (The size was chosen by two
trainings of SimCLR alone, in which its images were learnt by heart.)"""
WHOLE: dict[str, Any] = {**ON_LONG_TAIL, "epochs": 2000, "warm_up": 0.005}


class LongTailOvertraining(OvertrainingExperiment, Study):
    """SimCLR, two branches with masks and two without, looked at from the first epochs to long
    after the best one."""

    name: ClassVar[str] = "longtail-overtraining"
    title: ClassVar[str] = "What happens inside SimCLR when it is trained too long?"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "our own questions on Table 2"
    claims: ClassVar[tuple[str, ...]] = ("Q5", "Q6", "Q7")
    needs: ClassVar[str] = "a CPU for digits; CIFAR-10 and a GPU for the rest"
    paper_says: ClassVar[str] = (
        "000 Table 2 reports that pruning raises the linear probe's accuracy on long-tailed images "
        "by up to 8 points. Here much of such a gain is what SimCLR loses when it is trained for "
        "long on few images, and a masked branch keeps. This study asks what is lost: at every "
        "look, on images that no training saw, how much of the features is class (neighbours, "
        "variance between classes), how much is the single image (is the nearest view of a view "
        "one of the same image, and more often so for images that were trained on?), how much is "
        "the view (can its crop and colours be read?), and along how many directions they vary."
    )
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            **SMALLEST,
            "rho": (8.0,),
            "algorithm": (SIMCLR, MASKED, FREE, *CONTROLS[:3]),
            "images": ("long-tail",),
            "evaluations": 2,
        },
        "quick": {
            **ON_DIGITS,
            "algorithm": (SIMCLR, MASKED, FREE),
            "images": ("long-tail",),
            "epochs": 40,
            "seeds": 3,
            "evaluations": 5,
        },
        "paper": WHOLE,
        "digits-2000": FEW,
        "small-1000": SMALL,
        "small-decay-1000": {**SMALL, "weight_decay": 5e-4, "algorithm": (SIMCLR, MASKED)},
        "small-controls-1000": {**SMALL, "algorithm": (SIMCLR, MASKED, *CONTROLS), "seeds": 1},
        "cifar10-2000": {**WHOLE, "seeds": 1},
    }

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.all_tables
