"""cleanlab's issue columns and issue manager, and fields of FiftyOne samples.

Neither is among the packages that this project installs, so both have a stand-in here. That of
cleanlab does what cleanlab 2.9 does with a registered manager: makes it with the lab and its
arguments, calls ``find_issues`` with the same, and wants ``issues``, ``summary`` and ``info``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rarefy.core.errors import UsageError
from rarefy.tools.influence.adapters import (
    cleanlab_columns,
    register_issue_manager,
    write_fiftyone,
)

# ----------------------------------------------------------------------------------------- cleanlab


def _scores(count: int = 40) -> pd.DataFrame:
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
    table = _scores()
    columns = cleanlab_columns(table, threshold=0.05)
    assert list(columns.columns) == ["is_atypical_issue", "atypical_score"]
    assert columns["is_atypical_issue"].dtype == bool
    assert columns["atypical_score"].between(0, 1).all()
    # low is worse: the highest percentile of each class is flagged
    assert np.flatnonzero(columns["is_atypical_issue"]).tolist() == [38, 39]
    assert columns["atypical_score"].idxmin() in (38, 39)
    assert not cleanlab_columns(table, threshold=0)["is_atypical_issue"].any()
    assert list(columns.attrs["summary"]) == ["issue_type", "score", "num_issues"]
    assert columns.attrs["summary"]["num_issues"] == 2


def test_the_number_is_the_share_that_typical_samples_bring() -> None:
    table = _scores()
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
    table = _scores()
    table.loc[39, ["percentile", "own", "shared"]] = np.nan
    columns = cleanlab_columns(table)
    assert np.isnan(columns["atypical_score"][39])
    assert not columns["is_atypical_issue"][39]
    assert 0 <= columns.attrs["summary"]["score"] <= 1


def test_bad_thresholds_and_tables() -> None:
    for threshold in (-0.1, 1.5, "x", float("nan")):
        with pytest.raises(UsageError, match="threshold=.*: must be from 0 to 1"):
            cleanlab_columns(_scores(), threshold)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="table='own': no such column in the table"):
        cleanlab_columns(_scores().drop(columns="own"))


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
    table = _scores()
    arguments = {"table": table, "threshold": 0.2}
    manager = made(datalab=SimpleNamespace(data=list(range(40))), **arguments)
    manager.find_issues(**arguments)
    assert manager.issue_score_key in manager.issues.columns
    assert manager.issues["is_atypical_issue"].sum() == 8
    assert manager.summary["issue_type"].tolist() == ["atypical"]
    assert manager.info == {"threshold": 0.2}
    with pytest.raises(UsageError, match="table=None: give the table of rarefy.influence"):
        manager.find_issues()
    with pytest.raises(
        UsageError, match="table='39 rows': must have 40, one per sample of the lab"
    ):
        manager.find_issues(table=table[:39])


def test_without_cleanlab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cleanlab", None)
    with pytest.raises(UsageError, match=r"cleanlab is needed: pip install 'cleanlab\[datalab\]'"):
        register_issue_manager()


# ----------------------------------------------------------------------------------------- FiftyOne


class Sample:
    def __init__(self, identity: str, filepath: str, schema: set[str]) -> None:
        self.id, self.filepath, self.fields, self._schema = identity, filepath, {}, schema

    def has_field(self, name: str) -> bool:
        return name in self._schema

    def __getitem__(self, name: str) -> Any:
        if name not in self._schema:
            raise KeyError(name)
        return self.fields.get(name)

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._schema and value is None:
            raise ValueError("cannot infer the type of a new field from None")
        assert value is None or type(value) in (float, int, str), "numpy's types are not stored"
        self._schema.add(name)
        self.fields[name] = value


class Collection:
    def __init__(self, paths: list[str]) -> None:
        schema: set[str] = set()
        self.samples = [Sample(f"fo{place}", path, schema) for place, path in enumerate(paths)]

    def iter_samples(self, autosave: bool = False) -> Iterator[Sample]:
        assert autosave, "otherwise nothing is kept"
        yield from self.samples


PATHS = ["/data/pets/cat/1.png", "/data/pets/cat/2.png", "/data/pets/dog/1.png"]


def _named(names: list[str], influence: list[float] | None = None) -> pd.DataFrame:
    scores = list(range(len(names))) if influence is None else influence
    return pd.DataFrame(
        {
            "id": [f"hash-of-{name}" for name in names],
            "name": names,
            "influence": np.array(scores, dtype=np.float64),
            "percentile": 50.0,
            "triage": "",
        }
    )


@pytest.mark.parametrize("names", [PATHS, ["cat/1.png", "cat/2.png", "dog/1.png"]])
def test_by_path_or_the_end_of_it(names: list[str]) -> None:
    collection = Collection(PATHS)
    assert write_fiftyone(_named(names[::-1]), collection) == 3
    assert [sample["influence"] for sample in collection.samples] == [2.0, 1.0, 0.0]
    assert collection.samples[0]["influence_id"] == f"hash-of-{names[0]}"
    assert collection.samples[0]["influence_percentile"] == 50.0
    assert collection.samples[0]["influence_triage"] == ""


def test_disjoint_parts_do_not_lose_each_other() -> None:
    collection = Collection(PATHS)
    assert write_fiftyone(_named(["cat/1.png"], [5.0]), collection) == 1
    assert write_fiftyone(_named(["dog/1.png"], [7.0]), collection) == 1
    assert [sample.fields.get("influence") for sample in collection.samples] == [5.0, None, 7.0]


def test_undefined_scores_replace_old_ones() -> None:
    collection = Collection(PATHS)
    names = ["cat/1.png", "cat/2.png", "dog/1.png"]
    write_fiftyone(_named(names, [np.nan, 2.0, 3.0]), collection, field="odd")
    assert "odd" not in collection.samples[0].fields
    write_fiftyone(_named(names, [1.0, np.nan, 3.0]), collection, field="odd")
    assert [sample["odd"] for sample in collection.samples] == [1.0, None, 3.0]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (
            _named(["1.png"]),
            {},
            "/data/pets/cat/1.png and /data/pets/dog/1.png are both '1.png' in",
        ),
        (
            _named(["x.png"]),
            {},
            "no sample is in the table: it has 'x.png', the data set '/data/pets/",
        ),
        (_named(["a", "a"]), {}, "table='name': rows 0 and 1 have the same, 'a'"),
        (_named(["a", ""]), {}, "table='name': row 1 has none"),
        (_named([]), {}, "the table has no rows"),
        (_named(["a"]), {"field": "a b"}, "field='a b': must be a name of letters"),
        (_named(["a"]).drop(columns="triage"), {}, "table='triage': no such column in the table"),
    ],
)
def test_what_cannot_be_matched(table: pd.DataFrame, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        write_fiftyone(table, Collection(PATHS), **options)


def test_by_the_name_of_a_data_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fiftyone", None)
    with pytest.raises(UsageError, match="pets: FiftyOne is needed: pip install fiftyone"):
        write_fiftyone(_named(["cat/1.png"]), "pets")
    collection = Collection(PATHS)
    module = ModuleType("fiftyone")
    module.dataset_exists = lambda name: name == "pets"  # type: ignore[attr-defined]
    module.load_dataset = lambda name: collection  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fiftyone", module)
    assert write_fiftyone(_named(["cat/1.png"]), "pets") == 1
    with pytest.raises(UsageError, match="FiftyOne has no data set 'pest'"):
        write_fiftyone(_named(["cat/1.png"]), "pest")
