"""Stores and results at an address: the same numbers as in a folder, whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from fsspec.implementations.memory import MemoryFileSystem
from toy_study import Toy, only
from toy_training import ToyTraining

import rarefy
from rarefy import cli
from rarefy.core.errors import UsageError
from rarefy.core.place import Place, Remote, as_place
from rarefy.studies.api import open_store, read_results
from rarefy.sweep import arrays, lease, runner
from rarefy.sweep.objects import Objects

pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture(autouse=True)
def toy_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, Toy)


@pytest.fixture(params=["memory", "s3"])
def address(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def run(out: Place | str, seeds: int = 12, **options: Any) -> xr.Dataset:
    return rarefy.run(Toy, scale="tiny", seeds=seeds, device="cpu", out=out, **options)


def told(dataset: xr.Dataset) -> dict[str, Any]:
    return {name: value for name, value in dataset.attrs.items() if name != "provenance"}


def test_the_same_study_gives_the_same_dataset_everywhere(address: str, tmp_path: Path) -> None:
    here, there = run(tmp_path / "toy"), run(f"{address}/toy")
    assert there.identical(here.assign_attrs(there.attrs))
    assert told(there) == told(here)
    more = run(f"{address}/toy/", seeds=13)  # extends it
    assert more.equals(run(tmp_path / "toy", seeds=13))
    assert run(f"{address}/toy").equals(here)
    names = {each.name for each in as_place(address).iterdir()}
    assert names == {"toy"}  # neither lease nor mark is left


def test_a_file_address_is_the_local_store(tmp_path: Path) -> None:
    run(tmp_path / "toy")
    assert run(f"file://{tmp_path}/toy").attrs["cells_done"] == 72
    assert [each.name for each in tmp_path.iterdir()] == ["toy"]


def test_others_can_open_it_with_xarray(s3: str) -> None:
    run(f"{s3}/toy")
    flat = xr.open_zarr(f"{s3}/toy", consolidated=False)
    assert flat["path"].dims == ("run", "step", "side")
    assert bool(flat["done"].all())


def test_another_spec_is_refused_and_overwritten_when_asked(memory: str) -> None:
    run(f"{memory}/toy")
    with pytest.raises(UsageError, match=rf"^store {memory}/toy was made with lr=1.0, not 2.0; use"):
        run(f"{memory}/toy", lr=2.0)
    changed = run(f"{memory}/toy", lr=2.0, overwrite=True)
    assert changed.equals(rarefy.run(Toy, scale="tiny", seeds=12, device="cpu", lr=2.0))


@pytest.mark.parametrize("name", ["note.txt", "zarr.json", "done/zarr.json"])
def test_what_is_not_ours_is_left_alone(memory: str, name: str) -> None:
    foreign = as_place(f"{memory}/toy") / name
    assert isinstance(foreign, Remote)
    foreign.write_bytes(b"{}")
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="not a rarefy store; left untouched"):
            run(f"{memory}/toy", overwrite=overwrite)
    with pytest.raises(UsageError, match="is a file; a store is a folder"):
        run(foreign)
    assert foreign.read_bytes() == b"{}"


def test_a_bucket_is_no_name(s3: str) -> None:
    with pytest.raises(UsageError, match="has no name of its own; name something inside it"):
        run(s3)


class Killed(BaseException):
    """The process is gone: nothing that it would still do happens."""


def dying(monkeypatch: pytest.MonkeyPatch, after: int) -> Callable[[], int]:
    """Every change of an object counts, and after so many of them nothing works any more. Gives how
    many there were."""
    count = 0

    def step() -> None:
        nonlocal count
        if count >= after:
            raise Killed
        count += 1

    def changing(kind: type, name: str) -> None:
        original = getattr(kind, name)

        def changed(self: Any, *arguments: Any, **options: Any) -> Any:
            step()
            return original(self, *arguments, **options)

        monkeypatch.setattr(kind, name, changed)

    for name in ("write_bytes", "unlink", "remove_tree"):
        changing(Remote, name)
    for name in ("set", "delete", "delete_dir"):
        changing(Objects, name)
    return lambda: count


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "CHUNK_RUNS", 8)
    monkeypatch.setattr(runner, "BATCH_CPU", 8)
    monkeypatch.setattr(lease, "SETTLING", 0.0)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("earlier", [{}, {"lr": 2.0, "seeds": 1}, {"seeds": 1}])
def test_killed_before_any_write_the_same_command_finishes_it(
    earlier: dict[str, Any], memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a new store, of one that is replaced and of one that is extended. What is there meanwhile
    is no store, or one whose finished cells are right."""
    expected = rarefy.run(Toy, scale="tiny", seeds=2, device="cpu")
    options = {"seeds": 2, "overwrite": "lr" in earlier}
    if earlier:
        run(f"{memory}/earlier", **earlier)
    files, after, finished = MemoryFileSystem(), 0, False
    while not finished:
        where = f"{memory}/{after}"
        if earlier:
            files.copy(f"{memory}/earlier", where, recursive=True)
        with monkeypatch.context() as patch:
            changes = dying(patch, after)
            try:
                run(where, **options)
                finished = True
            except Killed:
                pass
        with monkeypatch.context() as patch:
            # (this process is not that one)
            patch.setattr(lease, "_is_alive", lambda pid: False)
            try:
                left = open_store(where)
                if left.study.parameters()["lr"] == 1.0:
                    found = left.read()["end"]
                    there = expected["end"].sel(seed=found["seed"])
                    assert ((found == there) | found.isnull()).all()
                    # (what follows is as for a new store)
                    finished |= bool(earlier) and int(found.notnull().sum()) > 6
            except UsageError as error:
                assert str(error) == f"no store at {where}"
            assert run(where, **options).equals(expected)
        after += 1
    assert changes() == after - 1 > 20


