"""Stores.

A file that is lost, changed or cut short must be named, and only what it held computed again.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from toy_study import Toy, only
from zarr.codecs import ZstdCodec

import rarefy
from rarefy import cli
from rarefy.core.errors import RarefyError, RunError, WentAway
from rarefy.studies import get_study
from rarefy.studies.api import open_store
from rarefy.sweep import arrays, checking, chunks, store
from rarefy.sweep.checking import find_things
from rarefy.sweep.runner import execute

pytestmark = pytest.mark.usefixtures("eager")
check = partial(checking.check, find=get_study)
CELLS = 72


@pytest.fixture(autouse=True)
def toy_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, Toy)


def run(path: Path, **options: Any) -> xr.Dataset:
    return rarefy.run(Toy, scale="tiny", seeds=12, device="cpu", out=path, **options)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "toy-tiny"
    run(path)
    return path


@pytest.fixture
def path(undisturbed: Path, tmp_path: Path) -> Path:
    """A finished store of 72 cells, to be damaged."""
    return Path(shutil.copytree(undisturbed, tmp_path / "toy-tiny"))


def flip(path: Path, bit: int = 99) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def values(path: Path) -> dict[str, bytes]:
    group = zarr.open_group(path, mode="r")
    return {name: array[:].tobytes() for name, array in group.arrays() if name != "run_seconds"}


def everyone_refuses(path: Path, said: str) -> None:
    """Python and the report's door: neither takes a damaged store for a whole one."""
    with pytest.raises(RunError, match=said) as caught:
        run(path)
    assert "\n" not in str(caught.value) and f"rarefy check {path} --repair" in str(caught.value)
    with pytest.raises(RunError, match=said):
        open_store(path).read()
    (thing,) = find_things(path)
    assert check(thing).state == "damaged"


def repaired(path: Path, cells: int, undisturbed: Path) -> None:
    """Only ``cells`` are computed again, and then the store is that of an undisturbed run."""
    (thing,) = find_things(path)
    assert check(thing, repair=True).what == (
        f"the same run computes {cells} cells again" if cells else "it is whole again"
    )
    assert open_store(path).done().sum() == CELLS - cells
    again = run(path)
    assert values(path) == values(undisturbed)
    assert again.attrs["cells_done"] == CELLS and check(thing).state == "ok"


@pytest.mark.fault(
    when="a chunk file of a finished store is lost",
    then="every verb names it and its cells; after `rarefy check --repair` the same run computes "
    "those cells again, and gives the bits of an undisturbed run",
    lost="the cells in it",
    named="truncated or garbled chunk",
)
def test_d3_a_lost_chunk_is_named_and_computed_again(path: Path, undisturbed: Path) -> None:
    (path / "path" / "c" / "1" / "0" / "0").unlink()
    everyone_refuses(path, r"path/c/1/0/0 is missing \(cells 32 to 63\)")
    repaired(path, 32, undisturbed)


@pytest.mark.quick("key", "run_seconds", "end")
@pytest.mark.fault(
    when="one bit of a chunk file is flipped, in an output, the keys, the times or the record of "
    "what is done",
    then="the same: it is named, and its cells alone are computed again",
    lost="the cells in it",
    named="truncated or garbled chunk",
)
@pytest.mark.parametrize("name", ["end", "nonfinite_step", "key", "run_seconds", "done"])
def test_d3_a_flipped_bit_is_named_and_computed_again(
    path: Path, undisturbed: Path, name: str
) -> None:
    flip(path / name / "c" / "2")
    everyone_refuses(path, rf"{name}/c/2 is damaged \(cells 64 to 71\)")
    repaired(path, 8, undisturbed)


@pytest.mark.fault(
    when="only some cells of a batch are lost (a batch that was asked for is larger than a chunk)",
    then="the whole batch is computed again: a cell's last bits can depend on its company",
    lost="the cells of that batch",
)
def test_d3_the_batch_of_a_lost_cell_is_computed_again(tmp_path: Path, undisturbed: Path) -> None:
    path = tmp_path / "toy-tiny"
    execute(Toy.at("tiny", seeds=12), "tiny", device="cpu", out=path, batch=1, max_seconds=1e-9)
    execute(Toy.at("tiny", seeds=12), "tiny", device="cpu", out=path, batch=64)
    flip(path / "end" / "c" / "1")
    repaired(path, 64, undisturbed)


def cut_short(file: Path) -> None:
    file.write_text(file.read_text()[:40])


