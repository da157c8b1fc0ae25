"""Tables on disk come back as they were, with their facts; and joins by id."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from folders import seen_in
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from rarefy.core.errors import RunError, UsageError
from rarefy.tools.influence.writing import _read, join, read_table, write_table

FACTS = {"data": "made", "n": 4, "classes": ["a", "NA"], "route": {"a": "gram"}, "share": 0.1}


def _table(**columns: Any) -> pd.DataFrame:
    table = pd.DataFrame(
        {
            "id": ["00ff", "00ff-1", "1e5", "0"],
            "index": np.arange(4),
            "name": ["", 'a,b\n"c"', "NA", "=1+1"],
            "label": ["a", "NA", "a", "NA"],
            "influence": [1 / 3, np.nan, -1e-300, np.inf],
            "conflict": [True, False, True, False],
            "rank": np.array([0.1, 0.2, np.nan, 4], dtype=np.float32),
            **columns,
        }
    )
    table.attrs = dict(FACTS)
    return table


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_tables_come_back(tmp_path: Path, ending: str) -> None:
    table = _table()
    path = write_table(table, tmp_path / "new" / f"scores{ending}")
    again = read_table(path)
    assert_frame_equal(again, table, check_exact=True)
    assert again.attrs == FACTS
    assert table.attrs == FACTS
    about = _read(path)[1]
    assert about["rows"] == 4
    assert set(about["versions"]) == {"rarefy", "python", "numpy", "pandas", "pyarrow"}
    # written again, and of rows in another order
    order = table.iloc[::-1]
    order.attrs = {}
    write_table(order, path)
    assert _read(path)[1]["fingerprint"] == about["fingerprint"]
    assert_frame_equal(read_table(path), order.reset_index(drop=True))
    left = {path.name, f"{path.name}.json"} if ending == ".csv" else {path.name}
    assert {one.name for one in seen_in(path.parent)} == left


@given(
    texts=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")), min_size=1
    ),
    numbers=st.lists(st.floats(), min_size=1),
)
def test_any_text_and_any_number_come_back(
    texts: list[str], numbers: list[float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    count = max(len(texts), len(numbers))
    table = pd.DataFrame(
        {
            "name": (texts * count)[:count],
            "influence": np.array((numbers * count)[:count], dtype=np.float64),
        }
    )
    folder = tmp_path_factory.mktemp("any")
    for ending in (".parquet", ".csv"):
        again = read_table(write_table(table, folder / f"t{ending}"))
        assert again["name"].tolist() == table["name"].tolist()
        np.testing.assert_array_equal(again["influence"], table["influence"])


def test_names_that_are_no_text(tmp_path: Path) -> None:
    table = pd.DataFrame({"name": ["caf\udce9.png", "ok"]}, dtype=object)
    for ending in (".csv", ".parquet"):
        again = read_table(write_table(table, tmp_path / f"t{ending}"))
        assert again["name"].tolist() == ["caf\\udce9.png", "ok"]


def test_facts_are_made_plain(tmp_path: Path) -> None:
    table = _table()
    table.attrs = {
        "k": np.int64(3),
        "t": (1, 2),
        5: np.float32(0.5),
        "nan": float("nan"),
        "no": None,
    }
    again = read_table(write_table(table, tmp_path / "t.parquet"))
    assert again.attrs == {"k": 3, "t": [1, 2], "5": 0.5, "nan": None, "no": None}
    table.attrs = {"inner": {"array": np.zeros(3)}}
    with pytest.raises(
        UsageError, match=r"attrs\['inner'\]\['array'\]='ndarray': facts must be as"
    ):
        write_table(table, tmp_path / "t.parquet")


def test_what_cannot_be_written(tmp_path: Path) -> None:
    table = _table()
    with pytest.raises(UsageError, match=r"path=.*t.xlsx.*must end in one of .parquet, .csv"):
        write_table(table, tmp_path / "t.xlsx")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot write .*t.csv: "):
        write_table(table, tmp_path / "file" / "t.csv")
    with pytest.raises(UsageError, match="columns of one name: id"):
        write_table(pd.concat([table, table[["id"]]], axis=1), tmp_path / "t.csv")
    with pytest.raises(UsageError, match="the table cannot be written as Parquet"):
        write_table(_table(odd=[1, {"a": 1}, "b", None]), tmp_path / "t.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file .*none.csv"):
        read_table(tmp_path / "none.csv")
    plain = tmp_path / "plain.parquet"
    pd.DataFrame({"a": [1]}).to_parquet(plain)
    with pytest.raises(UsageError, match="plain.parquet: was not written by rarefy influence"):
        read_table(plain)
    plain.write_bytes(b"PAR1 nothing")
    with pytest.raises(UsageError, match="plain.parquet: cannot be read"):
        read_table(plain)
    path = write_table(_table(), tmp_path / "t.csv")
    path.write_text(path.read_text() + "\n")
    with pytest.raises(UsageError, match="t.csv: was changed since t.csv.json was written"):
        read_table(path)
    beside = tmp_path / "t.csv.json"
    beside.write_text(json.dumps({"format": "other"}))
    with pytest.raises(UsageError, match="t.csv: was not written by rarefy influence"):
        read_table(path)
    beside.write_text("{}")
    with pytest.raises(UsageError, match="t.csv: cannot be read"):
        read_table(path)
    beside.unlink()
    with pytest.raises(UsageError, match="t.csv: t.csv.json is missing beside it"):
        read_table(path)


# --------------------------------------------------------------------------------------------- join


def test_join_by_id() -> None:
    table = _table().iloc[[2, 0, 1]]
    table.attrs = dict(FACTS)
    other = pd.DataFrame({"id": ["00ff", "1e5", "gone"], "mem": [0.1, 0.2, 0.3]})
    joined = join(table, other)
    assert joined["id"].tolist() == ["1e5", "00ff", "00ff-1"]
    assert joined["mem"].iloc[:2].tolist() == [0.2, 0.1]
    assert np.isnan(joined["mem"].iloc[2])
    assert joined.index.tolist() == [2, 0, 1]
    assert joined.attrs == {**FACTS, "joined": 2}
    by_name = pd.DataFrame({"name": ["NA"], "note": ["x"]})
    assert join(table, by_name, on="name").attrs["joined"] == 1


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (pd.DataFrame({"ids": ["00ff"]}), "on='id': no such column in other; did you mean 'ids'"),
        (pd.DataFrame({"id": ["x", "x"]}), "other: id must be different in each row, .* in row 1"),
        (pd.DataFrame({"id": ["00ff"], "label": ["a"]}), "both tables have columns label: rename"),
        (pd.DataFrame({"id": ["x"]}), "none of the 4 rows has its id in the other table"),
    ],
)
def test_joins_that_make_no_sense(other: pd.DataFrame, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        join(_table(), other)
