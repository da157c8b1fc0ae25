"""Readers of what rarefy wrote itself as fuzz targets: strangers may have changed it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import google_crc32c
import numpy as np
from fuzz_files import (
    CLEAN,
    LIST,
    PICKS,
    find,
    home,
    member,
    npy,
    npz_of,
    with_member,
)
from fuzzing import Target, file

from rarefy.core.writing import record_of
from rarefy.data.longtail.split_file import load_split, read_list
from rarefy.ledger.verdicts import check_ledger
from rarefy.measure.influence.state import State
from rarefy.sweep.cached import cached_npz
from rarefy.sweep.checking import Thing, check
from rarefy.sweep.results import read_results
from rarefy.sweep.store import open_store
from rarefy.tools.checkup.sections import Section, keep_section, kept_section
from rarefy.tools.clean.picks import read_picks
from rarefy.tools.clean.recording import undo
from rarefy.tools.influence.writing import read_table
from rarefy.tools.samples.row_store import RowStore
from rarefy.tools.saved_networks import load_network
from rarefy.train.checkpoints import Checkpoint

CPU = __import__("torch").device("cpu")


def _scores(folder: Path) -> None:
    for name in ("scores.csv", "scores.csv.json"):
        shutil.copy(home() / name, folder)


def _in_home(name: str) -> Callable[[], list[bytes]]:
    return lambda: [(home() / name).read_bytes()]


SCORES = [
    file("scores, Parquet", "scores.parquet", read_table, _in_home("scores.parquet")),
    file(
        "scores, CSV's manifest",
        "scores.csv.json",
        lambda p: read_table(p.with_suffix("")),
        _in_home("scores.csv.json"),
        beside=_scores,
        named="scores.csv",
    ),
]

# ------------------------------------------------------------------------------------ what is kept


def _rows(path: Path) -> object:
    return RowStore((3, 2), np.float32, path.parent, {"data": "a"})


def _row_note(folder: Path) -> None:
    RowStore((3, 2), np.float32, folder, {"data": "a"}).flush()


def _state(path: Path) -> object:
    return State(path.parent, {"classes": 2}).load()


def _state_beside(folder: Path) -> None:
    (folder / "s").mkdir()
    (folder / "s/about.json").write_text('{"classes": 2}')
    (folder / "s/state.npz").write_bytes(npz_of(npy(np.ones(3))))


def _section(folder: Path) -> bytes:
    keep_section(folder / "part.json", "k", Section("labels", "Labels", "fine", notes=("n",)))
    return (folder / "part.json").read_bytes()


RECORD = b'{"name": "a.csv", "command": "rarefy x", "hash": "00", "before": [null], "of": ""}'
KEPT = [
    file("picks", "picks.json", read_picks, lambda: [PICKS]),
    file("clean's record", "out/.rarefy/clean.json", lambda p: undo(p.parents[1]), lambda: [CLEAN]),
    file(
        "record",
        ".rarefy/a.csv.json",
        lambda p: record_of(p.parents[1] / "a.csv"),
        lambda: [RECORD],
    ),
    file("split", "split.json", load_split, _in_home("split.json")),
    file("list of files", "list.txt", read_list, lambda: [LIST]),
    file(
        "feature rows",
        "features.npy",
        _rows,
        lambda: [npy(np.zeros((3, 2), np.float32))],
        beside=_row_note,
    ),
    file(
        "feature note",
        "features.json",
        _rows,
        lambda: [b'{"spec": {"data": "a", "shape": [3, 2], "dtype": "<f4"}, "done": 0}'],
        beside=_row_note,
        named="features",
    ),
    file(
        "scoring state",
        "s/state.npz",
        _state,
        lambda: [npz_of(npy(np.ones(3)))],
        beside=_state_beside,
    ),
    file("scoring note", "s/about.json", _state, lambda: [b'{"classes": 2}'], beside=_state_beside),
    file(
        "shared numbers",
        "n.npz",
        lambda p: cached_npz(p, lambda: {"X": np.ones(2)}, lambda steps: None, 1),
        lambda: [npz_of(npy(np.ones(3)))],
    ),
    file(
        "checkup part",
        "part.json",
        lambda p: kept_section(p, "k"),
        lambda: [_section(home())],
    ),
]

# ------------------------------------------------------------------------ networks, stores, ledger


def _networks(wrapped: bool) -> Callable[[], list[bytes]]:
    path = lambda: home() / "net.pt"  # noqa: E731
    return (lambda: [member(path())]) if wrapped else (lambda: [path().read_bytes()])


def _with_pickle(content: bytes) -> bytes:
    return with_member(home() / "net.pt", content)


def _stored(name: str) -> Target:
    """A store with one file changed; of a chunk the checksum fits."""
    chunk = not name.endswith(".json")

    def read(path: Path) -> object:
        at = path.parents[len(Path(name).parts) - 1]
        store = open_store(at, find)
        return store.done(), store.read()

    def beside(folder: Path) -> None:
        shutil.copytree(home() / "store", folder / "store")

    def seeds() -> list[bytes]:
        content = (home() / "store" / name).read_bytes()
        return [content[:-4] if chunk else content]

    def wrap(content: bytes) -> bytes:
        return content + google_crc32c.value(content).to_bytes(4, "little") if chunk else content

    return file(f"store, {name}", f"store/{name}", read, seeds, wrap, beside, runs=8)


def _results(path: Path) -> object:
    return read_results(path, find)


def _results_beside(folder: Path) -> None:
    shutil.copytree(home() / "results", folder / "results")


def _rehashed(path: Path) -> object:
    """The JSON has the hash that fits, as if the table had been written so."""
    beside = path.with_suffix(".json")
    told = json.loads(beside.read_text())
    told["parquet"]["blake2b"] = hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    beside.write_text(json.dumps(told))
    return _results(path)


def _ledgers(pattern: str) -> Callable[[], list[bytes]]:
    """The smallest of ours."""
    folder = Path(__file__).parents[1] / "src/rarefy/ledger"
    return lambda: [min((path.read_bytes() for path in folder.glob(pattern)), key=len)]


MADE = [
    file("network", "net.pt", load_network, _networks(False)),
    file("network's pickle", "net.pt", load_network, _networks(True), _with_pickle),
    file("checkpoint", "c.pt", lambda p: Checkpoint(p).load(CPU), _networks(True), _with_pickle),
    file(
        "network, checked", "net.pt", lambda p: check(Thing("network", p), find), _networks(False)
    ),
    *map(_stored, ("zarr.json", "done/zarr.json", "end/zarr.json", "done/c/0", "end/c/0")),
    file(
        "results",
        "results/toy-tiny.json",
        _results,
        _in_home("results/toy-tiny.json"),
        beside=_results_beside,
    ),
    file(
        "results' table",
        "results/toy-tiny.parquet",
        _rehashed,
        _in_home("results/toy-tiny.parquet"),
        beside=_results_beside,
    ),
    file("ledger, claims", "000.toml", check_ledger, _ledgers("*.toml")),
    file("ledger, verdicts", "verdicts-toy.json", check_ledger, _ledgers("verdicts-*.json")),
]
