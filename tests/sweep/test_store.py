"""The store: what it takes over, what it refuses, and that nothing of others is touched."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from toy_study import Toy, only
from zarr.abc.store import RangeByteRequest
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore

import rarefy
from rarefy.core.errors import RunError, UsageError
from rarefy.studies.api import open_store
from rarefy.sweep import chunks, zarr_places
from rarefy.sweep.runner import execute
from rarefy.sweep.store import Store
from rarefy.sweep.zarr_places import SMALL, Files


def filled(path: Path, **parameters: object) -> xr.Dataset:
    return rarefy.run(Toy, scale="tiny", device="cpu", out=path, **parameters)  # type: ignore[arg-type]


def tree(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_the_dataset_has_axes_seed_and_own_dimensions(tmp_path: Path) -> None:
    results = filled(tmp_path / "store", sigma=0.1)
    assert results["path"].dims == ("drift", "sigma", "seed", "step", "side")
    assert results.sizes["sigma"] == 1
    assert results["path"].attrs == {"meaning": "the walk and its mirror image", "unit": "1"}
    assert results["side"].values.tolist() == ["left", "right"]
    assert (results["nonfinite_step"] == -1).all()
    assert results.attrs["cells_done"] == results.attrs["cells"] == 6


@pytest.mark.quick("100-3", "200-2")
@pytest.mark.parametrize(("batch", "files"), [(None, 3), (100, 3), (200, 2)])
def test_a_large_grid_or_batch_has_few_files_and_lost_descriptions_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int | None, files: int
) -> None:
    monkeypatch.setattr("rarefy.sweep.arrays.CHUNK_FILES", 3)
    path, study = tmp_path / "store", Toy.at("tiny", seeds=50)
    found = execute(study, "tiny", device="cpu", out=path, compiled=False, batch=batch).dataset
    assert found.attrs["cells_done"] == 300
    for name in ("end", "done"):
        assert len(list((path / name / "c").iterdir())) == files
        (path / name / "zarr.json").unlink()
        assert Store(path, study, "tiny", "float32").repair() == 0
    xr.testing.assert_identical(Store(path, study, "tiny", "float32").read(), found)


def test_each_cell_lands_where_its_coordinates_say(tmp_path: Path) -> None:
    results = filled(tmp_path / "store")
    alone = rarefy.run(Toy, scale="tiny", device="cpu", drift=(0.5,), sigma=(0.2,))
    assert np.array_equal(results["path"].sel(drift=0.5, sigma=0.2), alone["path"].squeeze())


def test_others_can_open_it_with_xarray(tmp_path: Path) -> None:
    filled(tmp_path / "store")
    flat = xr.open_zarr(tmp_path / "store", consolidated=False)
    assert flat["path"].dims == ("run", "step", "side")
    assert {"drift", "sigma", "seed", "key", "done"} <= set(flat.variables)
    assert bool(flat["done"].all())


def test_a_new_store_takes_nothing_from_an_old_ones_scratch(tmp_path: Path) -> None:
    """Half-trained cells of a store that is replaced, or was removed by hand."""
    path = tmp_path / "store"
    for overwrite in (False, True):
        store = Store(path, Toy.at("tiny"), "tiny", "float32", overwrite)
        store.scratch.mkdir()
        (store.scratch / "old.pt").write_text("of another time")
        store.begin()
        assert not store.scratch.exists()
        store.close()
    store.scratch.mkdir()
    again = Store(path, Toy.at("tiny"), "tiny", "float32")
    again.begin()
    assert store.scratch.exists()  # gone on with, a store keeps its own
    again.close()


def test_more_seeds_extend_and_fewer_only_read(tmp_path: Path) -> None:
    path = tmp_path / "store"
    first = filled(path, seeds=3)
    more = filled(path, seeds=10)
    assert more.equals(filled(tmp_path / "fresh", seeds=10))
    assert more.isel(seed=slice(3)).equals(first)
    before = tree(path)
    assert filled(path, seeds=3).equals(first)
    assert tree(path) == before


def test_an_extension_killed_half_way_is_done_again(tmp_path: Path) -> None:
    import zarr

    path = tmp_path / "store"
    filled(path, seeds=3)
    group = zarr.open_group(path, mode="r+")
    group["end"].resize((30,))
    group["key"].resize((30,))
    assert filled(path, seeds=5).equals(filled(tmp_path / "fresh", seeds=5))


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"lr": 0.5}, "was made with lr=1.0, not 0.5; use --overwrite or another --out"),
        ({"sigma": (0.1, 0.3)}, "was made with sigma=0.1,0.2, not 0.1,0.3"),
        ({"dtype": "float64"}, "was made with dtype=float32, not float64"),
    ],
)
def test_another_spec_is_refused_by_name(
    tmp_path: Path, parameters: dict[str, object], said: str
) -> None:
    path = tmp_path / "store"
    filled(path)
    before = tree(path)
    with pytest.raises(UsageError, match=said):
        filled(path, **parameters)
    assert tree(path) == before


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "store")
    monkeypatch.setattr(Toy, "version", 2)
    with pytest.raises(UsageError, match="was made by version 1 of 'toy', not version 2"):
        filled(tmp_path / "store")


def test_one_and_one_point_zero_are_the_same_spec(tmp_path: Path) -> None:
    first = filled(tmp_path / "store", lr=1, drift=(0, 1))
    assert filled(tmp_path / "store", lr=1.0, drift=(0.0, 1.0)).equals(first)


def test_overwrite_replaces_only_our_own(tmp_path: Path) -> None:
    path = tmp_path / "store"
    filled(path)
    assert filled(path, lr=0.5, overwrite=True).equals(filled(tmp_path / "other", lr=0.5))
    foreign = tmp_path / "photos"
    foreign.mkdir()
    (foreign / "dog.txt").write_text("wuff")
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="not a rarefy store; left untouched"):
            filled(foreign, overwrite=overwrite)
    assert tree(foreign) == {"dog.txt": b"wuff"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other", "photos", "store"]


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for path in (file, file / "deeper" / "store"):
        with pytest.raises(UsageError, match="is a file"):
            filled(path, overwrite=True)
    assert file.read_text() == "mine" and len(list(tmp_path.iterdir())) == 1


def test_an_empty_folder_and_left_overs_of_a_killed_creation_are_fine(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    half = tmp_path / ".store.building"
    half.mkdir()
    (half / "zarr.json").write_text("{")
    filled(tmp_path / "store")
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_a_damaged_store_says_so_and_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "store"
    filled(path)
    (path / "zarr.json").write_text("{")
    with pytest.raises(UsageError, match="is damaged.*--overwrite"):
        filled(path)
    whole = filled(path, overwrite=True)
    (path / "end" / "c" / "0").write_bytes(b"rubbish")
    with pytest.raises(RunError, match="is damaged"):
        filled(path)
    assert filled(path, overwrite=True).equals(whole)


@pytest.mark.fault(
    theme="Runs and trainings that are stopped or fail",
    when="two processes are to write one store",
    then="the second is told who holds it (pid, host, since when); the lock of a dead one is "
    "taken over",
    lost="nothing",
    named="two parents on one store",
)
def test_a_second_writer_is_refused_and_a_dead_ones_lock_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "store"
    (tmp_path / ".store.lock").write_text("999999")
    first = Store(path, Toy.at("tiny"), "tiny", "float32")
    first.begin()
    owner = rf"pid {os.getpid()} on {socket.gethostname()} since 2\d{{3}}-.*:\d\d.*"
    with pytest.raises(UsageError, match=rf"another process \({owner}\); wait for it"):
        filled(path)
    first.close()
    assert not (tmp_path / ".store.lock").exists()
    assert filled(path).attrs["cells_done"] == 12


def test_cells_that_are_not_done_are_nan(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", Toy.at("tiny"), "tiny", "float32")
    store.begin()
    outputs = {name: np.ones((2, *shape), dtype="float32") for name, shape in store.shapes.items()}
    store.write(np.array([0, 3]), outputs, 4.0)
    store.close()
    results = store.read()
    assert results["end"].notnull().sum() == results.attrs["cells_done"] == 2
    assert store.wall_seconds() == 4.0


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda outputs: outputs.pop("end"), "did not give its output 'end'"),
        (lambda outputs: outputs.update(extra=np.ones(1)), "'extra' it does not declare"),
        (lambda outputs: outputs.update(end=np.ones((1, 2))), r"'end' with shape \(1, 2\)"),
    ],
)
def test_wrong_outputs_are_named(tmp_path: Path, spoil: object, said: str) -> None:
    store = Store(tmp_path / "store", Toy.at("tiny"), "tiny", "float32")
    store.begin()
    outputs = {name: np.ones((1, *shape)) for name, shape in store.shapes.items()}
    spoil(outputs)  # type: ignore[operator]
    with pytest.raises(RunError, match=said):
        store.write(np.array([0]), outputs, 1.0)
    assert not store.done().any()
    store.close()


def test_a_store_opens_by_its_path_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = filled(tmp_path / "store", drift=(0.25,))
    only(monkeypatch, Toy)
    store = open_store(tmp_path / "store")
    assert store.study == Toy.at("tiny", drift=(0.25,)) and store.scale == "tiny"
    assert store.read().identical(results)
    with pytest.raises(UsageError, match="no store at"):
        open_store(tmp_path / "nothing")


def test_texts_and_tuples_as_axes(tmp_path: Path) -> None:
    class Words(Toy):
        axes = ("rule", "drift", "sigma")

    results = rarefy.run(
        Words, scale="tiny", device="cpu", rule=("plain", "odd"), out=tmp_path / "store"
    )
    assert results["rule"].values.tolist() == ["plain", "odd"]
    assert rarefy.run(
        Words, scale="tiny", device="cpu", rule=("plain", "odd"), out=tmp_path / "store"
    ).identical(results)


# -------------------------------------------------------------------------------------------- files


KIND = default_buffer_prototype()


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("size", [0, 3, SMALL, SMALL + 1])
def test_small_and_large_files_are_those_of_zarr(
    size: int, at_once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zarr_places, "HAS_SYNC", at_once and zarr_places.HAS_SYNC)
    content = os.urandom(size)

    async def used() -> None:
        ours, theirs = Files(tmp_path), LocalStore(tmp_path, read_only=True)
        assert await ours.get("a/b", KIND) is None
        for written in (b"before", content):  # the second in its place
            await ours.set("a/b", KIND.buffer.from_bytes(written))
        for store in (ours, theirs, ours.with_read_only(True)):
            for part in (None, RangeByteRequest(1, 3)):
                found = await store.get("a/b", KIND, part)
                assert found is not None
                assert found.to_bytes() == (content if part is None else content[1:3])
        with pytest.raises(ValueError, match="read-only"):
            await ours.with_read_only(True).set("a/b", KIND.buffer.from_bytes(b""))

    asyncio.run(used())
    assert [each.name for each in (tmp_path / "a").iterdir()] == ["b"]  # nothing half written


def test_a_process_that_was_forked_flushes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The threads that wait for the disk stay behind in the first one."""
    flushed: list[Path] = []
    monkeypatch.setattr(chunks, "flush", flushed.append)
    pools = []
    for process in (1, 1, 2):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        chunks.flush_all([tmp_path, tmp_path / "a"])
        pools.append(chunks._flushers(process))
    assert sorted(flushed) == [tmp_path] * 3 + [tmp_path / "a"] * 3
    assert pools[0] is pools[1] is not pools[2]
