"""How all of them train: one recipe for CIFAR, one that two cores can run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rarefy.core.contracts import Study
from rarefy.core.parameters import Count, Whole
from rarefy.tools.granularity.experiment import GranularityExperiment

SMALL: dict[str, Any] = {
    "data": "digits",
    "target": "parity",
    "target_data": "",
    "network": "lenet",
    "epochs": 6,
    "tune_epochs": 4,
    "looks": 2,
    "batch": 64,
    "learning_rate": 0.05,
    "tune_rate": 0.01,
    "shift": 0,
    "flip": False,
    "compile": False,
}
"""On the bundled digits, odd or even: what a CPU can do."""
TINY: dict[str, Any] = {
    **SMALL,
    "seeds": 2,
    "features": "pixels",
    "epochs": 2,
    "tune_epochs": 2,
    "judged": True,
    "batch": 16,
    "samples": 80,
    "test_samples": 100,
}


@dataclass(frozen=True, kw_only=True)
class CifarTransfer(GranularityExperiment, Study):
    """A ResNet-18 on CIFAR-100: 16 epochs of pre-training, 8 of fine-tuning."""

    seeds: Count = 5
    data: str = "cifar100"
    network: str = "resnet18"
    epochs: Count = 16
    tune_epochs: Count = 8
    looks: Count = 4
    compile: bool = True
    batch: Count = 512
    learning_rate: float = 0.4
    tune_rate: float = 0.05
    warm_up: float = 0.2
    shift: Whole = 4
    flip: bool = True
