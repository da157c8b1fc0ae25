"""What judging and drawing many results needs, all studies too: imported by the process of which
those that do it are forked (``rarefy.cli.showing``), once for all of them."""

from __future__ import annotations

import contextlib

import contourpy  # noqa: F401
import scipy.optimize  # noqa: F401

import rarefy.report.page
import rarefy.studies.api  # noqa: F401
from rarefy.studies import load_studies

with contextlib.suppress(ImportError):  # xarray looks for it
    import dask.array  # noqa: F401

load_studies()
