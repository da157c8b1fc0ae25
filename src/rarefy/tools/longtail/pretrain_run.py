"""What ``rarefy pretrain`` runs and what it gives: rows, tables per class, a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch

from rarefy.core.contracts import Output
from rarefy.measure.class_report import COLUMNS, ClassReport
from rarefy.sweep.one_by_one import spread_epochs
from rarefy.tools.compared_run import ComparedRun
from rarefy.tools.decision import Decision
from rarefy.tools.image_data import on_device
from rarefy.tools.longtail.experiment import SMALLEST, LongTailPretraining, filled
from rarefy.tools.longtail.features_file import chosen_network
from rarefy.tools.longtail.judging import Setting, decide_judged, judged_methods
from rarefy.tools.longtail.kept import kept_networks
from rarefy.tools.longtail.pretraining import PretrainResult, PretrainTask
from rarefy.tools.longtail.readings import LONG_TAIL, readings, rows
from rarefy.train.simclr.method import Method
from rarefy.train.views.views import Views

HELD_OUT = 5000
"""Held-out images whose answers are stored: methods can be compared by them in pairs."""
LOOKS, LOOK_EVERY = 20, 6
"""Looks at the features of a long training, and epochs between two of a short one."""


@dataclass(frozen=True, kw_only=True)
class PretrainImages(LongTailPretraining):
    """Any image set: what ``rarefy pretrain`` runs."""

    name: ClassVar[str] = "pretrain-images"
    version: ClassVar[int] = 3
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
    evaluations: int = LOOKS
    stop: bool = True
    """end a training where over-training is certain; the best network on the way is kept anyway"""

    def trained_share(self) -> float:
        """Of the methods; others take no time to speak of."""
        return sum(Method.parse(one).trained for one in self.algorithm) / len(self.algorithm)

    def watched_epochs(self) -> np.ndarray:
        """A look costs about a quarter of an epoch: so they take less than a twentieth."""
        return spread_epochs(self.epochs, min(self.evaluations, self.epochs // LOOK_EVERY))

    def _task(self, images: str, rho: float, views: Views | None = None) -> PretrainTask:
        return replace(super()._task(images, rho, views), best=True, stop=self.stop)

    def outputs(self) -> tuple[Output, ...]:
        dims = ("protocol", "label", "answer")
        return (
            *super().outputs(),
            Output("confusion", dims, "test images, by label and answer"),
            Output("watched_rank", ("watched_epoch",), "effective rank of held-out features"),
            Output("kept_epoch", (), "the best look by held-out neighbours: its network is kept"),
            Output("stopped_epoch", (), "after which over-training was certain; 0: never"),
            Output("held_out_right", ("held_out",), "held-out images that were classified right"),
            Output("held_out_label", ("held_out",), "their labels; NaN: there are not so many"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        labels = np.arange(self._classes())
        places = np.arange(HELD_OUT)
        return {**super().coordinates(), "label": labels, "answer": labels, "held_out": places}

    def _measured(self, found: PretrainResult) -> dict[str, np.ndarray]:
        classes = self._classes()
        confusion = np.full((len(self.protocols), classes, classes), np.nan)
        if found.quality is not None:
            confusion[:] = [found.quality.confusion[name] for name in self.protocols]
        seen, looks = found.history, len(self.watched_epochs())
        last = self.epochs if seen.loss and seen.nonfinite_step < 0 else np.nan
        right, label = found.held_out(self.protocols[0], HELD_OUT)
        return {
            **super()._measured(found),
            "confusion": confusion,
            "watched_rank": filled(seen.watched.get("effective_rank", ()), looks),
            "kept_epoch": np.array(seen.kept_epoch or last),
            "stopped_epoch": np.array(seen.stopped_epoch),
            "held_out_right": filled(right, HELD_OUT),
            "held_out_label": filled(label, HELD_OUT),
        }


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
    row per class; ``decision`` says what to use, ``choice`` why a method was chosen where it was,
    ``features()`` what its network makes of the images.

    Attributes:
        decision: what to use; ``decision.sentence`` says it and why.
        frame: the comparison, one row per set and method.
        by_class: one row per images, rho, method and class.
        choice: why ``method="auto"`` chose what it did.
        dataset, path, finished: all that was measured, the store, whether time was enough.

    Example:
        >>> found = rarefy.pretrain_images("digits", ["simclr", "pixels"], "lenet", epochs=1,
        ...                                seeds=1, save="nets")
        >>> isinstance(found, rarefy.PretrainRun), len(found.by_class)
        (True, 20)
    """

    choice: str = ""
    networks: Path | None = None
    """The folder in which they are saved."""
    written: dict[str, str] = field(default_factory=dict)
    """Files of one network by what they are: network, features, export."""

    def features(self, device: str = "auto") -> pd.DataFrame:
        """One row per image, as of ``rarefy.features``: of the first seed of the method that the
        decision names, or else of the first that trains. Needs ``save``.

        Arguments:
            device: auto, cpu or cuda.

        Returns:
            A DataFrame.

        Example:
            >>> found = rarefy.pretrain_images("digits", ["simclr", "pixels"], "lenet", epochs=1,
            ...                                seeds=1, save="nets")
            >>> len(found.features())
            1797
        """
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
        kept = [one.described() for one in kept_networks(self.dataset)]
        judged = [
            {"images": images, "rho": rho, "method": method, **one.described()}
            for (images, rho, method), one in self.reports.items()
        ]
        decision = None if self.decision is None else self.decision.described()
        told = {"kept": kept, "choice": self.choice, "judged": judged, "decision": decision}
        return {**super().described(), "written": self.written, **told}
