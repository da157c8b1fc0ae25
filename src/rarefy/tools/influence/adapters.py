"""Scores as cleanlab and FiftyOne have them. Either is imported only where it is asked for."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pandas as pd

from rarefy.core.errors import UsageError, bad_value
from rarefy.tools.samples.messages import no_column

ISSUE = "atypical"
THRESHOLD = 0.05
FIELDS = {"": "influence", "_percentile": "percentile", "_triage": "triage", "_id": "id"}
"""What stands behind the name of a FiftyOne field, and the column that goes there."""


def _need_columns(table: pd.DataFrame, *columns: str) -> None:
    for column in columns:
        if column not in table.columns:
            raise no_column("table", column, [str(name) for name in table.columns], "the table")


# ----------------------------------------------------------------------------------------- cleanlab


def cleanlab_columns(table: pd.DataFrame, threshold: float = THRESHOLD) -> pd.DataFrame:
    """``is_atypical_issue`` and ``atypical_score`` in [0, 1], low for the most atypical, one row
    per sample; ``attrs["summary"]`` has the data set's issue type, score and number of issues.

    The score is 1 - percentile / 100 within the class, and a sample is an issue where it is less
    than the threshold: a threshold of 0.05 flags the most atypical twentieth of every class, in
    any data set. Undefined scores stay NaN and are no issue. The data set's score is the share of
    the classes' variation that samples which are not flagged bring in: near 1 - threshold if
    flagged ones are like the others, far below if a few samples make most of what is seen.
    """
    if not (isinstance(threshold, int | float) and 0 <= threshold <= 1):
        raise bad_value("threshold", threshold, "must be from 0 to 1")
    _need_columns(table, "label", "percentile", "own", "shared")
    score = 1 - table["percentile"].astype(np.float64) / 100
    flagged = (score < threshold).to_numpy()
    columns = pd.DataFrame(
        {f"is_{ISSUE}_issue": flagged, f"{ISSUE}_score": score.to_numpy()}, index=table.index
    )
    columns.attrs["summary"] = {
        "issue_type": ISSUE,
        "score": _typical_share(table, flagged),
        "num_issues": int(flagged.sum()),
    }
    return columns


def _typical_share(table: pd.DataFrame, flagged: np.ndarray) -> float:
    """The mean over classes, by size, of sum (own + shared) of what is not flagged over all of it.
    Both terms of 003 Eq. (10) are never negative; the rest of it is the same for a whole class."""
    brought = (table["own"] + table["shared"]).to_numpy(dtype=np.float64)
    frame = pd.DataFrame({"label": table["label"].to_numpy(), "all": brought})
    frame["typical"] = np.where(flagged, 0.0, brought)
    classes = frame[np.isfinite(brought)].groupby("label", observed=True)
    sums, sizes = classes.agg({"all": "sum", "typical": "sum"}), classes.size()
    useful = sums["all"] > 0
    if not useful.any():
        return 1.0
    shares = (sums["typical"] / sums["all"])[useful]
    return float(np.average(shares, weights=sizes[useful]))


def register_issue_manager() -> type[Any]:
    """Make ``atypical`` an issue type of Datalab, and give its class:

        register_issue_manager()
        lab.find_issues(issue_types={"atypical": {"table": table}})

    with a table that has the samples of ``lab`` in their order.
    """
    try:
        managers = importlib.import_module("cleanlab.datalab.internal.issue_manager")
        factory = importlib.import_module("cleanlab.datalab.internal.issue_manager_factory")
    except ModuleNotFoundError:
        raise UsageError("cleanlab is needed: pip install 'cleanlab[datalab]'") from None
    base: Any = managers.IssueManager

    class AtypicalIssueManager(base):
        """Samples that change their class's covariance most by leaving (003 Eq. (10))."""

        description = "Samples that are unusual within their class; rare ones are often right."
        issue_name = ISSUE
        verbosity_levels = {0: [], 1: [], 2: ["threshold"], 3: []}

        def find_issues(
            self, table: pd.DataFrame | None = None, threshold: float = THRESHOLD, **_: Any
        ) -> None:
            if table is None:
                raise bad_value("table", None, "give the table of rarefy.influence")
            count = len(self.datalab.data)
            if len(table) != count:
                found = f"{len(table)} rows"
                raise bad_value("table", found, f"must have {count}, one per sample of the lab")
            self.issues = cleanlab_columns(table.reset_index(drop=True), threshold)
            self.summary = self.make_summary(score=self.issues.attrs["summary"]["score"])
            self.info = self.collect_info(threshold=threshold)

        def collect_info(self, **facts: Any) -> dict[str, Any]:
            return facts

    registered: type[Any] = factory.register(AtypicalIssueManager, task="classification")
    return registered


# ----------------------------------------------------------------------------------------- FiftyOne


def write_fiftyone(table: pd.DataFrame, dataset: Any, field: str = "influence") -> int:
    """Set ``field``, ``field_percentile``, ``field_triage`` and ``field_id`` of the samples whose
    file path is the table's ``name``, or ends in it; gives how many these are. Others are not
    touched: tables of disjoint parts can be written one after the other. Undefined scores are
    written as None.

    dataset: a FiftyOne data set or view, or the name of one.
    """
    if not field.isidentifier():
        raise bad_value("field", field, "must be a name of letters, digits and underscores")
    _need_columns(table, "name", *FIELDS.values())
    if isinstance(dataset, str):
        dataset = _fiftyone_dataset(dataset)
    rows = _rows_by_name(table)
    values = {f"{field}{suffix}": table[column].tolist() for suffix, column in FIELDS.items()}
    written: dict[int, str] = {}
    example = None
    for sample in dataset.iter_samples(autosave=True):
        path = str(sample.filepath)
        example = path if example is None else example
        row = _row_of_path(path.replace("\\", "/"), rows)
        if row is None:
            continue
        if row in written:
            raise UsageError(
                f"{written[row]} and {path} are both {table['name'].iloc[row]!r} in the table: its "
                "names must tell them apart"
            )
        written[row] = path
        for name, column in values.items():
            undefined = isinstance(column[row], float) and math.isnan(column[row])
            # FiftyOne cannot tell the type of a new field from None
            if not undefined or sample.has_field(name):
                sample[name] = None if undefined else column[row]
    if not written:
        ours = next(iter(rows))
        raise UsageError(f"no sample is in the table: it has {ours!r}, the data set {example!r}")
    return len(written)


def _fiftyone_dataset(name: str) -> Any:
    try:
        fiftyone = importlib.import_module("fiftyone")
    except ModuleNotFoundError:
        raise UsageError(f"{name}: FiftyOne is needed: pip install fiftyone") from None
    if not fiftyone.dataset_exists(name):
        raise UsageError(f"FiftyOne has no data set {name!r}")
    return fiftyone.load_dataset(name)


def _rows_by_name(table: pd.DataFrame) -> dict[str, int]:
    rows: dict[str, int] = {}
    for row, name in enumerate(table["name"].tolist()):
        text = str(name).replace("\\", "/")
        if not text:
            raise bad_value("table", "name", f"row {row} has none")
        if text in rows:
            raise bad_value("table", "name", f"rows {rows[text]} and {row} have the same, {text!r}")
        rows[text] = row
    if not rows:
        raise UsageError("the table has no rows")
    return rows


def _row_of_path(path: str, rows: dict[str, int]) -> int | None:
    """By the longest end of the path that the table has."""
    while path not in rows:
        _, slash, path = path.partition("/")
        if not slash:
            return None
    return rows[path]
