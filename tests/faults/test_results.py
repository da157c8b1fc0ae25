"""Result files.

A pair of files is believed only if its parts fit each other and the study as it is today.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import xarray as xr
from toy_study import Toy, only

import rarefy
from rarefy import cli
from rarefy.core.contracts import Study
from rarefy.core.errors import RunError, UsageError
from rarefy.core.writing import write_output
from rarefy.ledger import verdicts as ledger
from rarefy.studies import get_study
from rarefy.studies.api import read_results
from rarefy.sweep import checking
from rarefy.sweep.checking import find_things
from rarefy.sweep.results import (
    check_folder,
    find_finished,
    find_results,
    write_results,
)
from rarefy.sweep.spec import with_parameters

pytestmark = pytest.mark.usefixtures("eager")
check = partial(checking.check, find=get_study)
KNOWN: dict[str, type[Study]] = {"toy": Toy}


@pytest.fixture(autouse=True)
def toy_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, *KNOWN.values())


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    write_results(Toy.at("tiny"), "tiny", rarefy.run(Toy, scale="tiny", device="cpu"), folder)
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "results"))


def whole(written: Path) -> xr.Dataset:
    return read_results(written / "toy-tiny.json")[2]


def change(folder: Path, how: Callable[[dict[str, Any]], object]) -> None:
    file = folder / "toy-tiny.json"
    described = json.loads(file.read_text())
    how(described)
    file.write_text(json.dumps(described))


def rows(folder: Path, how: Callable[[pa.Table], pa.Table]) -> None:
    """Change the table of results that are older than their hash."""
    file = folder / "toy-tiny.parquet"
    pq.write_table(how(pq.read_table(file)), file)
    change(folder, lambda told: told.pop("parquet"))


@pytest.mark.fault(
    when="rows of a Parquet file come in another order",
    then="they are put where their coordinates say, and the Dataset is the same",
    lost="nothing",
)
def test_d7_rows_are_placed_by_their_coordinates(folder: Path, written: Path) -> None:
    rows(folder, lambda table: table.take([5, 3, 11, 0, 1, 2, 4, 10, 9, 8, 7, 6]))
    assert read_results(folder / "toy-tiny.json")[2].identical(whole(written))


@pytest.mark.fault(
    when="rows are missing, there twice, too many, or of no cell",
    then="the Parquet file is named, with what is wrong",
    lost="that file",
)
@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda table: table.slice(1), "has 11 rows for 12 cells"),
        (lambda table: pa.concat_tables([table, table]), "has 24 rows for 12 cells"),
        (lambda table: table.take([0, 0, *range(2, 12)]), "has rows of the same cell twice"),
        (
            lambda table: table.set_column(0, "drift", pa.array([9.0, *[1.0] * 11])),
            "has a row with drift=9.0, which is none of its cells",
        ),
        (lambda table: table.drop_columns(["end"]), "KeyError"),
    ],
)
def test_d7_rows_that_do_not_fit_are_refused(
    folder: Path, how: Callable[[pa.Table], pa.Table], said: str
) -> None:
    rows(folder, how)
    with pytest.raises(RunError, match=rf"toy-tiny\.parquet: {said}"):
        read_results(folder / "toy-tiny.parquet")


@pytest.mark.fault(
    when="a Parquet file is not the one that was written with its JSON",
    then="its hash says so; files from before the hash are read, and `rarefy check` says they have "
    "none",
    lost="that file",
    named="truncated or garbled result Parquet",
)
def test_d7_the_hash_of_the_table_is_checked(folder: Path) -> None:
    (thing,) = find_things(folder)
    assert check(thing).state == "ok"
    rows(folder, lambda table: table)
    assert check(thing).state == "no checksums"
    read_results(thing.path)
    change(folder, lambda told: told.update(parquet={"blake2b": "0" * 32}))
    with pytest.raises(RunError, match=r"toy-tiny\.parquet are damaged \(its hash is not the one"):
        read_results(thing.path)
    assert check(thing).state == "damaged"


@pytest.mark.fault(
    when="what a JSON says of its study is not so: version, parameters, hash, scale, sizes, "
    "coordinates or outputs",
    then="the JSON is named, with the field",
    lost="that file",
    named="truncated or garbled JSON",
)
@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda told: told["spec"].update(version=0), "was made by version 0 of 'toy', not"),
        (lambda told: told["spec"]["parameters"].update(lr=123), "attributes.parameters should be"),
        (
            lambda told: [told[x]["parameters"].update(lr=123) for x in ("spec", "attributes")],
            "attributes.spec_hash should be",
        ),
        (lambda told: told["spec"]["parameters"].update(momentum=1), "was made with momentum=1"),
        (lambda told: told.update(scale="quick"), "attributes.scale should be quick"),
        (lambda told: told.update(scale="huge"), "has scale 'huge', which toy does not have"),
        (lambda told: told["attributes"].update(cells=7), "attributes.cells should be 12"),
        (lambda told: told["attributes"].update(dtype="float64"), "attributes.dtype should be"),
        (lambda told: told["cell_dims"].reverse(), "has cells by"),
        (lambda told: told["coordinates"]["step"]["values"].reverse(), "other values of step"),
        (lambda told: told["variables"].pop("end"), "has other outputs than toy"),
        (lambda told: told["variables"]["end"].update(dtype="?!"), "toy-tiny.parquet: TypeError"),
        (lambda told: told.pop("scale"), "is damaged: scale is missing"),
        (lambda told: told["spec"].pop("version"), "is damaged: spec.version is missing"),
        (lambda told: told.update(format=2), "has format 2, known is 1"),
    ],
)
def test_d7_a_description_that_does_not_fit_is_refused(
    folder: Path, how: Callable[[dict[str, Any]], object], said: str
) -> None:
    change(folder, how)
    with pytest.raises(RunError) as caught:
        read_results(folder / "toy-tiny.parquet")
    assert said in str(caught.value) and "toy-tiny." in str(caught.value)


@dataclass(frozen=True, kw_only=True)
class Younger(Toy):
    """The toy after somebody gave it one more parameter."""

    form: str = "auto"


@pytest.mark.fault(
    when="results are older than a parameter of their study",
    then="they count as made with its default (one that changes results must raise the version), "
    "and are refused where another value is asked for",
    lost="nothing",
)
def test_d7_a_younger_parameter_has_its_default(
    folder: Path, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, Younger)
    study, _, read = read_results(folder / "toy-tiny.json")
    assert study == Younger.at("tiny") and read.identical(whole(written))
    check_folder(Younger.at("tiny"), "tiny", "float32", folder)
    with pytest.raises(UsageError, match="was made before there was form=dual"):
        check_folder(Younger.at("tiny", form="dual"), "tiny", "float32", folder)


@pytest.mark.fault(
    when="results are judged by a study that no longer has one of their parameters",
    then="it is named; it was left out without a word",
    lost="that file",
)
def test_d7_a_parameter_that_is_gone_is_named() -> None:
    with pytest.raises(UsageError, match="was made with momentum=0.9, which is no parameter"):
        with_parameters(Toy, {"momentum": 0.9})


@pytest.mark.fault(
    when="one of the files that `rarefy verify` judges is damaged or does not fit",
    then="it is named, the others are judged, exit code 1",
    lost="that file",
)
def test_d7_verify_names_what_it_cannot_judge(
    here: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    quick = rarefy.run(Toy, scale="quick", device="cpu")
    write_results(Toy.at("quick"), "quick", quick, folder)
    verdicts = Toy.at("tiny").verdicts(whole(folder), "tiny")
    verdicts += Toy.at("quick").verdicts(quick, "quick")
    monkeypatch.setattr(ledger, "load_verdicts", lambda: verdicts)
    assert cli.main(["verify", "results"]) == 0
    assert "2 readings are as in the ledger" in capsys.readouterr().out
    for spoil in (
        lambda: (folder / "toy-quick.parquet").write_bytes(b"garbage"),
        lambda: (folder / "toy-quick.json").write_text("{"),
        lambda: (folder / "toy-quick.parquet").unlink(),
    ):
        write_results(Toy.at("quick"), "quick", quick, folder)
        spoil()
        assert cli.main(["verify", "results"]) == 1
        shown = capsys.readouterr()
        assert shown.err.count("error:") == 1 and "toy-quick." in shown.err
        assert shown.out == "1 results cannot be judged: toy-quick.parquet\n"


@pytest.mark.fault(
    when="the JSON in the folder of `rarefy run --results` is damaged",
    then="it is named before anything runs",
    lost="that file",
    named="truncated or garbled JSON",
)
@pytest.mark.parametrize("text", ["", "{", "[]", '{"spec": 3}', "[" * 100_000])
def test_d12_a_damaged_json_beside_is_named(
    here: Path, folder: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "toy-tiny.json").write_text(text)
    assert cli.main(["run", "toy", "--scale", "tiny", "--results", "results"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: cannot read results results/toy-tiny.json: ")
    assert said.count("\n") == 1 and not Path("runs").exists()


@pytest.mark.fault(
    when="the Parquet file in the folder of `rarefy run --results` is garbage",
    then="the study does not count as done: it is refused, and the file named",
    lost="that file",
    named="truncated or garbled result Parquet",
)
def test_d7_a_garbage_table_does_not_count_as_done(folder: Path) -> None:
    asked = (KNOWN["toy"].at("tiny"), "tiny", "float32", folder)
    assert find_finished(*asked) == folder / "toy-tiny.parquet"
    for older in (False, True):
        (folder / "toy-tiny.parquet").write_bytes(b"garbage")
        if older:
            change(folder, lambda told: told.pop("parquet"))
        with pytest.raises(RunError, match=r"toy-tiny\.parquet are damaged"):
            find_finished(*asked)


@pytest.mark.fault(
    when="one file of a pair is gone",
    then="`rarefy check` says which; results without their table are not passed over",
    lost="that pair",
)
def test_d7_half_a_pair_is_found(folder: Path) -> None:
    table = folder / "toy-tiny.parquet"
    kept = table.read_bytes()
    table.unlink()
    assert find_results(folder) == [table]
    assert "toy-tiny.parquet: No such file" in check(*find_things(folder)).what
    table.write_bytes(kept)
    (folder / "toy-tiny.json").unlink()
    assert "toy-tiny.json: No such file" in check(*find_things(folder)).what


@pytest.mark.fault(
    when="a file of the ledger, or a saved network, is damaged",
    then="`rarefy check` names it, with exit code 1; `rarefy verify` names the ledger's file too",
    lost="that file",
)
def test_d12_ledgers_and_networks_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ledger, "ledger_folder", lambda: tmp_path)
    results = rarefy.run(Toy, scale="tiny", device="cpu")
    ledger.save_verdicts(Toy.at("tiny").verdicts(results, "tiny"))
    network = tmp_path / "net.pt"
    about = {"channels": 1, "size": 8, "classes": ["a"], "network": "cnn"}
    torch.save({"state_dict": {"weight": torch.ones(9)}, **about}, network)
    assert cli.main(["check", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.count(": ok\n") == 2 and said.endswith("as far as can be told, all are whole\n")
    content = bytearray(network.read_bytes())
    content[content.index(torch.ones(9).numpy().tobytes()) + 3] ^= 1
    network.write_bytes(content)
    file = tmp_path / "verdicts-toy.json"
    file.write_text(file.read_text().replace('"holds"', '"hlods"'))
    assert cli.main(["check", str(tmp_path)]) == 1
    network_line, ledger_line, last = capsys.readouterr().out.splitlines()
    assert last == "2 of 2 are damaged"
    assert network_line.startswith(f"{network}: damaged: ") and "data/0" in network_line
    assert ledger_line.startswith(f"{file}: damaged: cannot read the ledger verdicts-toy.json")
    with pytest.raises(RunError, match=r"verdicts-toy\.json: UsageError: outcome='hlods'"):
        ledger.load_verdicts()
    torch.save({"state_dict": {}}, network)
    assert check(*find_things(network)).state == "not rarefy's"  # (there is no record of it)
    network.unlink()
    write_output(network, lambda path: torch.save({"state_dict": {}}, path))
    assert "has no channels" in check(*find_things(network)).what
    network.write_bytes(network.read_bytes() + b"more")
    assert check(*find_things(network)).what == "was changed after rarefy wrote it"
