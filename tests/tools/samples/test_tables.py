"""Parquet, CSV, TSV and Feather tables, and DataFrames, as samples."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from rarefy.core.errors import UsageError
from rarefy.tools.samples.tables import from_frame, from_table

FRAME = pd.DataFrame(
    {
        "width": [1.5, 2.5, 3.5, 4.5],
        "height": [4, 3, 2, 7],
        "colour": ["red", "blue", "red", "green"],
        "kind": ["b", "a", "a", "b"],
        "file": ["w", "x", "y", "z"],
    }
)


def _written(folder: Path, ending: str, frame: pd.DataFrame = FRAME) -> Path:
    path = folder / f"shapes{ending}"
    if ending == ".parquet":
        frame.to_parquet(path)
    elif ending == ".feather":
        feather.write_feather(frame, path)
    else:
        frame.to_csv(path, sep="\t" if ".tsv" in ending else ",", index=False)
    return path


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".csv", ".tsv", ".csv.gz"])
def test_every_kind_of_file(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)  # its threads may end a process wrongly
    path = _written(tmp_path, ending)
    samples = from_table(path, "kind", names="file")
    assert samples.features.tolist() == [[1.5, 4], [2.5, 3], [3.5, 2], [4.5, 7]]
    assert samples.feature_names == ("width", "height")
    assert samples.labels.tolist() == [1, 0, 0, 1]
    assert samples.classes == ("a", "b")
    assert samples.files == ("w", "x", "y", "z")
    assert samples.notes == ("columns that are no numbers are not scored: colour",)
    assert samples.name == f"shapes{ending}"
    assert from_table(path, "kind", ["height"]).features.tolist() == [[4], [3], [2], [7]]


def test_a_frame_is_read_alike() -> None:
    samples = from_frame(FRAME, "kind", names="file")
    assert samples.features.tolist() == FRAME[["width", "height"]].to_numpy().tolist()
    numbered = from_frame(pd.DataFrame({0: [1.0, 2.0], 1: [0, 1]}), "1")
    assert numbered.feature_names == ("0",)


@pytest.mark.parametrize("kind", ["list", "fixed", "large"])
def test_embeddings_in_one_column(tmp_path: Path, kind: str) -> None:
    rows = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    types = {
        "list": pa.list_(pa.float32()),
        "fixed": pa.list_(pa.float32(), 3),
        "large": pa.large_list(pa.float32()),
    }
    columns = {
        "e": pa.array(rows.tolist(), types[kind]),
        "kind": list("abab"),
        "year": [1, 2, 4, 3],
    }
    path = tmp_path / "e.parquet"
    parquet.write_table(pa.table(columns), path)
    samples = from_table(path, "kind")
    assert samples.features.dtype == np.float32
    assert (samples.features == rows).all()
    assert samples.feature_names == ("e[0]", "e[1]", "e[2]")
    assert samples.notes == ("only 'e' is scored, not year",)
    both = from_table(path, "kind", ["e", "year"])
    assert both.features.shape == (4, 4)


def test_labels_of_a_csv_are_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,code\n1,NA\n2,07\n5,7\n4,null\n")
    assert from_table(path, "code").classes == ("07", "7", "NA", "null")
    path.write_text("x,code\n1,10\n2,2\n5,2\n")
    assert from_table(path, "code").classes == ("2", "10")


@pytest.mark.parametrize(
    ("cells", "features"),
    [
        ("12345678901234567890123", [[12345678901234567890123.0, 1], [2, 5]]),
        ("0.1000000000000000055511151231257827", [[0.1, 1], [2, 5]]),
        (" 3", [[3, 1], [2, 5]]),
        ("1_0", [[1], [5]]),
        ("0x1F", [[1], [5]]),
        ("2020-01-01", [[1], [5]]),
        ('"a\n""b"", c"', [[1], [5]]),
    ],
)
@pytest.mark.parametrize("begin", ["", "\n\n", "\ufeff", "\ufeff\r\n"])
def test_cells_of_a_csv(
    tmp_path: Path, cells: str, features: list[list[float]], begin: str
) -> None:
    path = tmp_path / "t.csv"
    text = f"{begin}x,empty,y,kind\r\n{cells},,1,a\r\n\r\n2,,5,b"
    path.write_bytes(text.encode())
    samples = from_table(path, "kind")
    assert samples.features.tolist() == features and samples.classes == ("a", "b")
    assert "empty" in samples.notes[0]


def test_dates_that_python_has_not_are_told(tmp_path: Path) -> None:
    days = np.array(["12000-01-01", "2020-01-01"], "datetime64[D]")
    parquet.write_table(pa.table({"x": [1.0, 2.0], "kind": days}), tmp_path / "t.parquet")
    with pytest.raises(
        UsageError, match=r"t.parquet: column 'kind': date32\[day\] that Python has"
    ):
        from_table(tmp_path / "t.parquet", "kind")


def test_a_column_that_counts_rows_is_no_feature(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    FRAME.to_csv(path)  # with pandas' index as a column without a name
    samples = from_table(path, "kind")
    assert samples.feature_names == ("width", "height")
    assert "column '' only counts the rows and is not scored" in samples.notes
    assert from_table(path, "kind", ["", "width"]).feature_names == ("", "width")


def test_ids_do_not_depend_on_the_type_of_a_column() -> None:
    whole = pd.DataFrame({"x": [1, 2, 4], "kind": list("abb")})
    assert from_frame(whole.astype({"x": float}), "kind").ids == from_frame(whole, "kind").ids


def test_infinite_numbers_are_told_without_a_warning_before(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y,kind\n1,2,a\ninf,3,b\n2,5,a\n")
    with pytest.raises(UsageError, match=r"infinite in row 1 \(counting from 0\), of 3 samples"):
        from_table(path, "kind").check_finite()


def test_yes_and_no_are_numbers() -> None:
    frame = pd.DataFrame({"flag": [True, False, True], "kind": ["a", "b", "b"]})
    assert from_frame(frame, "kind").features.tolist() == [[1], [0], [1]]


def _with(**columns: Any) -> pd.DataFrame:
    return FRAME.assign(**columns)


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (FRAME, {"label": "kinds"}, "label='kinds': no such column in .*; did you mean 'kind'?"),
        (FRAME, {"label": "q"}, "label='q': no such column in .*; it has width; height; colour"),
        (FRAME, {"columns": ["widht"]}, "columns='widht': no such column.*did you mean 'width'"),
        (FRAME, {"names": "files"}, "names='files': no such column.*did you mean 'file'"),
        (FRAME, {"columns": ["colour"]}, "'colour' of .*string.*: must be numbers or lists of num"),
        (FRAME, {"columns": ["kind"]}, "columns=\"the label column 'kind'\": must be columns of"),
        (FRAME, {"columns": []}, "columns='nothing': must be columns of numbers"),
        (FRAME[["kind", "colour"]], {}, "no column of numbers besides the label .it has colour"),
        (FRAME[:0], {}, "has no rows"),
        (_with(kind="b"), {}, "all 4 samples have the label 'b'"),
        (_with(kind=["a", None, "b", None]), {}, "no label .*in rows 1, 3"),
        (_with(width=[1, None, 2, None]), {}, "column 'width' has no value in rows 1, 3"),
    ],
)
@pytest.mark.parametrize("ending", [".parquet", ".csv", None])
def test_what_is_wrong_with_a_table(
    tmp_path: Path, frame: pd.DataFrame, options: dict[str, Any], message: str, ending: str | None
) -> None:
    options = {"label": "kind", **options}
    if ending is None:
        with pytest.raises(UsageError, match=message):
            from_frame(frame, **options)
    elif ending == ".parquet" or len(frame):
        with pytest.raises(UsageError, match=message):
            from_table(_written(tmp_path, ending, frame), **options)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (
            [[1.0], [1.0, 2.0], [3.0]],
            "'e' has lists of 1 number in row 0, but of 2 in row 1 .counting from 0.",
        ),
        ([[], [], []], "'e' has an empty list in row 0"),
        ([[1.0], None, [2.0]], "column 'e' has no value in row 1"),
        ([[1.0], [None], [2.0]], "column 'e' has gaps in row 1"),
    ],
)
def test_bad_lists(lists: list[Any], message: str) -> None:
    table = pa.table({"e": pa.array(lists, pa.list_(pa.float64())), "kind": ["a", "b", "a"]})
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    with pytest.raises(UsageError, match=message):
        from_frame(frame, "kind")


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file .*none.csv"):
        from_table(tmp_path / "none.csv", "kind")
    with pytest.raises(UsageError, match=r"path=.*table.xls.*must end in one of .parquet"):
        from_table(tmp_path / "table.xls", "kind")
    for ending in (".parquet", ".feather", ".csv"):
        path = tmp_path / f"broken{ending}"
        path.write_bytes(b'a,"\x00\xff\n1\n')
        with pytest.raises(
            UsageError, match=f"broken{ending}: (cannot be read|no such|holds zero)|no such col"
        ):
            from_table(path, "kind")
    twice = tmp_path / "twice.csv"
    twice.write_text("a,a,kind\n1,2,x\n3,4,y\n")
    with pytest.raises(UsageError, match="twice.csv: several columns are named a"):
        from_table(twice, "kind")
    table = pa.table({"e": [[1.0], [2.0]], "f": [[1.0], [2.0]], "kind": ["a", "b"]})
    parquet.write_table(table, tmp_path / "two.parquet")
    with pytest.raises(UsageError, match=r"several columns hold lists \(e; f\): name one of them"):
        from_table(tmp_path / "two.parquet", "kind")
    with pytest.raises(UsageError, match="the table cannot be read"):
        from_frame(pd.DataFrame({"a": [1, {"b": 2}], "kind": [0, 1]}), "kind")
