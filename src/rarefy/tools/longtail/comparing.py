"""Backbones that were judged, beside each other: what belongs together, and methods against the
baseline seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from rarefy.measure.class_report import ClassReport, wilson
from rarefy.measure.statistics import Interval, mean_interval
from rarefy.tools.decision import CANNOT_TELL, FEWEST, Decision
from rarefy.tools.longtail.judging import FLOORS, JudgedSeed, decide_judged, report_of
from rarefy.tools.longtail.probing import ProbeResult
from rarefy.tools.longtail.readings import BALANCED, LONG_TAIL, PERCENT, baseline_of


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


def report_on(probed: Sequence[ProbeResult], protocol: str) -> ClassReport:
    """The judging table of networks of one method, one per seed, or of a single network."""
    seeds = [
        JudgedSeed(one.quality.confusion[protocol], one.parts.order, one.parts.counts)
        for one in probed
    ]
    return report_of(seeds, probed[0].parts.labelled.classes)


def by_class(probed: Sequence[ProbeResult]) -> pd.DataFrame:
    """One row per network, protocol and class: for a spreadsheet."""
    tables = []
    for one in probed:
        for protocol in one.quality.confusion:
            told = {
                "network": one.name,
                "method": one.method,
                "images": one.images,
                "setting": one.setting,
                "class_order": one.order,
                "seed": one.seed,
                "protocol": protocol,
            }
            table = report_on([one], protocol).table
            tables.append(table.assign(**told)[[*told, *table.columns]])
    return pd.concat(tables, ignore_index=True)


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


def groups_of(probed: Sequence[ProbeResult]) -> dict[tuple[str, str], list[ProbeResult]]:
    """Of one setting, by method (or the name of a network that has none) and kind of images; the
    baseline first, what needs no training last."""
    first = baseline_among(probed)
    found: dict[tuple[str, str], list[ProbeResult]] = {}
    for one in probed:
        found.setdefault((one.method or one.name, one.images), []).append(one)

    def place(item: tuple[tuple[str, str], Any]) -> tuple[bool, bool, bool]:
        method, images = item[0]
        return images == BALANCED, method in FLOORS, method != first

    return dict(sorted(found.items(), key=place))


def group_rows(probed: Sequence[ProbeResult], protocol: str) -> list[dict[str, Any]]:
    """One row per setting, method and kind of images (or a network that has no method): means over
    the seeds in per cent, and the difference to the baseline."""
    rows = []
    for setting in settings_of(probed):
        here = [one for one in probed if one.setting == setting]
        gains = paired_differences(here, protocol)
        for (method, images), members in groups_of(here).items():
            report = report_on(members, protocol)
            row = {"setting": setting, "method": method, "images": images, "n": len(members)}
            row |= report.summary.described()
            row["gain"] = gains.get(method) if images == LONG_TAIL else None
            rows.append(row)
    return rows


def decide_probed(probed: Sequence[ProbeResult], protocol: str) -> Decision:
    """Which method to use, of networks of one setting. A single network of each says nothing about
    how they were trained; what it says about the test images is told as a hint."""
    own = [one for one in probed if one.images != BALANCED]
    groups = {method: some for (method, _), some in groups_of(own).items()}
    judged = {name: report_on(some, protocol) for name, some in groups.items()}
    named = [one.method not in (*FLOORS, "") for one in probed]
    if any(named):
        seeds = sorted({one.seed for some in groups.values() for one in some})
        scores = {method: np.full(len(seeds), np.nan) for method in groups}
        for method, some in groups.items():
            for one in some:
                told = PERCENT * one.told(protocol).overall
                scores[method][seeds.index(one.seed)] = told
        return decide_judged(scores, judged, f"balanced accuracy ({protocol})")
    return _of_single_networks(judged)


def _of_single_networks(judged: Mapping[str, ClassReport]) -> Decision:
    told = {
        FLOORS.get(name, name): (one.summary.accuracy, int(one.table["n"].sum()))
        for name, one in sorted(judged.items(), key=lambda item: -item[1].summary.accuracy)
    }
    names = list(told)[:2]
    if len(names) < 2:
        return Decision(CANNOT_TELL, None, f"cannot tell: nothing is compared with {names[0]}")
    words = []
    for name in names:
        accuracy, n = told[name]
        low, high = (PERCENT * end for end in wilson(accuracy / PERCENT, n))
        words.append(f"{name} is right on {accuracy:.1f} % [{low:.1f}, {high:.1f}]")
    return Decision(
        CANNOT_TELL,
        None,
        f"cannot tell {names[0]} from {names[1]}: one network each decides nothing, {FEWEST} of "
        f"each from other seeds would; of these {told[names[0]][1]} test images {', '.join(words)}",
        FEWEST - 1,
    )
