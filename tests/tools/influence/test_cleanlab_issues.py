"""Issue columns as Datalab has them, and the issue manager on a stand-in of cleanlab's base class.

cleanlab is not among the packages that this project installs. The stand-in has what cleanlab 2.9
does with a registered manager: makes it with the lab and its arguments, calls ``find_issues`` with
the same, and wants ``issues``, ``summary`` and ``info``.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rarefy.core.errors import UsageError
from rarefy.tools.influence.cleanlab_issues import (
    cleanlab_columns,
    cleanlab_summary,
    register_issue_manager,
)


def _table(count: int = 40) -> pd.DataFrame:
    random = np.random.default_rng(0)
    labels = np.array(["a", "b"])[np.arange(count) % 2]
    return pd.DataFrame(
        {
            "label": labels,
            "percentile": np.tile(np.linspace(0, 100, count // 2)[:, None], 2).ravel(),
            "own": random.random(count),
            "shared": random.random(count),
        }
    )


def test_columns_in_cleanlabs_shape() -> None:
    table = _table()
    columns = cleanlab_columns(table, threshold=0.05)
    assert list(columns.columns) == ["is_atypical_issue", "atypical_score"]
    assert columns["is_atypical_issue"].dtype == bool
    assert columns["atypical_score"].between(0, 1).all()
    # low is worse: the highest percentile of each class is flagged
    assert np.flatnonzero(columns["is_atypical_issue"]).tolist() == [38, 39]
    assert columns["atypical_score"].idxmin() in (38, 39)
    assert not cleanlab_columns(table, threshold=0)["is_atypical_issue"].any()
    assert list(cleanlab_summary(columns).columns) == ["issue_type", "score", "num_issues"]
    assert cleanlab_summary(columns)["num_issues"].tolist() == [2]


def test_the_number_is_the_share_that_typical_samples_bring() -> None:
    table = _table()
    even = table.assign(own=1.0, shared=0.0)
    number = cleanlab_columns(even, 0.05).attrs["summary"]["score"]
    assert number == pytest.approx(1 - 1 / 20)  # one of twenty of each class is flagged
    # in class a the flagged sample brings half of all, in class b still a twentieth
    heavy = even.assign(own=np.where(np.arange(40) == 38, 19.0, 1.0))
    number = cleanlab_columns(heavy, 0.05).attrs["summary"]["score"]
    assert number == pytest.approx((0.5 + 0.95) / 2)
    still = table.assign(own=0.0, shared=0.0)
    assert cleanlab_columns(still).attrs["summary"]["score"] == 1.0


def test_undefined_scores_are_no_issue() -> None:
    table = _table()
    table.loc[39, ["percentile", "own", "shared"]] = np.nan
    columns = cleanlab_columns(table)
    assert np.isnan(columns["atypical_score"][39])
    assert not columns["is_atypical_issue"][39]
    assert 0 <= columns.attrs["summary"]["score"] <= 1


def test_bad_arguments() -> None:
    for threshold in (-0.1, 1.5, "x", float("nan")):
        with pytest.raises(UsageError, match="threshold=.*: must be from 0 to 1"):
            cleanlab_columns(_table(), threshold)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="table='own': no such column in the table"):
        cleanlab_columns(_table().drop(columns="own"))


class Base:
    """As cleanlab's, of which subclasses need a name."""

    def __init_subclass__(cls) -> None:
        cls.issue_score_key = f"{cls.issue_name}_score"  # type: ignore[attr-defined]

    def __init__(self, datalab: Any, **_: Any) -> None:
        self.datalab = datalab
        self.info: dict[str, Any] = {}
        self.issues = self.summary = pd.DataFrame()

    @classmethod
    def make_summary(cls, score: float) -> pd.DataFrame:
        assert 0 <= score <= 1
        return pd.DataFrame({"issue_type": [cls.issue_name], "score": [score]})  # type: ignore[attr-defined]


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, type]:
    known: dict[str, type] = {}

    def register(cls: type, task: str) -> type:
        assert issubclass(cls, Base) and task == "classification"
        known[cls.issue_name] = cls  # type: ignore[attr-defined]
        return cls

    names = ("cleanlab", "cleanlab.datalab", "cleanlab.datalab.internal")
    modules = {name: ModuleType(name) for name in names}
    inner = ModuleType("cleanlab.datalab.internal.issue_manager")
    factory = ModuleType("cleanlab.datalab.internal.issue_manager_factory")
    inner.IssueManager, factory.register = Base, register  # type: ignore[attr-defined]
    for name, module in {**modules, inner.__name__: inner, factory.__name__: factory}.items():
        monkeypatch.setitem(sys.modules, name, module)
    return known


def test_the_issue_manager(registry: dict[str, type]) -> None:
    made = register_issue_manager()
    assert registry == {"atypical": made}
    table = _table()
    arguments = {"table": table, "threshold": 0.2}
    manager = made(datalab=SimpleNamespace(data=list(range(40))), **arguments)
    manager.find_issues(**arguments)
    assert manager.issue_score_key in manager.issues.columns
    assert manager.issues["is_atypical_issue"].sum() == 8
    assert manager.summary["issue_type"].tolist() == ["atypical"]
    assert manager.info == {"threshold": 0.2}
    with pytest.raises(UsageError, match="table=None: give the table of rarefy.influence"):
        manager.find_issues()
    with pytest.raises(UsageError, match="table='39 rows': must have 40, one a sample of the lab"):
        manager.find_issues(table=table[:39])


def test_without_cleanlab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cleanlab", None)
    with pytest.raises(UsageError, match=r"cleanlab is needed: pip install 'cleanlab\[datalab\]'"):
        register_issue_manager()
