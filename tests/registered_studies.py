"""Every registered study, and its results at its smallest scale, for tests of the contract."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import xarray as xr

import rarefy
from rarefy.core.contracts import Study
from rarefy.studies import load_studies

STUDIES = load_studies()
every_study = pytest.mark.parametrize("kind", STUDIES.values(), ids=list(STUDIES))


def fresh(kind: type[Study], **options: Any) -> xr.Dataset:
    return rarefy.run(kind, scale="tiny", device="cpu", **options)


@cache
def tiny(kind: type[Study]) -> tuple[Study, xr.Dataset]:
    return kind.at("tiny"), fresh(kind)
