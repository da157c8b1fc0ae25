"""S8 asked of one's own images: every pruned network beside its dense one."""

from __future__ import annotations

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import judge_difference
from rarefy.studies.sparse.readings import AXES, at_test_noise, readings, setting_of
from rarefy.tools.sparse_experiment import SparseTraining


def verdicts(experiment: SparseTraining, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    levels = results["test_noise"].values.tolist()
    for words, part in readings(results, AXES):
        for level in levels:
            paired = at_test_noise(part, level)
            for keep in paired.thinned:
                named = [words, f"keep {keep:g}", f"test noise {level:g}" if levels[1:] else ""]
                setting = setting_of(
                    experiment, ", ".join(filter(None, named)), "better than dense"
                )
                found.append(
                    judge_difference(
                        ("S8", experiment.name, scale, setting),
                        paired.difference(keep)[:, 0],
                        "positive",
                        note="points of test accuracy",
                    )
                )
    return found
