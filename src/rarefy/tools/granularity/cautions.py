"""When not to lean on an advice: what labels, baselines, controls and subclasses say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

from rarefy.data.hierarchy.made import MADE, MEANINGLESS, WITHIN
from rarefy.tools.decision import FEWEST, spelled
from rarefy.tools.granularity.judged import Judged
from rarefy.tools.granularity.rows import gain, kind
from rarefy.tools.granularity.sets import GIVEN, ONCE

ENOUGH = 1000
"""Images per class, a rule of thumb: splitting classes of about so many (ImageNet-1k) brought Hong
et al. (004, Table 6) nothing, though iNaturalist's given levels gained with a hundred."""
ALIGNED = 0.95
"""Least agreement of labels that lie in the target's classes."""


def about_labels(
    judged: Judged,
    rows: list[dict[str, Any]],
    probe: xr.DataArray,
    by_probe: bool,
    advised: str | None,
    images: int,
) -> list[str]:
    """About the labels and how they were judged."""
    found = []
    fewest = min((it.n for it in judged.gains.values()), default=0)
    if fewest < FEWEST:
        found.append(f"n = {fewest}: fewer than {FEWEST} seeds decide nothing")
    for row in rows:
        if row["stopped"]:
            found.append(f"{row['labels']}: {row['stopped']} trainings stopped, not finite")
        wanted, had = _clusters_asked(row, rows[0]["classes"]), row["classes"]
        if wanted and had is not None and had < wanted:
            found.append(
                f"{row['labels']}: {had:,} labels in place of {wanted:,}, features too alike"
            )
        agreed = row["agreement"]
        if row["labels"] in judged.gains and agreed is not None and agreed < ALIGNED:
            found.append(
                f"{row['labels']} is misaligned: {100 * (1 - agreed):.0f} % of its images lie "
                "outside their label's target class"
            )
    finest = [one for one in judged.gains if kind(one) == GIVEN] or list(judged.gains)
    asked = advised or max(finest, key=lambda one: judged.classes[one], default=None)
    if asked and images and (each := images // judged.classes[asked]) < ENOUGH:
        found.append(
            f"{asked} has about {each:,} images per class: under about {ENOUGH:,} finer labels "
            "may be starved (a rule of thumb)"
        )
    if by_probe:
        found.append("judged by a linear probe alone: fine-tuning can prefer other levels")
    elif len(judged.gains) > 1:
        ours, theirs = (
            max(judged.gains, key=lambda one: gain(by, one).mean) for by in (judged.accuracy, probe)
        )
        if ours != theirs and probe.sel(labels=theirs).notnull().any():
            found.append(f"fine-tuning is best with {ours}, a linear probe with {theirs}")
    return found


def _clusters_asked(row: Mapping[str, Any], target: int | None) -> int:
    """As many labels as a spec asks for; 0: it asks for none."""
    if row["kind"] not in MADE or row["kind"] == "samples" or target is None:
        return 0
    return int(row["labels"].partition(":")[2]) * (target if row["kind"] in WITHIN else 1)


def about_baselines(judged: Judged, results: xr.Dataset, advised: str | None) -> list[str]:
    """What baselines, controls and subclasses say."""
    found, names = [], [str(one) for one in results["labels"].values]
    level = advised or judged.best
    worst = gain(100 * results["worst_subclass"], level)
    if judged.gains[level].mean > 0 and worst.n >= FEWEST and worst.high < 0:
        found.append(f"with {level} the worst subclass loses: {spelled(worst)}")
    once = gain(judged.accuracy, ONCE) if ONCE in names else None
    if once is not None and once.n >= FEWEST and once.low > 0:
        found.append(f"one pass on the target is better than re-training: {spelled(once)}")
    for control in names if advised else ():
        if kind(control) in MEANINGLESS:
            over = gain(judged.accuracy, level, control)
            if over.n and not over.low > 0:
                found.append(f"{level} is not certainly better than {control}: {spelled(over)}")
    return found
