"""The initial sets, small enough for tests."""

from __future__ import annotations

from typing import Any

import xarray as xr

import rarefy
from rarefy.studies.contrastive.init.study import ContrastInit


def made(**parameters: Any) -> ContrastInit:
    study = ContrastInit.at("tiny", **parameters)
    assert isinstance(study, ContrastInit)
    return study


def counted(parameters: dict[str, Any]) -> tuple[ContrastInit, xr.Dataset]:
    """A study and what it gives."""
    return made(**parameters), rarefy.run("contrast-init", scale="tiny", device="cpu", **parameters)
