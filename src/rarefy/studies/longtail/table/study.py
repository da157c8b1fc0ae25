"""Linear probes of contrastive features, long-tailed, with pruning and without (000 Table 2)."""

from __future__ import annotations

from typing import Any, ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.longtail import charts, tables
from rarefy.studies.longtail import claims as judged
from rarefy.tools.longtail.experiment import SMALLEST, LongTailPretraining

ALGORITHM_1 = {"cifar10": "pruned:0.5", "cifar100": "pruned:0.7"}
"""What is best on held-out images in ``*-keep-100``; the page says where that is not known yet."""
BRANCHES = "branches:0.1"
MASK_FREE = "branches:1"
MASKS = (BRANCHES, MASK_FREE, "branches:0.3")
"""Two branches with strong masks, without any (the control) and with weaker ones."""
METHODS = {
    "methods": ("simclr", BRANCHES, f"{BRANCHES}+boost", f"{BRANCHES}+harmonise"),
    "methods-further": (
        "simclr",
        BRANCHES,
        "simclr+boost",
        "simclr+harmonise",
        "simclr+schedule",
        f"{BRANCHES}+schedule",
        f"{BRANCHES}+boost+harmonise",
    ),
}
"""Under one protocol, alone and together; the most promising ones first."""
LENGTHS: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("100", 100, MASKS),
    ("500", 500, (MASK_FREE,)),
    ("2000", 2000, (BRANCHES,)),
    ("free-2000", 2000, (MASK_FREE,)),
)
EPOCHS = (100, 500, 1000, 2000)
CONTROLS = {
    "controls": ("simclr", BRANCHES, MASK_FREE, f"{BRANCHES}+noise"),
    "controls-further": (
        "simclr",
        BRANCHES,
        *(f"{BRANCHES}+{word}" for word in ("dropout", "random", "frozen", "both")),
    ),
}
"""What is it about the mask? Beside two branches with masks; the most telling ones first."""
TRIED = ("pruned:0.3", "pruned:0.5", "pruned:0.7", "pruned:0.9", "pruned:0.7+neuron")
"""Readings of Algorithm 1 among which one is chosen, on held-out training images: weights, and
whole filters as its theory has it."""
CURVE = (0.05, 0.1, 0.3, 0.5, 0.7, 0.9)
IMBALANCES = {"cifar10": (1, 10, 50, 100), "cifar100": (10, 50, 100)}
ON_CIFAR: dict[str, Any] = {
    "network": "resnet18",
    "images": ("long-tail",),
    "seeds": 4,
    "compile": True,
    "protocols": ("linear", "long-tail", "few", "knn"),
}


ON_DIGITS: dict[str, Any] = {
    "rho": (20.0,),
    "batch": 128,
    "learning_rate": 0.1,
    "warm_up": 0.1,
    "protocols": ("linear", "knn"),
    "strengths": (0.1, 0.01, 1e-3, 1e-4),
    "evaluations": 4,
}


PRIMARY_ORDERS = (0, 1, 2, 4, 6, 8)
"""Of P6: a mirrored pair and four orders without their mirror images, five samples."""


