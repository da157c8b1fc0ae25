"""Scores in the shape that users of cleanlab's Datalab know, and as one of its issue managers."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pandas as pd

from rarefy.core.errors import UsageError, bad_value
from rarefy.tools.samples.messages import no_column

ISSUE = "atypical"
THRESHOLD = 0.05
NEEDED = ("label", "percentile", "own", "shared")


def cleanlab_columns(table: pd.DataFrame, threshold: float = THRESHOLD) -> pd.DataFrame:
    """``is_atypical_issue`` and ``atypical_score`` in [0, 1], low for the most atypical, one row a
    sample; ``attrs["summary"]`` has the data set's number (see ``cleanlab_summary``).

    The score is 1 - percentile / 100 within the class, and a sample is an issue where it is less
    than the threshold: a threshold of 0.05 flags the most atypical twentieth of every class, in
    any data set. Undefined scores stay NaN and are no issue.
    """
    if not (isinstance(threshold, int | float) and 0 <= threshold <= 1):
        raise bad_value("threshold", threshold, "must be from 0 to 1")
    for column in NEEDED:
        if column not in table.columns:
            raise no_column("table", column, [str(name) for name in table.columns], "the table")
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


def cleanlab_summary(columns: pd.DataFrame) -> pd.DataFrame:
    """One row as in Datalab's issue summary. Its score is the share of the classes' variation that
    the samples which are not flagged bring in: near 1 - threshold if flagged ones are like the
    others, far below if a few samples make most of what is seen."""
    return pd.DataFrame([columns.attrs["summary"]])


def _typical_share(table: pd.DataFrame, flagged: np.ndarray) -> float:
    """The mean over classes, by size, of sum (own + shared) of what is not flagged over all of it.
    Both terms of 003 Eq. (10) are never negative; the rest of it is the same for a whole class."""
    brought = (table["own"] + table["shared"]).to_numpy(dtype=np.float64)
    frame = pd.DataFrame({"label": table["label"].to_numpy(), "all": brought})
    frame["typical"] = np.where(flagged, 0.0, brought)
    frame = frame[np.isfinite(brought)]
    sums = frame.groupby("label", observed=True).agg({"all": "sum", "typical": "sum"})
    sizes = frame.groupby("label", observed=True).size()
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
                raise bad_value("table", found, f"must have {count}, one a sample of the lab")
            columns = cleanlab_columns(table.reset_index(drop=True), threshold)
            self.issues = columns
            self.summary = self.make_summary(score=columns.attrs["summary"]["score"])
            self.info = self.collect_info(threshold=threshold)

        def collect_info(self, **facts: Any) -> dict[str, Any]:
            return facts

    registered: type[Any] = factory.register(AtypicalIssueManager, task="classification")
    return registered
