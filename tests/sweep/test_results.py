"""Committed results: small, and the same Dataset again up to five digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from toy_study import Toy, only

import rarefy
from rarefy.core.errors import RunError, UsageError
from rarefy.studies.api import read_results
from rarefy.sweep import results as committed
from rarefy.sweep.results import find_results, shorten, write_results


@pytest.fixture(autouse=True)
def toy_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, Toy)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_written_is_read(tmp_path: Path, dtype: str) -> None:
    dataset = rarefy.run(Toy, scale="tiny", device="cpu", dtype=dtype, nan_at_seed=1)
    study = Toy.at("tiny", nan_at_seed=1)
    path = write_results(study, "tiny", dataset, tmp_path / "results")
    assert sorted(p.name for p in path.parent.iterdir()) == ["toy-tiny.json", "toy-tiny.parquet"]
    assert find_results(path.parent) == [path]
    again, scale, read = read_results(path)
    assert (again, scale) == (study, "tiny")
    xr.testing.assert_allclose(read, dataset, rtol=1e-5)
    assert read.attrs == dataset.attrs
    assert all(read[name].attrs == dataset[name].attrs for name in dataset.variables)
    assert all(read[name].dtype == dataset[name].dtype for name in dataset.variables)
    # shortened once, nothing changes any more
    write_results(study, "tiny", read, tmp_path / "twice")
    assert (tmp_path / "twice" / path.name).read_bytes() == path.read_bytes()
    assert read_results(tmp_path / "twice" / "toy-tiny.json")[2].identical(read)


def test_one_row_a_cell_with_its_coordinates(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    dataset = rarefy.run(Toy, scale="tiny", device="cpu")
    table = pq.read_table(write_results(Toy.at("tiny"), "tiny", dataset, tmp_path))
    assert table.column_names == ["drift", "sigma", "seed", "end", "path", "nonfinite_step"]
    row = table.to_pylist()[5]
    cell = dataset.sel(drift=row["drift"], sigma=row["sigma"], seed=row["seed"])
    np.testing.assert_allclose(row["path"], cell["path"].values.reshape(-1), rtol=1e-5)


def test_texts_as_an_axis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Words(Toy):
        axes = ("rule", "drift", "sigma")

    only(monkeypatch, Words)
    dataset = rarefy.run(Words, scale="tiny", device="cpu", rule=("plain", "odd"))
    study = Words.at("tiny", rule=("plain", "odd"))
    _, _, read = read_results(write_results(study, "tiny", dataset, tmp_path))
    assert read["rule"].values.tolist() == ["plain", "odd"]


def test_what_is_too_large_or_unfinished_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = rarefy.run(Toy, scale="tiny", device="cpu")
    monkeypatch.setattr(committed, "MAX_BYTES", 500)
    with pytest.raises(RunError, match=r"toy-tiny\.parquet would have [\d,]+ bytes, at most 500"):
        write_results(Toy.at("tiny"), "tiny", dataset, tmp_path)
    dataset.attrs["cells_done"] = 3
    with pytest.raises(UsageError, match="only 3 of 12 cells are done"):
        write_results(Toy.at("tiny"), "tiny", dataset, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert find_results(tmp_path / "nowhere") == []
    (tmp_path / "toy-tiny.json").write_text("{}")
    (tmp_path / "toy-tiny.parquet").write_bytes(b"rubbish")
    with pytest.raises(RunError, match=r"cannot read results .*toy-tiny\.json: has format None"):
        read_results(tmp_path / "toy-tiny.parquet")


@given(st.lists(st.floats(width=32), min_size=1))
def test_five_digits_are_kept(numbers: list[float]) -> None:
    values = np.array([*numbers, 0.5], dtype=np.float32)
    short = shorten(values)
    normal = np.abs(values) > 1e-30
    np.testing.assert_allclose(short[normal], values[normal], rtol=1e-5)
    np.testing.assert_array_equal(shorten(short), short)


def test_whole_numbers_stay_exact() -> None:
    steps = np.array([1234567.0, -1.0, np.nan], dtype=np.float32)
    np.testing.assert_array_equal(shorten(steps), steps)


def test_a_number_without_end_in_a_description_is_named(tmp_path: Path) -> None:
    dataset = rarefy.run(Toy, scale="tiny", device="cpu")
    path = write_results(Toy.at("tiny"), "tiny", dataset, tmp_path).with_suffix(".json")
    seeds = '"values": [\n    0,\n    1\n   ]'
    text = path.read_text()
    assert text.count(seeds) == 1
    path.write_text(text.replace(seeds, '"values": [0, 1e999]'))
    with pytest.raises(RunError, match=r"cannot use results .*toy-tiny.json: OverflowError"):
        read_results(path)
