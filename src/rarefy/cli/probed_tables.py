"""What ``probe`` says: tables for a terminal, and JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import typer

from rarefy.cli.class_tables import print_chosen
from rarefy.cli.frame import print_
from rarefy.cli.longtail_tables import LEGEND, largest_class, methods_table, spell_gain

if TYPE_CHECKING:
    from rarefy.tools.decision import Decision
    from rarefy.tools.longtail.probing import ProbeResult


def print_setting(found: list[ProbeResult], protocols: tuple[str, ...]) -> None:
    """A table for each protocol, and below it how far methods are from the baseline; then what is
    chosen, or else the best, per class."""
    from rarefy.tools.longtail.comparing import (
        baseline_among,
        group_rows,
        groups_of,
        report_on,
    )
    from rarefy.tools.longtail.evaluation import PROTOCOLS
    from rarefy.tools.longtail.readings import BALANCED, LONG_TAIL

    groups = groups_of(found)
    leading = (
        ["method", "images"] if any(images == BALANCED for _, images in groups) else ["method"]
    )
    for protocol in protocols:
        if protocol == LONG_TAIL != protocols[0] and all(one.saw_all for one in found):
            continue  # (the same labels as of linear)
        some = next(iter(groups.values()))
        images = some[0].images
        rows = group_rows(found, protocol)
        last = largest_class(report_on(some, protocol), images=images)
        title = f"{protocol}: {PROTOCOLS[protocol]}"
        print_(methods_table([*rows, last], leading, title, found[0].setting))
        for row in rows:
            if gain := row["gain"]:
                ends = (gain.low, gain.high) if gain.n > 1 else None
                words = spell_gain(gain.mean, ends, baseline_among(found), gain.n)
                typer.echo(f"{row['method']}: {words}")
    typer.echo(LEGEND)
    judged = {
        method: report_on(some, protocols[0])
        for (method, images), some in groups.items()
        if images != BALANCED
    }
    print_chosen(judged, decisions(found, protocols[:1])[protocols[0]].choice)


def decisions(found: list[ProbeResult], protocols: tuple[str, ...]) -> dict[str, Decision]:
    """Of one setting, by protocol."""
    from rarefy.tools.longtail.comparing import decide_probed

    return {protocol: decide_probed(found, protocol) for protocol in protocols}


def last_lines(found: list[ProbeResult], protocols: tuple[str, ...], several: bool) -> list[str]:
    """The sentence by the first protocol, below others that would choose something else."""
    decided = decisions(found, protocols)
    where = f"{found[0].setting or 'others'}: " if several else ""
    first = decided[protocols[0]]
    others = [
        f"note: {where}by {protocol}: {one.sentence}"
        for protocol, one in decided.items()
        if one.choice is not None and first.choice is not None and one.choice != first.choice
    ]
    return [*others, f"{where}{first.sentence}"]


def judged_by(found: list[ProbeResult], protocols: tuple[str, ...]) -> tuple[str, ...]:
    """Protocols that all networks of a setting were judged by."""
    return tuple(
        protocol
        for protocol in protocols
        if all(protocol in one.quality.confusion for one in found)
    )


def describe(found: list[ProbeResult], protocols: tuple[str, ...]) -> dict[str, Any]:
    """For JSON."""
    from rarefy.tools.longtail.comparing import (
        baseline_among,
        groups_of,
        paired_differences,
        report_on,
        settings_of,
    )
    from rarefy.tools.longtail.probing import PIXELS

    differences, decided, judged = [], [], []
    for setting in settings_of(found):
        here = [one for one in found if one.setting == setting]
        asked = judged_by(here, protocols)
        for protocol in asked:
            about = {"setting": setting, "protocol": protocol}
            differences += [
                {
                    **about,
                    "method": method,
                    "baseline": baseline_among(here),
                    "n": gain.n,
                    **{name: _number(getattr(gain, name)) for name in ("mean", "low", "high")},
                }
                for method, gain in paired_differences(here, protocol).items()
            ]
            judged += [
                {**about, "method": method, "images": images, "n": len(some)}
                | report_on(some, protocol).described()
                for (method, images), some in groups_of(here).items()
            ]
        decided += [
            {"setting": setting, "protocol": protocol, **one.described()}
            for protocol, one in decisions(here, asked).items()
        ]
    first = [one for one in decided if one["protocol"] == protocols[0]]
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
                    protocol: {
                        **report_on([one], protocol).described(),
                        "strength": one.quality.strength.get(protocol),
                    }
                    for protocol in protocols
                    if protocol in one.quality.confusion
                },
                "notes": list(one.quality.notes),
            }
            for one in found
            if one.method != PIXELS
        ],
        "differences": differences,
        "judged": judged,
        "decisions": decided,
        "decision": first[-1] if first else None,
    }


def _number(value: float) -> float | None:
    """JSON has no word for what is no number."""
    return value if math.isfinite(value) else None