def of_another_shape(file: Path) -> None:
    file.write_text(file.read_text().replace("72", "7"))


def of_another_kind(file: Path) -> None:
    file.write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')


@pytest.mark.quick("end-unlink", "done-cut_short", "done-of_another_kind")
@pytest.mark.fault(
    when="the description of an array (its `zarr.json`) is lost, cut short or of another kind",
    then="it is named; `rarefy check --repair` writes it again, and nothing has to be computed",
    lost="nothing",
)
@pytest.mark.parametrize("spoil", [Path.unlink, cut_short, of_another_shape, of_another_kind])
@pytest.mark.parametrize("name", ["end", "done"])
def test_d3_a_lost_description_is_named_and_made_again(
    path: Path, undisturbed: Path, spoil: Callable[[Path], None], name: str
) -> None:
    spoil(path / name / "zarr.json")
    everyone_refuses(path, f"{name}/zarr.json is missing or damaged")
    repaired(path, 0, undisturbed)


@pytest.mark.fault(
    when="an output is NaN in every cell of a chunk",
    then="its file is written like any other, so that it is not taken for a lost one",
    lost="nothing",
)
def test_d3_chunks_of_nan_are_not_lost_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate = Toy.simulate

    def nothing(*arguments: Any) -> dict[str, np.ndarray]:
        return simulate(*arguments) | {"end": np.full(len(arguments[1]), np.nan)}

    monkeypatch.setattr(Toy, "simulate", nothing)
    assert run(tmp_path / "store")["end"].isnull().all()
    assert check(*find_things(tmp_path / "store")).state == "ok"


@pytest.mark.fault(
    when="power fails in the middle of a run",
    then="whatever is said to be done is on the disk: outputs are flushed before `done` is written",
    lost="the batches in flight",
    named="power cut",
)
def test_d3_outputs_are_on_the_disk_before_done_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    top = tmp_path / "store"

    def watch(path: Path) -> None:
        if path.is_relative_to(top):
            done = (top / "done" / "c" / "0").exists()
            flushed.append(f"{path.relative_to(top)} {done}")

    monkeypatch.setattr(chunks, "flush", watch)
    rarefy.run(Toy, scale="tiny", seeds=1, device="cpu", out=top)
    for file in ("end/c/0", "path/c/0/0/0", "run_seconds/c/0", "end/c", "path/c/0/0"):
        assert f"{file} False" in flushed
    assert "done/c/0 True" in flushed and "done/c True" in flushed


@pytest.mark.fault(
    when="a power cut has left half a chunk of cells that are not done",
    then="it is removed, and the run goes on",
    lost="the batches in flight",
)
def test_d3_rubbish_where_nothing_is_done_does_not_stop_a_run(
    tmp_path: Path, undisturbed: Path
) -> None:
    run(tmp_path / "store", max_seconds=1e-9)
    for name in ("end", "sigma"):
        (tmp_path / "store" / name / "c").mkdir(exist_ok=True)
        (tmp_path / "store" / name / "c" / "0").write_bytes(b"")
    run(tmp_path / "store")
    assert values(tmp_path / "store") == values(undisturbed)
    assert check(*find_things(tmp_path / "store")).state == "ok"


@pytest.mark.fault(
    when="a store is from before checksums",
    then="it is read and gone on with; one note says that damage may go unnoticed, and what could "
    "have been lost",
    lost="nothing; damage may go unnoticed",
)
def test_d3_old_stores_are_read_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "store"
    monkeypatch.setattr(arrays, "CODECS", (ZstdCodec(),))
    whole = run(path)
    capsys.readouterr()
    monkeypatch.setattr(store, "_told_old", set())
    (path / "end" / "c" / "0").unlink()  # as Zarr leaves a chunk of NaN, there
    found = [open_store(path).read() for _ in range(3)][0]
    assert found["path"].equals(whole["path"]) and int(found["end"].isnull().sum()) == 32
    said = capsys.readouterr().err
    assert said.count("note:") == 1 and "is from before checksums" in said
    assert "1 files are not there: all their values are NaN, or they were lost" in said
    assert check(*find_things(path)).state == "no checksums"
    (path / "run_seconds" / "c" / "1").unlink()  # never empty
    with pytest.raises(RunError, match="run_seconds/c/1 is missing"):
        open_store(path).read()


