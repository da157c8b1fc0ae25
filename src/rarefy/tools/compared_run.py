"""What ``rarefy.train`` and ``rarefy.pretrain_images`` share: where images and store are, and what
they give back."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd

from rarefy.core.contracts import Experiment
from rarefy.core.text import folder_name
from rarefy.sweep.runner import Execution
from rarefy.tools.image_data import with_options


@dataclass(frozen=True, kw_only=True)
class ComparedRun(Execution, ABC):
    """A run that compares trainings in pairs: ``frame`` has the comparison, ``path`` is the store,
    ``dataset`` all that was measured, ``finished`` says whether time was enough."""

    experiment: Experiment

    @classmethod
    def of(cls, experiment: Experiment, execution: Execution, **more: Any) -> Self:
        return cls(**vars(execution), experiment=experiment, **more)

    @property
    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """The comparison, one row per setting."""

    @property
    def frame(self) -> pd.DataFrame:
        """The same as a table."""
        return pd.DataFrame(self.rows)

    def described(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {
            "store": str(self.path),
            "cells": self.cells,
            "cells_done": self.cells_done,
            "finished": self.finished,
            "rows": self.rows,
        }


def image_source(verb: str, data: str, *words: str, **options: Any) -> tuple[str, Path]:
    """A set or folder with its ``options`` as one text, and the usual store of what is made of it:
    one, however the folder was typed."""
    if Path(data).is_dir():
        data = os.path.normpath(data)
    choices = tuple(options.values())
    usual = folder_name(verb, Path(data).name, *words, source=data, choices=choices)
    return with_options(data, **options), Path("runs") / usual


def given_or_usual(given: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    return {name: usual[name] if value is None else value for name, value in given.items()}
