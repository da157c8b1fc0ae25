"""Backbones that were judged, beside each other: what belongs together, and methods against the
baseline seed by seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from rarefy.measure.statistics import Interval, mean_interval
from rarefy.tools.longtail.probing import ProbeResult
from rarefy.tools.longtail.readings import BALANCED, LONG_TAIL, PERCENT, READINGS, baseline_of


def name_differences(probed: Sequence[ProbeResult]) -> list[ProbeResult]:
    """With a setting that names whatever else differs, so that what was trained differently is
    neither averaged nor compared. What a file does not say (older ones say less) is no difference,
    unless others differ in it among themselves: then nobody knows with whom it belongs."""
    said: dict[str, dict[str, set[str]]] = {}
    for one in probed:
        here = said.setdefault(one.setting, {})
        for name, value in one.conditions:
            here.setdefault(name, set()).add(value)
    found = []
    for one in probed:
        own = dict(one.conditions)
        words = [
            f"{name} {own.get(name, 'not said')}"
            for name, values in said[one.setting].items()
            if len(values) > 1
        ]
        found.append(replace(one, setting=", ".join([one.setting, *words])))
    return found


def by_class(probed: Sequence[ProbeResult]) -> pd.DataFrame:
    """One row per network, protocol and class: for a spreadsheet."""
    rows: list[dict[str, Any]] = []
    for one in probed:
        names = one.parts.labelled.classes
        for protocol, accuracy in one.quality.accuracy.items():
            for rank, value in enumerate(accuracy.tolist()):
                label = one.parts.order[rank]
                rows.append(
                    {
                        "network": one.name,
                        "method": one.method,
                        "images": one.images,
                        "setting": one.setting,
                        "class_order": one.order,
                        "seed": one.seed,
                        "protocol": protocol,
                        "rank": rank + 1,
                        "class": names[label],
                        "images_of_class": one.parts.counts[rank],
                        "accuracy": value,
                    }
                )
    return pd.DataFrame(rows)


def baseline_among(probed: Sequence[ProbeResult]) -> str:
    """The method that others are compared with; empty where none is known."""
    return baseline_of(list(dict.fromkeys(one.method for one in probed if one.method)))


def paired_differences(
    probed: Sequence[ProbeResult], protocol: str, name: str = "overall"
) -> dict[str, Interval]:
    """By method: the difference of a reading to the baseline's, in points, over the settings and
    seeds that both have (long-tailed networks alone)."""
    values: dict[str, dict[tuple[str, int], float]] = {}
    for one in probed:
        if one.method and one.images == LONG_TAIL:
            told = PERCENT * getattr(one.told(protocol), name)
            values.setdefault(one.method, {})[one.setting, one.seed] = told
    plain = values.pop(baseline_among(probed), {})
    found = {}
    for method, theirs in values.items():
        both = sorted(plain.keys() & theirs.keys())
        if both:
            found[method] = mean_interval([theirs[pair] - plain[pair] for pair in both])
    return found


def settings_of(probed: Sequence[ProbeResult]) -> list[str]:
    """All settings, in the order in which they come."""
    return list(dict.fromkeys(one.setting for one in probed))


def group_rows(probed: Sequence[ProbeResult], protocol: str) -> list[dict[str, Any]]:
    """One row per setting, method and kind of images (or a network that has no method): means over
    the seeds in per cent, Delta_20 of the control, and the difference to the baseline."""
    several = settings_of(probed)
    if len(several) > 1:
        return [
            row
            for setting in several
            for row in group_rows([one for one in probed if one.setting == setting], protocol)
        ]
    gains = paired_differences(probed, protocol)
    groups: dict[tuple[str, str], list[ProbeResult]] = {}
    for one in probed:
        groups.setdefault((one.method or one.name, one.images), []).append(one)
    first = baseline_among(probed)
    rows = []
    for (method, images), members in sorted(
        groups.items(), key=lambda item: (item[0][1] != LONG_TAIL, item[0][0] != first)
    ):
        told = [one.told(protocol) for one in members]
        row: dict[str, Any] = {"setting": several[0], "method": method, "images": images}
        row["n"] = len(members)
        row |= {
            name: PERCENT * mean_interval([getattr(one, name) for one in told]).mean
            for name in READINGS
        }
        control = groups.get((method, BALANCED), []) if images == LONG_TAIL else []
        row["control_delta_20"] = (
            PERCENT * mean_interval([one.told(protocol).delta_20 for one in control]).mean
            if control
            else None
        )
        row["gain"] = gains.get(method) if images == LONG_TAIL else None
        rows.append(row)
    return rows
