"""Files made to do harm."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import re
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest
import torch
from fuzz_files import find, home, npy, npz_of, with_member
from fuzz_targets import TARGETS, TYPED
from fuzzing import finding
from numcodecs.zstd import Zstd
from pyarrow import feather, parquet

from rarefy.cli import main
from rarefy.core.errors import RarefyError, RunError, UsageError, bad_value
from rarefy.core.reading import read_json, read_tensors
from rarefy.core.text import UNSEEN, one_line
from rarefy.data.images import unpack_limit
from rarefy.sweep.checking import find_things
from rarefy.sweep.store import open_store
from rarefy.tools.influence.writing import read_table
from rarefy.tools.samples.opening import open_samples
from rarefy.tools.saved_networks import load_network
from rarefy.train.checkpoints import Checkpoint

# -------------------------------------------------------------------------------- what would be run


class Payload:
    """Unpickled by Python itself, it makes a folder."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.place),)


@pytest.mark.fault(
    when="any file that rarefy reads (images, tables, arrays, networks, checkpoints, "
    "states, ledgers) is a pickle that would run code, or holds one",
    then="nothing is run: it is refused in one line that names it",
    lost="nothing",
)
def test_no_reader_runs_a_pickle(tmp_path: Path, eager: None) -> None:
    mark = tmp_path / "was here"
    loaded = [pickle.dumps(Payload(mark), protocol) for protocol in (0, 2, 4)]
    objects = npy(np.array([Payload(mark)] * 5, dtype=object), allow_pickle=True)
    network = with_member(home() / "net.pt", loaded[1])
    forms = [*loaded, objects, npz_of(objects), network]
    for target in (one for one in TARGETS.values() if one not in TYPED):
        for number, content in enumerate(forms):
            place = tmp_path / target.name.replace("/", "-") / str(number)
            place.mkdir(parents=True)
            found = finding(target, content, place)
            assert not found and not mark.exists(), f"{target.name}: {found}"
            shutil.rmtree(place)
    pickle.loads(loaded[1])
    assert mark.exists(), "the payload does what it should not"


# ------------------------------------------------------------------------------ small files, large


def _bombs(folder: Path) -> dict[str, Callable[[], object]]:
    """What reads each: all unpack to hundreds of times of what this test allows."""
    chunk = bytes(Zstd().encode(np.zeros(1 << 24, dtype=np.uint8)))
    shutil.copytree(home() / "store", folder / "store")
    content = chunk + google_crc32c.value(chunk).to_bytes(4, "little")
    (folder / "store/end/c/0").write_bytes(content)
    same = pa.array(np.zeros(1 << 20)).dictionary_encode()
    table = pa.table({"a": same.dictionary_decode(), "label": pa.array(["x"] * (1 << 20))})
    parquet.write_table(table, folder / "t.parquet")
    state = {"state_dict": {"w": torch.zeros(1 << 20)}}
    torch.save(state, folder / "whole.pt")
    with zipfile.ZipFile(folder / "whole.pt") as old:
        with zipfile.ZipFile(folder / "net.pt", "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
    torch.save({"w": torch.zeros(1).expand(1 << 40)}, folder / "wide.pt")
    lists: list[object] = []
    for _ in range(40):
        lists = [lists, lists]
    (folder / "lists.pt").write_bytes(with_member(home() / "net.pt", pickle.dumps(lists, 2)))
    name = b"\x80\x02c" + b"a." * 100_000 + b"\nb\n."
    (folder / "name.pt").write_bytes(with_member(home() / "net.pt", name))
    return {
        "damaged": lambda: open_store(folder / "store", find).read(),
        "take .* of memory, of which": lambda: open_samples(folder / "t.parquet"),
        "packed as PyTorch packs no file": lambda: read_tensors(folder / "net.pt"),
        "a tensor that is larger than its bytes": lambda: read_tensors(folder / "wide.pt"),
        "lists in lists without end": lambda: read_tensors(folder / "lists.pt"),
        "names what no file of PyTorch": lambda: read_tensors(folder / "name.pt"),
    }


@pytest.mark.fault(
    when="a chunk of a store, a Parquet file, a network or a checkpoint is small and would "
    "take gigabytes, or for ever",
    then="it is refused by what it promises, before that is in memory",
    lost="nothing",
)
def test_what_is_small_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack_limit, "LEAST", 1 << 20)
    monkeypatch.setattr("rarefy.tools.samples.tables.free_memory", lambda device: 1 << 20)
    for told, read in _bombs(tmp_path).items():
        with pytest.raises((RarefyError, ValueError), match=told):
            read()
    with pytest.raises(UsageError, match=r"net.pt is not a network that rarefy wrote"):
        load_network(tmp_path / "net.pt")
    assert Checkpoint(tmp_path / "wide.pt").load(torch.device("cpu")) is None


