"""Tables of ``pretrain`` and ``probe`` for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr
    from rich.table import Table


def _per_cent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def quality_table(study: Any, results: xr.Dataset) -> Table:
    """Head, tail, Delta_20 and the control of every method, by the first protocol; others' overall
    accuracy behind."""
    from rich.table import Table as RichTable

    from rarefy.tools.longtail.readings import BALANCED, first_trained, in_words, readings, rows

    told = study.parameters()
    first, *others = told["protocols"]
    methods = [str(name) for name in results["way"].values]
    baseline = first_trained(methods)
    seen = results["class_count"].sum("rank").max()
    table = RichTable(
        title=f"{told['data']}, {told['network']}, {told['epochs']} epochs, up to {int(seen)} "
        f"images, judged by {first}",
        caption="per cent of test images, mean over classes and n seeds; many, medium, few: thirds "
        "of the classes by their images; Delta_20: head fifth less tail fifth, and of the balanced "
        f"control; \\[ ]: 95 % interval of the difference to {baseline}, seed by seed",
    )
    several = len(told["rho"]) > 1
    heads = (*(("rho",) if several else ()), "images", "method", "all", "many", "medium", "few")
    heads = (*heads, "Delta_20", "of control", *others, f"from {baseline}", "n", "")
    for name in heads:
        table.add_column(name, justify="left" if name in ("", "images", "method") else "right")
    elsewhere = {name: readings(results, name)["overall"].mean("seed") for name in others}
    for row in rows(results, first):
        where = {"images": row["images"], "rho": row["rho"], "way": row["method"]}
        ends = row["difference_interval"]
        gain = "" if row["difference"] is None else f"{row['difference']:+.1f}"
        gain += f" \\[{ends[0]:+.1f}, {ends[1]:+.1f}]" if ends else ""
        control = "" if row["images"] == BALANCED else _per_cent(row["control_delta_20"])
        table.add_row(
            *((f"{row['rho']:g}",) if several else ()),
            row["images"],
            row["method"],
            *(_per_cent(row[name]) for name in ("overall", "many", "medium", "few", "delta_20")),
            control,
            *(_per_cent(_number(elsewhere[name].sel(where))) for name in others),
            gain,
            str(row["n"]),
            in_words(row, baseline),
        )
    return table


def _number(value: Any) -> float | None:
    found = float(value)
    return found if found == found else None


def plain_table(
    title: str, caption: str, heads: Sequence[str], lines: Iterable[Sequence[str]]
) -> Table:
    """Any rows; all but the first column to the right."""
    from rich.table import Table as RichTable

    table = RichTable(title=title, caption=caption)
    for place, name in enumerate(heads):
        table.add_column(name, justify="right" if place else "left")
    for line in lines:
        table.add_row(*line)
    return table
