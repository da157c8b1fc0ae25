"""Verdicts of ``contrast-sensitivity``: C10 under every kind of change."""

from __future__ import annotations

from collections.abc import Iterator

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.studies.contrastive.sensitivity.experiment import KINDS, SensitivityExperiment
from rarefy.studies.contrastive.weakest import judge_weakest
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.reading import Naming


def by_kind(results: xr.Dataset) -> Iterator[tuple[str, list[str]]]:
    """Kinds of change and what was run of each."""
    for kind, changes in KINDS.items():
        if run := [name for name in texts(results, "variation") if name in changes]:
            yield kind, run


def verdicts(experiment: SensitivityExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    read = experiment.reads[-2]
    name, best = Naming(experiment, scale), results["best"].sel(read=read)
    found = []
    for kind, changes in by_kind(results):
        identity = name("C10", f"{kind}: {'; '.join(changes)}; best cosine, step {read}")
        cases = {change: best.sel(variation=change) for change in changes}
        found.append(judge_weakest(identity, cases, "increasing"))
    return found
