"""Files of strangers."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from rarefy.cli import main
from rarefy.core.cells import defused, restored
from rarefy.core.errors import UsageError
from rarefy.data.images import unpack_limit
from rarefy.data.images.cifar import CIFAR10, load_cifar
from rarefy.data.images.folder_scan import scan
from rarefy.data.images.mnist import read_idx
from rarefy.data.restricted_pickle import load_entries
from rarefy.measure.influence.passes import score_classes
from rarefy.tools.influence.writing import read_table, write_table
from rarefy.tools.samples.hugging_face import load_hugging_face
from rarefy.tools.samples.opening import open_samples
from rarefy.tools.samples.row_store import RowStore

TABLE = "a,b,kind\n1,2,x\n3,4,y\n5,6.5,x\n2,2,y\n1,1,x\n"


# -------------------------------------------------------------------------------- small and endless


def nested(times: int, by_memo: bool) -> bytes:
    """A pickle of a dictionary with a list of two lists of two lists ...: 2^times at the bottom.
    One object is used twice out of the memo, or by a doubling of what was last."""
    pairs = b"".join(
        (b"0h%ch%c" % (number, number) if by_memo else b"2") + b"\x86q%c" % (number + 1)
        for number in range(times)
    )
    return b"\x80\x02}(X\x06\x00\x00\x00labels]q\x00" + pairs + b"u."


@pytest.mark.fault(
    when="a CIFAR file of 260 bytes holds a list of two lists of two lists, and so on",
    then="it is refused by name at the first list that comes twice",
    lost="nothing",
)
@pytest.mark.parametrize("by_memo", [True, False])
def test_lower_a_nested_pickle_is_refused(by_memo: bool) -> None:
    bomb = nested(40, by_memo)
    assert len(bomb) < 400
    with pytest.raises(UsageError, match="^file: refused, the pickle holds one list several times"):
        load_entries(io.BytesIO(bomb), "file")
    told = "the same name"
    names = pickle.dumps({"a": [told, told], "b": 1}, protocol=2)
    assert load_entries(io.BytesIO(names), "file")["a"] == [told, told]


@pytest.mark.fault(
    when="a label in a CIFAR file is a list in lists, or a number of a million digits",
    then="the error names file, place and kind, and does not spell it out",
    lost="nothing",
)
@pytest.mark.parametrize(
    ("kind", "label"),
    [("list", b"]" * 5000 + b"a" * 4999), ("int", pickle.dumps(1 << 4_000_000, 2)[2:-1])],
    ids=["list", "int"],
)
def test_lower_a_label_without_end_is_not_spelled_out(
    kind: str, label: bytes, tmp_path: Path
) -> None:
    place = tmp_path / CIFAR10.folder
    place.mkdir()
    for name in CIFAR10.files:
        (place / name).write_bytes(pickle.dumps({"label_names": ["a", "b"]}, protocol=2))
    images = pickle.dumps({"data": np.zeros((2, 3072), dtype=np.uint8)}, protocol=2)
    labels = b"X\x06\x00\x00\x00labels](K\x00" + label + b"es."
    for name in CIFAR10.train:
        (place / name).write_bytes(images[:-1] + labels)
    with pytest.raises(UsageError, match=f"{CIFAR10.train[0]}: labels has {kind} at position 1"):
        load_cifar(CIFAR10, tmp_path)


@pytest.mark.fault(
    when="a gzip or zip file of kilobytes unpacks to gigabytes (MNIST, CIFAR, CSV, npz)",
    then="it is refused by name before more than the bound is in memory",
    lost="nothing",
)
def test_lower_what_unpacks_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack_limit, "LEAST", 1 << 20)
    much = bytes(1 << 23)
    idx = tmp_path / "images.gz"
    idx.write_bytes(gzip.compress(b"\0\0\x08\x03" + struct.pack(">3I", 1 << 13, 32, 32) + much))
    table = tmp_path / "table.csv.gz"
    table.write_bytes(gzip.compress(b"a,b,kind\n" + b"1,2,x\n" * (1 << 21)))
    with tarfile.open(tmp_path / CIFAR10.archive, "w:gz") as archive:
        member = tarfile.TarInfo("anything")
        member.size = len(much)
        archive.addfile(member, io.BytesIO(much))
    arrays = tmp_path / "arrays.npz"
    np.savez_compressed(arrays, X=np.zeros((1 << 12, 256)), y=np.arange(1 << 12) % 2)
    for path, read in (
        (idx, lambda: read_idx(idx, 3)),
        (table, lambda: open_samples(table, label="kind")),
        (tmp_path / CIFAR10.archive, lambda: load_cifar(CIFAR10, tmp_path)),
        (arrays, lambda: open_samples(arrays)),
    ):
        with pytest.raises(UsageError, match=f"^{path}: unpacks to more than .*suspiciously large"):
            read()
    table.write_bytes(gzip.compress(TABLE.encode()))
    assert len(open_samples(table, label="kind")) == 5


# -------------------------------------------------------------------------------- folders and links


def photos(root: Path, *more: str) -> Path:
    for place, name in enumerate(("cat", "dog", *more)):
        (root / name).mkdir(parents=True)
        for number in range(3):
            Image.new("L", (8, 8), 10 + 80 * place + number).save(root / name / f"{number}.png")
    return root


@pytest.mark.fault(
    when="a class folder, or a folder in it, links to its parent or to another class",
    then="it is refused: its images would be copies with two labels; the error names both folders",
    lost="nothing",
)
@pytest.mark.parametrize(("link", "to"), [("a", "."), ("ape", "cat"), ("cat/up", "."), ("z", ".")])
def test_lower_a_class_that_links_to_another_is_refused(link: str, to: str, tmp_path: Path) -> None:
    root = photos(tmp_path / "photos")
    (root / link).symlink_to(root / to, target_is_directory=True)
    with pytest.raises(UsageError, match="is the same folder as .*; remove the link"):
        scan(root)
    (root / link).unlink()
    (root / "cat" / "loop").symlink_to(root / "cat", target_is_directory=True)
    (root / "far").symlink_to(photos(tmp_path / "others") / "dog", target_is_directory=True)
    assert scan(root).classes == ("cat", "dog", "far"), "a link to elsewhere is a class"


@pytest.mark.fault(
    when="test/ links to train/",
    then="it is refused: nothing would be tested on new images",
    lost="nothing",
)
def test_lower_a_test_folder_that_links_to_train_is_refused(tmp_path: Path) -> None:
    photos(tmp_path / "train")
    (tmp_path / "test").symlink_to(tmp_path / "train", target_is_directory=True)
    with pytest.raises(UsageError, match="is the same folder as"):
        scan(tmp_path)


# ------------------------------------------------------------------------------------------- tables


@pytest.mark.fault(
    when="a name or a label begins with = + - @, a tab or a line end",
    then="in CSV files an apostrophe stands before it, so that no spreadsheet runs it; "
    "`read_table` gives the text back",
    lost="nothing",
)
def test_lower_formulas_in_names_are_no_formulas_in_csv(tmp_path: Path) -> None:
    names = ["=1+1", "@cmd", "+x", "-y", "\tz", "\rz", "'q", "plain", "-1", "+2.5e3", ""]
    table = pd.DataFrame({"id": [str(row) for row in range(len(names))], "label": names})
    path = write_table(table.assign(influence=-1.5), tmp_path / "scores.csv")
    cells = [line.split(",")[1] for line in path.read_bytes().decode().split("\n")[1:-1]]
    shown = ["'=1+1", "'@cmd", "'+x", "'-y", "'\tz", "'\rz", "''q", "plain", "-1", "+2.5e3", ""]
    assert cells == [f'"{text}"' for text in shown]
    assert read_table(path)["label"].tolist() == names
    assert restored(defused(table)["label"]).tolist() == names


@pytest.mark.fault(
    when="a hierarchy, or the name of a class folder, is in Latin-1",
    then="the training is judged and shown; bytes that are no text are spelled out",
    lost="nothing",
)
@pytest.mark.parametrize(
    "call", ["train --keep 0.5", "granularity --made random --hierarchy h.csv"]
)
def test_names_in_latin_1_are_spelled_out(
    call: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verb, *options = call.split()
    photos(here / "photos", os.fsdecode(b"\xe9l\xe9phant"))
    Path("h.csv").write_bytes("éléphant,animé\ndog,animé\ncat,tigré\n".encode("latin-1"))
    quick = ["--epochs", "1", "--seeds", "1", "--jobs", "1", "--network", "small_trainings:tiny"]
    assert main([verb, "photos", *options, *quick]) == 0, capsys.readouterr().err
    assert r"\xe9" in capsys.readouterr().out


@pytest.mark.fault(
    when="a CSV file is in UTF-16 with a mark, as spreadsheets save it",
    then="it is read",
    lost="nothing",
)
def test_d12_a_table_in_utf_16_is_read(tmp_path: Path) -> None:
    for code, mark in (("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")):
        path = tmp_path / f"{code}.csv"
        path.write_bytes(mark + TABLE.encode(code))
        assert open_samples(path, label="kind", standardize=False).features.tolist()[2] == [5, 6.5]


@pytest.mark.fault(
    when="a table is in another encoding, binary, of one class, or has infinite numbers",
    then="one line names the file and what is wrong, exit code 2, and nothing is written",
    lost="nothing",
)
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (TABLE.encode("utf-16-le"), "holds zero bytes, as no text in UTF-8 does"),
        (TABLE.replace("x", "\xe9").encode("latin-1"), "is no text in UTF-8"),
        (TABLE.replace("a,", "\xe9,").encode("latin-1"), "is no text in UTF-8"),
        (TABLE.replace("y", "x").encode(), "all 5 samples have the label 'x'"),
        (TABLE.replace("6.5", "inf").encode(), "column 'b' is NaN or infinite in row 2"),
        (b"a,b,kind\n\x1b[31m,1\n", "cannot be read as a table (line 2 has 2 cells, not 3)"),
        (b"# ours\n" + TABLE.encode(), "no such column in given.csv; it has # ours"),
        (TABLE.encode("utf-16") + b"\0", "is no text in UTF-16"),
        (b"\n", "has no rows"),
    ],
    ids=[
        *("UTF-16", "Latin-1", "Latin-1 names", "one class", "infinite", "ragged", "comment"),
        *("damaged UTF-16", "empty"),
    ],
)
def test_d12_a_table_that_cannot_be_used_is_named(
    content: bytes,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("given.csv").write_bytes(content)
    assert main(["influence", "given.csv", "--label", "kind", "--no-gallery"]) == 2
    line = [text for text in capsys.readouterr().err.splitlines() if "error" in text][-1]
    assert "given.csv" in line and told in line and line.isprintable()
    assert not list(tmp_path.glob("**/scores.*"))


@pytest.mark.slow
@pytest.mark.fault(
    when="a command ends with an error after it has read a CSV file",
    then="one line, exit code 2; no thread is left that aborts the process",
    lost="nothing",
)
def test_an_error_after_a_csv_file_ends_as_others_do(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    words = [sys.executable, "-m", "rarefy", "checkup", "t.csv"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.splitlines()[-1].startswith("error: --label=None")


# ------------------------------------------------------------------------------------- what is kept


@pytest.mark.quick("shape", "about.json")
@pytest.mark.fault(
    when="what an interrupted scoring left behind is damaged",
    then="one line names it and `--overwrite`, which begins anew",
    lost="the scoring so far",
)
@pytest.mark.parametrize("damage", ["state.npz", "about.json", "position", "shape"])
@pytest.mark.usefixtures("quick")
def test_d12_a_damaged_scoring_state_is_named(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TABLE)
    call = ["influence", "t.csv", "--label", "kind", "--no-gallery", "--neighbours", "0"]
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)  # as if it had been killed
    assert main([*call, "--out", "o"]) == 0
    state = tmp_path / "o" / ".rarefy/unfinished" / "scores"
    if damage in ("state.npz", "about.json"):
        whole = (state / damage).read_bytes()
        (state / damage).write_bytes(whole[: len(whole) // 2])
    else:
        with np.load(state / "state.npz") as held:
            arrays = dict(held)
        arrays |= {"position": np.array([99, 0, 0])} if damage == "position" else {"q": np.ones(2)}
        np.savez(state / "state.npz", **arrays)
    capsys.readouterr()
    assert main([*call, "--out", "o"]) == 2
    line = [text for text in capsys.readouterr().err.splitlines() if "error" in text][-1]
    assert ".rarefy/unfinished/scores" in line and "is damaged" in line and "--overwrite" in line
    with pytest.raises(UsageError, match="is damaged"):
        features, labels = np.ones((5, 2)), np.array([0, 1, 0, 1, 0])
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "state.npz").write_bytes(b"")
        score_classes(features, labels, 2, state=tmp_path / "other")


@pytest.mark.fault(
    when="stored features are cut short, of another shape, or their note counts too many",
    then="one line names the file and what to remove",
    lost="the features so far",
)
@pytest.mark.parametrize("damage", ["cut", "shape", "note"])
def test_d12_damaged_stored_features_are_named(damage: str, tmp_path: Path) -> None:
    RowStore((3, 2), np.float32, tmp_path, {"data": "a"})
    rows, note = tmp_path / "features.npy", tmp_path / "features.json"
    if damage == "cut":
        rows.write_bytes(rows.read_bytes()[:-4])
    elif damage == "shape":
        np.save(rows, np.zeros((4, 2), dtype=np.float32))
    else:
        note.write_text(note.read_text().replace('"done": 0', '"done": 4'))
    with pytest.raises(UsageError, match="damaged; remove it, and features.*--overwrite"):
        RowStore((3, 2), np.float32, tmp_path, {"data": "a"})


@pytest.mark.fault(
    when="`hf:NAME` is asked for without Hugging Face's datasets",
    then="the error names the extra to install, which the package declares",
    lost="nothing",
)
def test_lower_what_hf_needs_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(UsageError, match=r"pip install 'rarefy\[hugging-face-data\]'"):
        load_hugging_face("hf:set")
    declared = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    assert 'hugging-face-data = ["datasets' in declared