def row_scales() -> dict[str, dict[str, Any]]:
    """A scale for each row of the table and each number of epochs (``cifar10-rho100-500``), and
    those that explain the rows."""
    rows = {
        f"{data}-rho{rho}-{epochs}": {
            **ON_CIFAR,
            "data": data,
            # Algorithm 1 where the gain is published largest; it has none there
            "algorithm": ("simclr", *((ALGORITHM_1[data],) if rho == 100 else ()), BRANCHES),
            "rho": (float(rho),),
            "epochs": epochs,
            "warm_up": 10 / epochs,
        }
        for data, imbalances in IMBALANCES.items()
        for rho in imbalances
        for epochs in EPOCHS
    }
    controls = {
        f"{data}-control-500": {
            **rows[f"{data}-rho100-500"],
            "images": ("balanced",),
            "algorithm": ("simclr", BRANCHES),
        }
        for data in IMBALANCES
    }
    decays = {
        # with which SimCLR is published elsewhere: is a gain what too weak a decay leaves?
        f"{data}-decay-500": {
            **rows[f"{data}-rho100-500"],
            "weight_decay": 5e-4,
            "algorithm": ("simclr", BRANCHES, f"{BRANCHES}+boost"),
        }
        for data in IMBALANCES
    }
    asked = {
        f"{data}-{name}-500": {
            **_one_order(rows[f"{data}-rho100-500"], 500),
            "protocols": ON_CIFAR["protocols"],
            "algorithm": methods,
        }
        for data in IMBALANCES
        for name, methods in {**CONTROLS, **METHODS}.items()
    }
    growth = {
        # P8; whatever of it stands in the rows is taken from there
        f"{data}-growth-500": {
            **rows[f"{data}-rho100-500"],
            "algorithm": ("simclr", BRANCHES),
            "rho": (10.0, 100.0),
            "seeds": 1,
        }
        for data in IMBALANCES
    }
    tried = {
        f"{data}-keep-100": {
            **_one_order(rows[f"{data}-rho100-500"], 100),
            "head": "sdclr",  # or some of the held-out images would have been seen
            "algorithm": ("simclr", *TRIED),
        }
        for data in IMBALANCES
    }
    curves = {
        f"{data}-curve-200": {
            **_one_order(rows[f"{data}-rho100-500"], 200),
            "algorithm": (
                "simclr",
                *(f"pruned:{keep:g}" for keep in CURVE),
                *(f"branches:{keep:g}" for keep in CURVE),
            ),
        }
        for data in IMBALANCES
    }
    lengths = {
        # what the length of the training does, cheaper than by the rows themselves
        f"{data}-branches-{name}": {
            **_one_order(rows[f"{data}-rho100-500"], epochs),
            "protocols": ON_CIFAR["protocols"],
            "algorithm": ("simclr", *methods),
        }
        for data in IMBALANCES
        for name, epochs, methods in LENGTHS
    }
    rows["cifar10-rho100-500"] |= {"orders": PRIMARY_ORDERS, "seeds": len(PRIMARY_ORDERS)}
    return {**rows, **controls, **decays, **growth, **asked, **tried, **curves, **lengths}


def digit_scales() -> dict[str, dict[str, Any]]:
    """What the length of the training does, where two cores are enough."""
    return {
        f"digits-branches-{epochs}": {
            **ON_DIGITS,
            "algorithm": ("simclr", "branches:0.3", "branches:0.1", "branches:1"),
            "images": ("long-tail",),
            "epochs": epochs,
            "seeds": 8,
        }
        for epochs in (10, 30, 100, 300, 1000)
    }


def _one_order(row: dict[str, Any], epochs: int) -> dict[str, Any]:
    """The same, shorter, for one order of the classes."""
    shorter = {"epochs": epochs, "warm_up": 10 / epochs, "seeds": 1, "protocols": ("linear", "knn")}
    return {**row, **shorter}


class LongTailTable(LongTailPretraining, Study):
    """Table 2 with what it lacks: several orders of the classes, pairs, the balanced control, and
    two readings of the method kept apart."""

    name: ClassVar[str] = "longtail-table"
    title: ClassVar[str] = "Does pruning help contrastive learning on long-tailed images?"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Remark 2; Table 2; Section 4"
    claims: ClassVar[tuple[str, ...]] = ("P4", "P6", "P8")
    needs: ClassVar[str] = "a CPU for digits; the data set and a GPU for the rows of Table 2"
    paper_says: ClassVar[str] = (
        "000 Table 2 pre-trains on CIFAR10-LT, CIFAR100-LT and ImageNet-LT at several imbalances "
        "rho and fits a linear probe: with pruning accuracy is up to 8 points higher and Delta_20, "
        "the gap between the fifth of the classes with most images and that with fewest, smaller. "
        "Network, epochs, share kept and repeats are not given. Algorithm 1 masks the smallest "
        "neurons in the forward pass of both views and updates all of them (here weights; whole "
        "filters too); the code that the setup follows (Jiang et al. 2021) sends one view through "
        "the dense network and one through the masked one. Both are run here, with the same head, "
        "temperature, weight decay and epochs as plain SimCLR, over several orders of the classes: "
        "with one order Delta_20 mostly says which classes are easy."
    )
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "rho": (4.0, 8.0),
            "algorithm": ("simclr", "branches:0.3"),
            "images": ("long-tail",),
            **SMALLEST,
        },
        "quick": {**ON_DIGITS, "algorithm": ("simclr", "pruned:0.7", "branches:0.3"), "epochs": 30},
        "paper": {
            **ON_CIFAR,
            "data": "cifar10",
            "algorithm": ("simclr", ALGORITHM_1["cifar10"], BRANCHES),
            "rho": (1.0, 10.0, 50.0, 100.0),
            "epochs": 2000,
            "warm_up": 0.005,
            "seeds": 6,
        },
        **row_scales(),
        **digit_scales(),
    }

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = tables.tables
