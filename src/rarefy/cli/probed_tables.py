"""What ``probe`` says: tables for a terminal, and JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import typer

from rarefy.cli.frame import print_
from rarefy.cli.longtail_tables import ACCURACIES, spell_gain
from rarefy.core.tables import Table, make_table

if TYPE_CHECKING:
    from rarefy.tools.longtail.probing import ProbeResult

LEGEND = (
    "per cent of test images, mean over classes (and n seeds); many, medium, few: thirds of the "
    "classes by their images in pre-training (in the set itself where that is another one); "
    "Delta_20: head fifth less tail fifth; control: that of the balanced set of equal size; "
    "spread: std of the thirds; [ ]: 95 % interval of the difference, seed by seed"
)


def print_grouped(found: list[ProbeResult], protocol: str) -> None:
    """A table for each setting, and below it how far methods are from the baseline."""
    from rarefy.tools.longtail.comparing import baseline_among, group_rows, settings_of
    from rarefy.tools.longtail.evaluation import PROTOCOLS
    from rarefy.tools.longtail.readings import READINGS, in_words

    for setting in settings_of(found):
        here = [one for one in found if one.setting == setting]
        lines, below = [], []
        for row in group_rows(here, protocol):
            control, gain = row["control_delta_20"], row["gain"]
            readings = (row[name] for name in READINGS)
            end = ("" if control is None else control, row["n"])
            lines.append([row["method"], row["images"], *readings, *end])
            if gain is not None:
                ends = (gain.low, gain.high) if gain.n > 1 else None
                first = baseline_among(here)
                words = spell_gain(gain.mean, ends, first)
                difference = {"difference": gain.mean, "difference_interval": ends}
                meaning = in_words({"stopped": 0, "pairs": gain.n, **difference}, first)
                below.append(f"{row['method']}: {words}, n = {gain.n}; {meaning}")
        accuracies = dict.fromkeys((*ACCURACIES, "spread", "control"), ".1f")
        columns = {"method": "", "images": "", **accuracies, "n": "d"}
        print_(make_table(columns, lines, f"{protocol}: {PROTOCOLS[protocol]}", setting))
        for line in below:
            typer.echo(line)


def each_table(found: list[ProbeResult], protocol: str) -> Table:
    """A line for each network."""
    from rarefy.tools.longtail.evaluation import PROTOCOLS
    from rarefy.tools.longtail.readings import READINGS

    lines = []
    for one in found:
        accuracies = (100 * getattr(one.told(protocol), name) for name in READINGS)
        lines.append([one.name, one.images, *accuracies, one.quality.strength.get(protocol, "")])
    columns = {"network": "", "images": "", **dict.fromkeys((*ACCURACIES, "spread"), ".1f")}
    return make_table({**columns, "strength": "g"}, lines, f"{protocol}: {PROTOCOLS[protocol]}")


def describe(found: list[ProbeResult], protocols: tuple[str, ...]) -> dict[str, Any]:
    """For JSON."""
    from rarefy.tools.longtail.comparing import baseline_among, paired_differences, settings_of

    differences = []
    for setting in settings_of(found):
        here = [one for one in found if one.setting == setting]
        differences += [
            {
                "setting": setting,
                "protocol": protocol,
                "method": method,
                "baseline": baseline_among(here),
                "n": gain.n,
                **{name: _number(getattr(gain, name)) for name in ("mean", "low", "high")},
            }
            for protocol in protocols
            for method, gain in paired_differences(here, protocol).items()
        ]
    return {
        "networks": [
            {
                "network": one.name,
                "method": one.method,
                "images": one.images,
                "setting": one.setting,
                "seed": one.seed,
                "class_order": one.order,
                **{
                    protocol: _judged(one, protocol)
                    for protocol in protocols
                    if protocol in one.quality.accuracy
                },
                "notes": list(one.quality.notes),
            }
            for one in found
        ],
        "differences": differences,
    }


def _judged(one: ProbeResult, protocol: str) -> dict[str, Any]:
    from rarefy.tools.longtail.readings import READINGS

    told = one.told(protocol)
    return {
        **{name: _number(100 * getattr(told, name)) for name in READINGS},
        "by_rank": [_number(100 * value) for value in told.by_rank],
        "strength": one.quality.strength.get(protocol),
    }


def _number(value: float) -> float | None:
    """JSON has no word for what is no number."""
    return value if math.isfinite(value) else None