@pytest.mark.fault(
    when="a Feather or Parquet file has categories or texts that lead outside of the file",
    then="it is refused by name; Arrow alone would end the process",
    lost="nothing",
)
def test_places_outside_of_a_table_are_refused(tmp_path: Path) -> None:
    table = pa.table({"a": [1.0, 2, 3, 4], "label": ["first", "second", "first", "second"]})
    path = tmp_path / "t.feather"
    feather.write_feather(table, path, compression="uncompressed")
    ends = struct.pack("<5i", 0, 5, 11, 16, 22)
    content = path.read_bytes()
    assert content.count(ends) == 1
    path.write_bytes(content.replace(ends, struct.pack("<5i", 0, 5, 1 << 30, 16, 22)))
    with pytest.raises(UsageError, match=r"t.feather: cannot be read as a table"):
        open_samples(path)


# ------------------------------------------------------------------- what is no file, or has no end


@pytest.mark.fault(
    when="a named pipe lies among results or networks, under a name as theirs",
    then="it is passed over; nothing waits for it",
    lost="nothing",
)
def test_a_pipe_among_results_is_not_waited_for(tmp_path: Path) -> None:
    for name in ("a.json", "b.parquet", "c.pt"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(UsageError, match="nothing there that can be checked"):
        find_things(tmp_path)


@pytest.mark.fault(
    when="a JSON file is nested thousands deep, is no text, or has numbers of thousands of digits",
    then="one short line names it",
    lost="nothing",
)
@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff\xfe", b"9" * 5000, b'{"a": NaN'])
def test_json_without_end_is_named(content: bytes, tmp_path: Path) -> None:
    for name, target in TARGETS.items():
        if target.seeds()[0][:1] in (b"{", b"["):
            place = tmp_path / str(len(list(tmp_path.iterdir())))
            place.mkdir()
            assert not (found := finding(target, content, place)), f"{name}: {found}"
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"^.{5,100}$"):
        read_json(tmp_path / "x.json")


# -------------------------------------------------------------------------------------------- names

ODD = (
    "<script>alert(1)</script>",
    "\x1b[2J\x1b]0;title\x07\x1b[1Aup",
    "two\nlines\r\x9b2J",
    "\u202egpj.exe\u200f\u2066",
    "[/bold] {{ 7*7 }} %s",
    "=cmd|' /C calc'!A0",
)


@pytest.mark.fault(
    when="names of classes, columns and files hold HTML, sequences that terminals obey, line ends "
    "or marks that turn the direction of writing",
    then="terminal, pages, CSV and JSON show them spelled out and do nothing",
    lost="nothing",
)
def test_names_of_strangers_do_nothing(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    given = Path("\x1b[2J\u202ex.csv")
    draws = np.random.default_rng(0).normal(size=(48, 2))
    with given.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow([ODD[1], ODD[3], "label"])
        table.writerows([*map(str, row), ODD[n % len(ODD)]] for n, row in enumerate(draws))
    call = ["influence", str(given), "--label", "label", "--out", "o", "--csv", "--neighbours", "0"]
    assert main(call) == 0, capfd.readouterr().err
    assert main(["run", ODD[1]]) == main(["check", str(given)]) == 2
    said = capfd.readouterr()
    for text in (said.out, said.err):
        assert "\\x1b" in text and not set(re.findall(UNSEEN, text)) - {"\n"}
    page = Path("o/gallery.html").read_text("utf-8")
    assert "<script>alert" not in page and not set(re.findall(UNSEEN, page)) - {"\n", "\t"}
    names = set(read_table("o/scores.csv")["label"])
    assert names == set(ODD), "as they were, for programs"
    written = Path("o/scores.csv").read_text("utf-8")
    cells = {cell for row in csv.reader(io.StringIO(written, newline="")) for cell in row}
    assert "label" in cells
    assert not any(cell.startswith("=") for cell in cells), "no formula"
    assert any(cell.startswith("'=cmd") for cell in cells)
    json.loads(Path("o/scores.csv.json").read_bytes())


@pytest.mark.fault(
    when="an error quotes a file's name or content that is long, of several lines, or steers "
    "terminals",
    then="it is one line of at most 1,500 letters with all of that spelled out",
    lost="nothing",
)
def test_errors_are_one_short_line() -> None:
    for error in (
        RunError(f"cannot read {ODD[1]}: {ODD[2]}\n  and\n more {'x' * 10_000} at the end"),
        bad_value("name", "\x1b" * 10_000, "is too long"),
    ):
        assert len(str(error)) <= 1500 and one_line(str(error)) == str(error)
        assert str(error).endswith(("at the end", "is too long"))
