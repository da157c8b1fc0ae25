"""What ``rarefy.train`` gives: networks compared, judged per class, and a sentence at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from rarefy.core.tables import Table, make_table
from rarefy.measure.class_report import GROUPS
from rarefy.tools.compared_run import ComparedRun
from rarefy.tools.comparison import comparison
from rarefy.tools.decision import Decision
from rarefy.tools.judged_classes import (
    DENSE,
    PIXELS,
    Judged,
    baselines,
    class_frame,
    decision,
    first_level,
    name_of,
    warnings_of,
)

ALL_SHOWN, WORST = 12, 10
"""Classes that a terminal shows all of; of more, the worst."""
UNEVEN = 2
"""Head over tail from which they are shown."""


@dataclass(frozen=True, kw_only=True)
class TrainRun(ComparedRun):
    """Per noise level and share kept: shares in per cent and the difference of balanced accuracy
    from the dense network, seed by seed, with its 95 % interval; ``classes`` has the judging table
    per class, ``decision`` what to use, ``choice`` why a keep was chosen where it was.

    Attributes:
        decision: what to use; ``decision.sentence`` says it and why.
        classes: one row per network and class.
        frame: the comparison, one row per setting.
        warnings: when not to lean on the numbers.
        dataset, path, finished: all that was measured, the store, whether time was enough.

    Example:
        >>> found = rarefy.train("digits", keep=0.3, network="cnn-small", epochs=1, seeds=1,
        ...                      samples=200, test_samples=100)
        >>> isinstance(found, rarefy.TrainRun), found.finished
        (True, True)
        >>> found.dataset["confusion"].sizes["true_class"]
        10
    """

    choice: str = ""

    @property
    def rows(self) -> list[dict[str, Any]]:
        return list(comparison(self.dataset))

    @property
    def classes(self) -> pd.DataFrame:
        """One row per network and class: ``rarefy.measure.class_report.COLUMNS``."""
        return class_frame(self.dataset)

    @property
    def decision(self) -> Decision:
        """``sentence`` says what to use and why, or why that cannot be told."""
        return decision(self.dataset)

    @property
    def warnings(self) -> list[str]:
        """When not to lean on the numbers."""
        return warnings_of(self._shown)

    @property
    def _shown(self) -> list[Judged]:
        return first_level(self.dataset) if self.cells_done else []

    def described(self) -> dict[str, Any]:
        classes = self.classes.astype(object)
        return {
            **super().described(),
            "classes": classes.where(classes.notna(), None).to_dict("records"),
            "baselines": baselines(self.dataset) if self._shown else {},
            "warnings": self.warnings,
            "choice": self.choice,
            "decision": self.decision.described(),
        }

    def tables(self) -> list[Table]:
        """For a terminal: the networks, then their classes, rarest first."""
        return [self._networks(), self._classes()] if self._shown else []

    def _networks(self) -> Table:
        told, rows = self.experiment.parameters(), self.rows
        noisy = any(row["noise"] or row["test_noise"] for row in rows)
        columns = {"network": "", **({"noise": "g", "test noise": "g"} if noisy else {})}
        columns |= {"balanced": ".1f", "from dense": "s", "accuracy": ".1f"}
        columns |= {"F1": ".1f", "worst class": "", "n": "d"}
        gap = (None, None) if noisy else ()
        lines = [
            (
                name.replace(" answering", "").replace(PIXELS, "pixels alone"),
                *gap,
                one["balanced_accuracy"],
                "",
                one["accuracy"],
                None,
                "",
                None,
            )
            for name, one in baselines(self.dataset).items()
        ]
        lines += [_line(row, noisy) for row in rows]
        return make_table(
            columns,
            lines,
            f"{told['data']}, {told['network']}, {told['epochs']} epochs, "
            f"pruned by {told['granularity']} ({told['update'][0]}, every {told['every']})",
            "per cent, means over n seeds; balanced: mean recall of the classes; F1: their mean; "
            "from dense: of balanced accuracy in points, seed by seed, with its 95 % interval; "
            "pixels alone: a logistic regression",
        )

    def _classes(self) -> Table:
        networks = self._shown
        pruned = [one for one in networks if one.name != DENSE]
        best = max(pruned, key=lambda one: one.report.summary.balanced_accuracy, default=None)
        compared = [one for one in networks if one.name == DENSE or one is best]
        tables = [one.report.table.set_index("class") for one in compared]
        columns = {"class": "", "train": ",d", "test": ",d"}
        for one in compared:
            columns |= {f"{one.name}: recall": "s", f"precision{' ' * len(columns)}": ".0f"}
        first = tables[0]
        names = first.index[::-1].tolist()
        if len(names) > ALL_SHOWN:
            names = first["recall"].sort_values(kind="stable").index[:WORST].tolist()
        lines: list[tuple[Any, ...]] = [
            (
                name,
                first["train"][name],
                first["n"][name],
                *(cell for table in tables for cell in _recall(table.loc[name])),
            )
            for name in names
        ]
        for group in reversed(GROUPS):
            means = [getattr(one.report.summary, group) for one in compared]
            if means[0] is not None and first["train"].max() >= UNEVEN * first["train"].min():
                cells = (cell for mean in means for cell in (f"{mean:.0f}" + " " * 10, None))
                lines.append((f"({group})", None, None, *cells))
        of = "rarest first" if names[0] == first.index[-1] else f"the {WORST} worst of {len(first)}"
        return make_table(
            columns,
            lines,
            f"Classes, {of}",
            "images in training and test; per cent with 95 % intervals for so many test images",
        )


def _line(row: dict[str, Any], noisy: bool) -> tuple[Any, ...]:
    gain, ends = row["difference"], row["difference_interval"]
    words = "" if gain is None else f"{gain:+.1f}"
    words += f" [{ends[0]:+.1f}, {ends[1]:+.1f}]" if ends else ""
    if row["stopped"]:
        words = f"{row['stopped']} stopped: not finite"
    worst = "" if row["worst_class"] is None else f"{row['worst_class']} {row['worst_recall']:.0f}"
    return (
        name_of(row["keep"]),
        *((row["noise"], row["test_noise"]) if noisy else ()),
        row["balanced_accuracy"],
        words,
        row["test_accuracy"],
        row["macro_f1"],
        worst,
        row["n"],
    )


def _recall(row: pd.Series) -> tuple[Any, ...]:
    if not row["n"]:
        return "-", row["precision"]
    ends = f"[{row['recall_low']:.0f}, {row['recall_high']:.0f}]"
    return f"{row['recall']:.0f} {ends:>9}", row["precision"]
