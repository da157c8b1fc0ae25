"""Stores and results at an address: the same numbers as in a folder, whatever happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from toy_study import Toy, only
from toy_training import ToyTraining

import rarefy
from rarefy import cli
from rarefy.core.errors import UsageError
from rarefy.core.place import Place, Remote, as_place
from rarefy.studies.api import open_store, read_results
from rarefy.sweep import runner

pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture(autouse=True)
def toy_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, Toy)


def run(out: Place | str, seeds: int = 12, **options: Any) -> xr.Dataset:
    return rarefy.run(Toy, scale="tiny", seeds=seeds, device="cpu", out=out, **options)


def told(dataset: xr.Dataset) -> dict[str, Any]:
    return {name: value for name, value in dataset.attrs.items() if name != "provenance"}


@pytest.mark.quick("memory")
@pytest.mark.parametrize("where", ["memory", "s3"])
def test_the_same_study_gives_the_same_dataset_everywhere(
    where: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """And the same results, also where a run begins with those of a smaller one."""
    address = request.getfixturevalue(where)
    line = ["run", "toy", "--scale", "tiny", "--device", "cpu"]
    for top in (str(tmp_path), address):
        assert cli.main([*line, "--out", f"{top}/toy", "--results", f"{top}/results"]) == 0
    here, there = (open_store(f"{top}/toy").read() for top in (str(tmp_path), address))
    assert there.identical(here.assign_attrs(there.attrs))
    assert told(there) == told(here)
    assert run(f"{address}/toy/", seeds=3).equals(run(tmp_path / "toy", seeds=3))  # extended
    study, scale, results = read_results(f"{address}/results/toy-tiny.parquet")
    kept = read_results(str(tmp_path / "results" / "toy-tiny.json"))
    assert (study, scale) == kept[:2]
    assert results.equals(kept[2])
    names = {each.name for top in ("", "/results") for each in as_place(address + top).iterdir()}
    # neither lease, mark nor probe is left
    assert names == {"toy", "results", "toy-tiny.json", "toy-tiny.parquet"}
    flat = xr.open_zarr(f"{address}/toy", consolidated=False)  # as others see it
    assert flat["path"].dims == ("run", "step", "side")
    assert bool(flat["done"].all())


def test_a_run_begins_with_the_results_there(
    memory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["run", "toy", "--scale", "tiny", "--device", "cpu", "--results", f"{memory}/results"]
    assert cli.main([*line, "--out", f"{memory}/toy"]) == 0
    assert cli.main([*line, "--out", f"{memory}/more", "--seeds", "3"]) == 0
    assert f"12 cells are taken from {memory}/results" in capsys.readouterr().err


def test_a_file_address_is_the_local_store(tmp_path: Path) -> None:
    run(tmp_path / "toy")
    assert run(f"file://{tmp_path}/toy").attrs["cells_done"] == 72
    assert [each.name for each in tmp_path.iterdir()] == ["toy"]


def test_another_spec_is_refused_and_overwritten_when_asked(memory: str) -> None:
    run(f"{memory}/toy")
    with pytest.raises(
        UsageError, match=rf"^store {memory}/toy was made with lr=1.0, not 2.0; use"
    ):
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