def test_results_are_written_and_read_there(address: str, tmp_path: Path) -> None:
    out, results = f"{address}/toy", f"{address}/results"
    line = ["run", "toy", "--scale", "tiny", "--device", "cpu"]
    assert cli.main([*line, "--out", out, "--results", results]) == 0
    assert {each.name for each in as_place(results).iterdir()} == {"toy-tiny.json", "toy-tiny.parquet"}
    assert cli.main([*line, "--out", str(tmp_path / "toy"), "--results", str(tmp_path)]) == 0
    there = read_results(f"{results}/toy-tiny.parquet")
    here = read_results(str(tmp_path / "toy-tiny.json"))
    assert there[:2] == here[:2]
    assert there[2].equals(here[2])
    # the results are what a longer run begins with
    assert cli.main([*line, "--out", f"{address}/more", "--results", results, "--seeds", "3"]) == 0


def test_check_report_and_verify_take_addresses(
    memory: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, results = f"{memory}/deep/toy", f"{memory}/results"
    line = ["run", "toy", "--scale", "tiny", "--device", "cpu", "--out", out]
    assert cli.main([*line, "--results", results]) == 0
    assert cli.main([*line, "--results", results]) == 0
    assert "are there already (--overwrite runs it again)" in capsys.readouterr().err
    assert cli.main(["check", memory]) == 0
    said = capsys.readouterr().out
    assert f"{out}: ok" in said
    assert f"{results}/toy-tiny.parquet: ok" in said
    assert cli.main(["check", f"{results}/toy-tiny.json"]) == 0
    assert cli.main(["check", f"{memory}/nothing"]) == 2
    assert "there is no such file or folder" in capsys.readouterr().err
    assert cli.main(["report", out, results, "--out", "page.html"]) == 0
    assert "A random walk with drift" in Path("page.html").read_text("utf-8")
    assert cli.main(["verify", results]) == 2
    assert "the ledger has no verdict of toy at scale tiny" in capsys.readouterr().err


def test_trainings_under_way_stay_on_this_machine(memory: str, tmp_path: Path) -> None:
    where = as_place(f"{memory}/toy")
    study = ToyTraining.at("tiny")
    store = runner.Store(where, study, "tiny", "float32")
    store.begin()
    first = store.scratch
    assert first.is_relative_to(tmp_path / "cache" / "rarefy" / "scratch")
    store.remember(inputs={"images": "others"})
    assert store.scratch != first  # made of something else
    store.close()
    again = runner.Store(where, study, "tiny", "float32", overwrite=True)
    again.begin()
    again.remember(inputs={"images": "others"})
    assert again.scratch != store.scratch  # of the store that was replaced
    again.close()
