"""What ``rarefy pretrain`` runs and what it gives: rows, tables per class, a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch

from rarefy.core.contracts import Output
from rarefy.measure.class_report import COLUMNS, ClassReport
from rarefy.tools.compared_run import ComparedRun
from rarefy.tools.decision import Decision
from rarefy.tools.image_data import on_device
from rarefy.tools.longtail.experiment import SMALLEST, LongTailPretraining
from rarefy.tools.longtail.features_file import chosen_network
from rarefy.tools.longtail.judging import Setting, decide_judged, judged_methods
from rarefy.tools.longtail.overtraining import courses
from rarefy.tools.longtail.pretraining import PretrainResult
from rarefy.tools.longtail.readings import LONG_TAIL, readings, rows
from rarefy.train.simclr.method import Method


@dataclass(frozen=True, kw_only=True)
class PretrainImages(LongTailPretraining):
    """Any image set: what ``rarefy pretrain`` runs."""

    name: ClassVar[str] = "pretrain-images"
    version: ClassVar[int] = 2
    title: ClassVar[str] = "Your own images: features learnt without labels, head and tail"
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "rho": (4.0,),
            "algorithm": ("simclr", "branches:0.1", "pixels"),
            "images": ("long-tail",),
            **SMALLEST,
        },
        "quick": {},
        "paper": {"seeds": 10, "epochs": 200},
    }

    algorithm: tuple[str, ...] = ("simclr", "branches:0.1")
    rho: tuple[float, ...] = (20.0,)
    epochs: int = 40
    batch: int = 128
    learning_rate: float = 0.1
    warm_up: float = 0.1
    evaluations: int = 4

    def trained_share(self) -> float:
        """Of the methods; others take no time to speak of."""
        return sum(Method.parse(one).trained for one in self.algorithm) / len(self.algorithm)

    def outputs(self) -> tuple[Output, ...]:
        dims = ("protocol", "label", "answer")
        return (*super().outputs(), Output("confusion", dims, "test images, by label and answer"))

    def coordinates(self) -> dict[str, np.ndarray]:
        labels = np.arange(self._classes())
        return {**super().coordinates(), "label": labels, "answer": labels}

    def _measured(self, found: PretrainResult) -> dict[str, np.ndarray]:
        classes = self._classes()
        confusion = np.full((len(self.protocols), classes, classes), np.nan)
        if found.quality is not None:
            confusion[:] = [found.quality.confusion[name] for name in self.protocols]
        return {**super()._measured(found), "confusion": confusion}


SPELLED = {
    "overall": "balanced_accuracy",
    "overall_interval": "balanced_accuracy_interval",
    **{"many": "head", "medium": "middle", "few": "tail"},
}
"""As all judging tables spell it."""


@dataclass(frozen=True, kw_only=True)
class PretrainRun(ComparedRun):
    """What ``rarefy.pretrain_images`` gives: ``rows`` has a row per set and method, accuracies in
    per cent by the first protocol and the difference to the baseline, seed by seed; ``by_class`` a
    row per class; ``decision`` says what to use, ``features()`` what its network makes of the
    images."""

    networks: Path | None = None
    """The folder in which they are saved."""
    written: dict[str, str] = field(default_factory=dict)
    """Files of one network by what they are: network, features, export."""

    def features(self, device: str = "auto") -> pd.DataFrame:
        """One row per image, as of ``rarefy.features``: of the first seed of the method that the
        decision names, or else of the first that trains. Needs ``save``."""
        return chosen_network(self, device)[0].table()

    @property
    def protocol(self) -> str:
        """By which methods are compared."""
        return str(self.experiment.parameters()["protocols"][0])

    @property
    def rows(self) -> list[dict[str, Any]]:
        found = []
        for row in rows(self.dataset, self.protocol):
            report = self.reports.get((row["images"], row["rho"], row["method"]))
            judged = {} if report is None else report.summary.described()
            # (of the control head and tail are those of the long tail that it controls)
            own = {SPELLED.get(name, name): value for name, value in row.items()}
            found.append({**judged, **own})
        return found

    @cached_property
    def reports(self) -> dict[Setting, ClassReport]:
        """Per kind of images, rho and method that is through with a seed, by the first protocol."""
        return judged_methods(self.dataset, self.protocol, self._classes())

    @property
    def judged(self) -> dict[str, ClassReport]:
        """By method, on the set itself (of several rho the largest)."""
        largest = max((rho for _, rho, _ in self.reports), default=1.0)
        return {
            method: one
            for (images, rho, method), one in self.reports.items()
            if (images, rho) == (LONG_TAIL, largest)
        }

    @property
    def by_class(self) -> pd.DataFrame:
        """The judging tables below each other, one row per images, rho, method and class."""
        names = ["images", "rho", "method"]
        tables = [
            one.table.assign(**dict(zip(names, where, strict=True)))
            for where, one in self.reports.items()
        ]
        columns = [*names, *COLUMNS]
        whole = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)
        return whole[columns]

    @cached_property
    def decision(self) -> Decision | None:
        """By the first protocol, in the mean over several rho; None without labels."""
        if not self.reports:
            return None
        told = readings(self.dataset, self.protocol)["overall"].sel(images=LONG_TAIL)
        scores = {
            str(one.algorithm.item()): one.mean("rho", skipna=False).values
            for one in told.transpose("algorithm", "rho", "seed")
        }
        several = f", mean over {told.rho.size} rho" if told.rho.size > 1 else ""
        return decide_judged(scores, self.judged, f"balanced accuracy ({self.protocol}{several})")

    def _classes(self) -> Sequence[str]:
        return on_device(self.experiment.parameters()["data"], torch.device("cpu")).classes

    @property
    def trained(self) -> list[str]:
        """The methods that train something."""
        names = map(str, self.dataset["algorithm"].values)
        return [name for name in names if Method.parse(name).trained]

    @property
    def all_stopped(self) -> bool:
        """All that was trained ended with a loss that is no number."""
        ended = self.dataset["nonfinite_step"].sel(algorithm=self.trained)
        return bool(self.trained) and bool((ended >= 0).all())

    def described(self) -> dict[str, Any]:
        past = [one.described() for one in courses(self.dataset) if one.certain]
        judged = [
            {"images": images, "rho": rho, "method": method, **one.described()}
            for (images, rho, method), one in self.reports.items()
        ]
        decision = None if self.decision is None else self.decision.described()
        told = {"past_best": past, "judged": judged, "written": self.written, "decision": decision}
        return {**super().described(), **told}
