"""Tables of ``pretrain`` and ``probe`` for a terminal: whole in 80 columns, as files and pipes
have. Differences stand below in words, where there is room for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rarefy.core.tables import Table, make_table

if TYPE_CHECKING:
    import xarray as xr

    from rarefy.measure.class_report import ClassReport
    from rarefy.tools.longtail.pretrain_run import PretrainRun

READ = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced",
    "macro_f1": "F1",
    **{name: name for name in ("head", "middle", "tail")},
    "worst_recall": "worst",
}
"""Columns of a table of methods, by their names in rows."""
LEGEND = (
    "per cent of test images, means over n seeds; balanced: mean recall of all classes; F1: macro; "
    "head, middle, tail: thirds of the classes by their training images; worst: class with the "
    "lowest recall; largest class: always that answer"
)


def methods_table(
    rows: Iterable[Mapping[str, Any]], first: Sequence[str], title: str, caption: str = LEGEND
) -> Table:
    """One row per method; ``first``: names of its leading columns; ``elsewhere`` in a row has
    further ones (other protocols)."""
    listed = list(rows)
    behind = list(dict.fromkeys(name for row in listed for name in row.get("elsewhere", {})))
    columns = {**dict.fromkeys(first, ""), **dict.fromkeys(READ.values(), ".1f")}
    columns |= {**dict.fromkeys(behind, ".1f"), "n": "d"}
    lines = [
        [
            *(row[name] for name in first),
            *(row.get(name) for name in READ),
            *(row.get("elsewhere", {}).get(name) for name in behind),
            row["n"],
        ]
        for row in listed
    ]
    return make_table(columns, lines, title, caption)


def largest_class(report: ClassReport, **leading: Any) -> dict[str, Any]:
    """The row of always answering the class with most training images."""
    from rarefy.tools.longtail.judging import guessing

    found = {"accuracy": report.summary.majority_accuracy, "balanced_accuracy": guessing(report)}
    return {**leading, "method": "largest class", **found, "worst_recall": 0.0, "n": "-"}


def spell_gain(mean: float, ends: Sequence[float] | None, baseline: str, n: int) -> str:
    """``-0.8 [-4.3, +2.7] from simclr, n = 5``"""
    interval = "" if ends is None else f" [{ends[0]:+.1f}, {ends[1]:+.1f}]"
    return f"{mean:+.1f}{interval} from {baseline}, n = {n}"


def quality_table(run: PretrainRun) -> Table:
    """What every method is worth by the first protocol; others' balanced accuracy behind."""
    from rarefy.tools.longtail.readings import LONG_TAIL, readings

    told, results = run.experiment.parameters(), run.dataset
    seen = int(results["class_count"].sum("rank").max())
    title = (
        f"{told['data']}, {told['network']}, {told['epochs']} epochs, up to {seen} images, "
        f"judged by {run.protocol}"
    )
    few = f"{told['shots']} labels"
    elsewhere = {
        few if name == "few" else name: readings(results, name)["overall"].mean("seed")
        for name in told["protocols"][1:]
    }
    rows = [
        {
            **row,
            "elsewhere": {
                name: float(each.sel(images=row["images"], rho=row["rho"], algorithm=row["method"]))
                for name, each in elsewhere.items()
            },
        }
        for row in run.rows
    ]
    for (images, rho, method), report in run.reports.items():
        if images == LONG_TAIL and method == results["algorithm"].values[0]:
            rows.append(largest_class(report, images=images, rho=rho))
    return methods_table(rows, _leading(told, results), title)


def _leading(told: Mapping[str, Any], results: xr.Dataset) -> list[str]:
    """What differs between rows."""
    found = ["rho"] if len(told["rho"]) > 1 else []
    return [*found, *(["images"] if results.sizes["images"] > 1 else []), "method"]


def differences(study: Any, results: xr.Dataset) -> list[str]:
    """A line for every method that is compared or failed, then which networks were kept."""
    from rarefy.tools.longtail.kept import kept_networks
    from rarefy.tools.longtail.readings import baseline_of, rows

    told = study.parameters()
    baseline = baseline_of([str(name) for name in results["algorithm"].values])
    kept = {(one.rho, one.images, one.method): one for one in kept_networks(results)}
    found, best = [], []
    for row in rows(results, told["protocols"][0]):
        rho = f"rho {row['rho']:g}, " if len(told["rho"]) > 1 else ""
        images = f"{row['images']}, " if results.sizes["images"] > 1 else ""
        words = []
        if row["difference"] is not None:
            ends = row["difference_interval"]
            words.append(spell_gain(row["difference"], ends, baseline, row["pairs"]))
        if row["stopped"]:
            words.append(f"{row['stopped']} stopped: not finite")
        if words:
            found.append(f"{rho}{images}{row['method']}: {'; '.join(words)}")
        if one := kept.get((row["rho"], row["images"], row["method"])):
            best.append(f"{rho}{images}{row['method']}: {one.words()}")
    if any("[" in line for line in found):
        found.append("[ ]: 95 % interval of the difference, seed by seed")
    return found + best
