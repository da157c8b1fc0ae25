"""Fields of FiftyOne samples, on a stand-in that has the few methods that are used: FiftyOne is not
among the packages that this project installs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rarefy.core.errors import UsageError
from rarefy.tools.influence.fiftyone_fields import write_fiftyone


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


def _table(names: list[str], influence: list[float] | None = None) -> pd.DataFrame:
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
    assert write_fiftyone(_table(names[::-1]), collection) == 3
    assert [sample["influence"] for sample in collection.samples] == [2.0, 1.0, 0.0]
    assert collection.samples[0]["influence_id"] == f"hash-of-{names[0]}"
    assert collection.samples[0]["influence_percentile"] == 50.0
    assert collection.samples[0]["influence_triage"] == ""


def test_disjoint_parts_do_not_lose_each_other() -> None:
    collection = Collection(PATHS)
    assert write_fiftyone(_table(["cat/1.png"], [5.0]), collection) == 1
    assert write_fiftyone(_table(["dog/1.png"], [7.0]), collection) == 1
    assert [sample.fields.get("influence") for sample in collection.samples] == [5.0, None, 7.0]


def test_undefined_scores_replace_old_ones() -> None:
    collection = Collection(PATHS)
    names = ["cat/1.png", "cat/2.png", "dog/1.png"]
    write_fiftyone(_table(names, [np.nan, 2.0, 3.0]), collection, field="odd")
    assert "odd" not in collection.samples[0].fields
    write_fiftyone(_table(names, [1.0, np.nan, 3.0]), collection, field="odd")
    assert [sample["odd"] for sample in collection.samples] == [1.0, None, 3.0]


def test_by_ids() -> None:
    collection = Collection(PATHS)
    assert write_fiftyone(_table(["fo2", "fo0"]), collection, match="id") == 2
    assert collection.samples[2]["influence"] == 0.0
    again = _table(["fo2"], [9.0]).assign(name="")
    assert write_fiftyone(again, collection, match="influence_id") == 1
    assert collection.samples[2]["influence"] == 9.0


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (
            _table(["1.png"]),
            {},
            "/data/pets/cat/1.png and /data/pets/dog/1.png are both '1.png' in",
        ),
        (
            _table(["x.png"]),
            {},
            "no sample is in the table: it has 'x.png', the data set '/data/pets/",
        ),
        (_table(["a", "a"]), {}, "match='name': rows 0 and 1 have the same, 'a'"),
        (_table(["a", ""]), {}, "match='name': row 1 of the table has no name"),
        (_table([]), {}, "the table has no rows"),
        (_table(["a"]), {"field": "a b"}, "field='a b': must be a name of letters"),
        (
            _table(["a"]),
            {"match": "none"},
            "no sample is in the table: it has 'hash-of-a', the .* None",
        ),
        (_table(["a"]).drop(columns="triage"), {}, "table='triage': no such column in the table"),
    ],
)
def test_what_cannot_be_matched(table: pd.DataFrame, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        write_fiftyone(table, Collection(PATHS), **options)


def test_by_the_name_of_a_data_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fiftyone", None)
    with pytest.raises(UsageError, match="pets: FiftyOne is needed: pip install fiftyone"):
        write_fiftyone(_table(["cat/1.png"]), "pets")
    collection = Collection(PATHS)
    module = ModuleType("fiftyone")
    module.dataset_exists = lambda name: name == "pets"  # type: ignore[attr-defined]
    module.load_dataset = lambda name: collection  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fiftyone", module)
    assert write_fiftyone(_table(["cat/1.png"]), "pets") == 1
    with pytest.raises(UsageError, match="FiftyOne has no data set 'pest'"):
        write_fiftyone(_table(["cat/1.png"]), "pest")
