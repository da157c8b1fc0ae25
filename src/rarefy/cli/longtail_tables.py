"""Tables of ``pretrain`` and ``probe`` for a terminal: whole in 80 columns, as files and pipes
have. Differences stand below in words, where there is room for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rarefy.core.tables import Table, make_table

if TYPE_CHECKING:
    import xarray as xr

ACCURACIES = ("all", "many", "medium", "few", "Delta_20")


def spell_gain(mean: float, ends: Sequence[float] | None, baseline: str) -> str:
    """``-0.8 [-4.3, +2.7] from simclr``"""
    interval = "" if ends is None else f" [{ends[0]:+.1f}, {ends[1]:+.1f}]"
    return f"{mean:+.1f}{interval} from {baseline}"


def quality_table(study: Any, results: xr.Dataset) -> Table:
    """Head, tail, Delta_20 and the control of every method, by the first protocol; others' overall
    accuracy behind."""
    from rarefy.tools.longtail.readings import BALANCED, readings, rows

    told = study.parameters()
    first, *others = told["protocols"]
    seen = results["class_count"].sum("rank").max()
    title = (
        f"{told['data']}, {told['network']}, {told['epochs']} epochs, up to {int(seen)} images, "
        f"judged by {first}"
    )
    caption = (
        "per cent of test images, mean over classes and n seeds; many, medium, few: thirds of the "
        "classes by their images; Delta_20: head fifth less tail fifth; control: that of "
        "the balanced set"
    )
    several = len(told["rho"]) > 1
    elsewhere = {name: readings(results, name)["overall"].mean("seed") for name in others}
    lines = [
        [
            *((row["rho"],) if several else ()),
            *(row[name] for name in ("images", "method")),
            *(row[name] for name in ("overall", "many", "medium", "few", "delta_20")),
            "" if row["images"] == BALANCED else row["control_delta_20"],
            *(
                float(each.sel(images=row["images"], rho=row["rho"], algorithm=row["method"]))
                for each in elsewhere.values()
            ),
            row["n"],
        ]
        for row in rows(results, first)
    ]
    few = f"{told['shots']} labels"  # (few is a third of the classes already)
    accuracies = (*ACCURACIES, "control", *(few if name == "few" else name for name in others))
    columns = {**({"rho": "g"} if several else {}), "images": "", "method": ""}
    columns |= {**dict.fromkeys(accuracies, ".1f"), "n": "d"}
    return make_table(columns, lines, title, caption)


def differences(study: Any, results: xr.Dataset) -> list[str]:
    """A line for every method that is compared, was stopped, or trained longer than good, and what
    its difference means."""
    from rarefy.tools.longtail.overtraining import courses
    from rarefy.tools.longtail.readings import baseline_of, in_words, rows

    told = study.parameters()
    baseline = baseline_of([str(name) for name in results["algorithm"].values])
    past = {(one.rho, one.images, one.method): one for one in courses(results) if one.certain}
    found = []
    for row in rows(results, told["protocols"][0]):
        rho = f"rho {row['rho']:g}, " if len(told["rho"]) > 1 else ""
        words = []
        if row["difference"] is not None:
            words.append(spell_gain(row["difference"], row["difference_interval"], baseline))
        words.append(in_words(row, baseline))
        if course := past.get((row["rho"], row["images"], row["method"])):
            words.append(course.words())
        if words := list(filter(None, words)):
            found.append(f"{rho}{row['images']}, {row['method']}: {'; '.join(words)}")
    if any("[" in line for line in found):
        found.append("[ ]: 95 % interval of the difference, seed by seed")
    return found
