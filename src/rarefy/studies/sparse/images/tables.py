"""What to use, and every class of one's own images: what ``rarefy train`` says, on the page."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Table
from rarefy.studies.sparse.keep_curve import tables as kept
from rarefy.tools.judged_classes import baselines, class_frame, decision, judged, name_of
from rarefy.tools.sparse_experiment import SparseTraining


def tables(experiment: SparseTraining, results: xr.Dataset) -> list[Table]:
    found = list(judged(results))
    if not found:
        return []
    return [_networks(results), _classes(results), *kept.tables(experiment, results)]


def _networks(results: xr.Dataset) -> Table:
    rows: list[list[object]] = [
        [name, "", "", f"{one['balanced_accuracy']:.1f}", f"{one['accuracy']:.1f}", "", ""]
        for name, one in baselines(results).items()
    ]
    for one in judged(results):
        told = one.report.summary
        rows.append(
            [
                *(one.name, f"{one.noise:g}", f"{one.test_noise:g}"),
                *(f"{told.balanced_accuracy:.1f}", f"{told.accuracy:.1f}", f"{told.macro_f1:.1f}"),
                f"{told.worst_class} ({told.worst_recall:.0f})",
            ]
        )
    columns = ["network", "noise", "test noise", "balanced accuracy, %", "accuracy, %"]
    caption = decision(results).sentence
    return Table("use", "What to use", caption, [*columns, "macro F1", "worst class"], rows)


def _classes(results: xr.Dataset) -> Table:
    frame = class_frame(results)
    rows: list[list[object]] = [
        [
            *(one["class"], one["group"], one["train"], one["n"], name_of(one["keep"])),
            *(f"{one['noise']:g}", f"{one['test_noise']:g}"),
            _interval(one["recall"], one["recall_low"], one["recall_high"]),
            _interval(one["precision"], one["precision_low"], one["precision_high"]),
        ]
        for one in frame.iloc[::-1].sort_values("train", kind="stable").to_dict("records")
    ]
    columns = ["class", "group", "training images", "test images", "network", "noise", "test noise"]
    caption = (
        "Means over seeds with 95 % intervals for so many test images (Wilson), rarest class first."
    )
    columns += ["recall, %", "precision, %"]
    return Table("classes", "Every class", caption, columns, rows)


def _interval(share: float, low: float, high: float) -> str:
    return "-" if share != share else f"{share:.0f} [{low:.0f}, {high:.0f}]"
