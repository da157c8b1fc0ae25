"""The initial sets, small enough for tests."""

from __future__ import annotations

from typing import Any

import xarray as xr

import rarefy
from rarefy.core.contracts import Verdict
from rarefy.studies import get_study

ContrastInit = get_study("contrast-init")


def made(**parameters: Any) -> ContrastInit:
    study = ContrastInit.at("tiny", **parameters)
    assert isinstance(study, ContrastInit)
    return study


def counted(parameters: dict[str, Any]) -> tuple[ContrastInit, xr.Dataset]:
    """A study and what it gives."""
    return made(**parameters), rarefy.run("contrast-init", scale="tiny", device="cpu", **parameters)


_judged: dict[int, tuple[xr.Dataset, list[Verdict]]] = {}


def judged(study: ContrastInit, results: xr.Dataset) -> list[Verdict]:
    """The verdicts, once for all tests of the same results."""
    if id(results) not in _judged:
        _judged[id(results)] = (results, study.verdicts(results, "tiny"))
    return _judged[id(results)][1]
