"""Tables of ``pretrain`` and ``probe`` for a terminal: whole in 80 columns, as files and pipes
have. Differences stand below in words, where there is room for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

    from rarefy.core.tables import Table

LEFT = ("images", "method", "network")
"""Columns of words, which may be folded; numbers never are."""


def per_cent(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.1f}"


def gain_in_words(mean: float, ends: Sequence[float] | None, baseline: str) -> str:
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
    heads = (*(("rho",) if several else ()), "images", "method", "all", "many", "medium", "few")
    few = f"{told['shots']} labels"  # (few is a third of the classes already)
    behind = [few if name == "few" else name for name in others]
    heads = (*heads, "Delta_20", "control", *behind, "n")
    elsewhere = {name: readings(results, name)["overall"].mean("seed") for name in others}
    lines = []
    for row in rows(results, first):
        where = {"images": row["images"], "rho": row["rho"], "algorithm": row["method"]}
        lines.append(
            [
                *((f"{row['rho']:g}",) if several else ()),
                row["images"],
                row["method"],
                *(per_cent(row[name]) for name in ("overall", "many", "medium", "few", "delta_20")),
                "" if row["images"] == BALANCED else per_cent(row["control_delta_20"]),
                *(per_cent(float(elsewhere[name].sel(where))) for name in others),
                str(row["n"]),
            ]
        )
    return plain_table(title, caption, heads, lines)


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
            gain = gain_in_words(row["difference"], row["difference_interval"], baseline)
            words.append(gain)
        words += [text for text in (in_words(row, baseline),) if text]
        if (row["rho"], row["images"], row["method"]) in past:
            words.append(past[row["rho"], row["images"], row["method"]].words())
        if words:
            found.append(f"{rho}{row['images']}, {row['method']}: {'; '.join(words)}")
    if any("[" in line for line in found):
        found.append("[ ]: 95 % interval of the difference, seed by seed")
    return found


def plain_table(
    title: str, caption: str, heads: Sequence[str], lines: Iterable[Sequence[str]]
) -> Table:
    """Any rows; words to the left, numbers to the right."""
    from rich import box

    from rarefy.core.tables import Table

    table = Table(
        title=title,
        caption=caption,
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for name in heads:
        words = name in LEFT
        table.add_column(
            name,
            justify="left" if words else "right",
            overflow="fold",
            no_wrap=not words,
        )
    for line in lines:
        table.add_row(*line)
    return table