@pytest.mark.fault(
    when="fields of a store's own `zarr.json` are missing, of another kind or changed",
    then="one line names store and field",
    lost="the store, until the field is put right",
    named="truncated or garbled JSON",
)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda told: told["choices"]["cpu"].update(batch=0), "choices.cpu.batch is 0"),
        (lambda told: told["choices"]["cpu"].update(batch="many"), "choices.cpu.batch is 'many'"),
        (lambda told: told["choices"].update(cpu=[]), "choices.cpu.batch is None"),
        (lambda told: told["spec"].pop("version"), "spec.version is missing"),
        (lambda told: told["spec"]["parameters"].pop("seeds"), "spec.parameters.seeds is None"),
        (lambda told: told.pop("spec"), "spec is missing"),
        (lambda told: told.update(scale=3), "scale is 3"),
        (lambda told: told.update(provenance=[]), r"provenance is \[\]"),
        (lambda told: told["choices"]["cpu"].update(batch=4), "not as it was written"),
    ],
)
def test_d12_fields_of_the_wrong_kind_are_named(
    path: Path, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    described = json.loads((path / "zarr.json").read_text())
    change(described["attributes"])
    (path / "zarr.json").write_text(json.dumps(described))
    with pytest.raises(RarefyError, match=rf"store {path} is damaged \(zarr\.json: {said}\)"):
        run(path)
    assert check(*find_things(path)).state == "damaged"


@pytest.mark.fault(
    when="`rarefy run`, `report` or `check` meet a store that lost a folder of chunks",
    then="exit code 1 and one line, no verdict; repaired and run again, the verdicts are the same",
    lost="the cells in it",
)
def test_d3_the_verbs_say_so_and_exit_with_1(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    only(monkeypatch, Toy)
    typed = ["run", "toy", "--scale", "tiny", "--out", "s", "--json"]
    assert cli.main(typed) == 0
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert cli.main(["check", "s"]) == 0 and capsys.readouterr().out == "s: ok\n"
    for each in Path("s/end/c").iterdir():
        each.rename(each.with_name(f"lost-{each.name}"))
    for verb in (typed, ["report", "s"], [*typed, "--results", "r"]):
        assert cli.main(verb) == 1
        shown = capsys.readouterr()
        assert shown.err.startswith("error: store s is damaged: end/c/0")
        assert shown.err.count("\n") == 1 and not shown.out
    assert not Path("r").exists() and not Path("report.html").exists()
    assert cli.main(["check", "s", "--json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["state"]) == ("store", "damaged")
    assert cli.main(["check", "s", "--repair"]) == 0
    assert capsys.readouterr().out == "s: repaired: the same run computes 12 cells again\n"
    assert cli.main(typed) == 0
    assert json.loads(capsys.readouterr().out)["verdicts"] == verdicts
    assert cli.main(["check", "nowhere"]) == 2 and cli.main(["check", "."]) == 0
    Path("empty").mkdir()
    assert cli.main(["check", "empty"]) == 2


FORKED = """
import os, sys
import rarefy
from toy_study import Toy, only
rarefy.run(Toy, scale="tiny", device="cpu", out="a")
child = os.fork()
if not child:
    rarefy.run(Toy, scale="tiny", device="cpu", out="b")
    os._exit(0)
sys.exit(os.waitpid(child, 0)[1])
"""


@pytest.mark.slow
@pytest.mark.fault(
    when="a program forks after it has run a study, and the child runs one too",
    then="the child's run ends: nothing that writes stores is kept between two runs",
    lost="nothing",
)
def test_d3_a_forked_process_can_write_stores(
    toy_environment: dict[str, str], tmp_path: Path
) -> None:
    environment = {**toy_environment, "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-c", FORKED]
    ended = subprocess.run(program, cwd=tmp_path, env=environment, timeout=60, check=False)
    assert ended.returncode == 0 and (tmp_path / "b" / "done").is_dir()


@pytest.mark.fault(
    when="the folder of a store goes away during a run: it is moved, or its disk is unplugged",
    then="one line names it, exit code 3; back in its place the same command goes on",
    lost="the batches in flight",
)
@pytest.mark.parametrize("batch", [1, 2])
def test_a_store_that_goes_away_is_named(
    batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: Path
) -> None:
    path, away, simulate, calls = tmp_path / "s", tmp_path / "away", Toy.simulate, []

    def moved(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == batch:
            path.rename(away)
        return simulate(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Toy, "simulate", moved)
        with pytest.raises(
            WentAway, match=rf"^store {path} is no longer there; what was"
        ) as caught:
            run(path)
    assert caught.value.exit_code == 3 and not path.exists()
    away.rename(path)
    assert np.array_equal(run(path)["end"], open_store(undisturbed).read()["end"])
