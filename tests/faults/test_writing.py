"""Files that are written"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import pytest
import torch
from folders import seen_in
from PIL import Image
from pyarrow import parquet
from toy_study import Toy, only

from rarefy.cli import main
from rarefy.core.errors import RunError, UsageError
from rarefy.core.writing import (
    RECORDS,
    OutputFolder,
    check_output,
    is_intact,
    record_of,
    write_output,
)
from rarefy.data.images.image_set import ImageData
from rarefy.tools.image_data import on_device
from rarefy.tools.saved_networks import save_network

pytestmark = pytest.mark.usefixtures("here")
Told = Callable[[], str]


@pytest.fixture
def only_toy(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, Toy)


TREES = ["influence", "scores.csv", "--label", "kind", "--neighbours", "0"]
SMALL = ["train", "digits", "--network", "lenet", "--epochs", "1", "--samples", "60"]
SMALL = [*SMALL, "--seeds", "1", "--jobs", "1", "--save", "nets"]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    """The complaint of the last command: one line."""

    def last() -> str:
        lines = [line for line in capsys.readouterr().err.splitlines() if "error: " in line]
        assert len(lines) == 1
        return lines[0]

    return last


def trees(path: str) -> bytes:
    rows = {"kind": list("ab") * 6, "height": range(12), "girth": [3, 1, 4, 1, 5, 9] * 2}
    frame = pd.DataFrame(rows)
    if path.endswith(".csv"):
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return Path(path).read_bytes()


@pytest.mark.fault(
    when="what `influence` reads is called like what it writes or removes, whoever wrote it",
    then="it is refused as output before any work; another `--out` is asked for",
    lost="nothing",
)
@pytest.mark.parametrize(
    ("data", "options", "name"),
    [
        ("scores.csv", ["--csv"], "scores.csv"),
        ("scores.csv", [], "scores.csv"),
        ("scores.parquet", [], "scores.parquet"),
        ("scores.parquet", ["--stream"], "scores.parquet"),
        (".", ["--stream"], "scores.parquet"),
    ],
)
def test_d1_an_input_is_never_an_output(
    data: str, options: list[str], name: str, told: Told
) -> None:
    before = trees(name)
    Path(name).unlink()
    write_output(Path(name), before)
    for more in ([], ["--overwrite"]):
        assert main(["influence", data, "--label", "kind", *options, "--out", ".", *more]) == 2
        assert told() == f"error: --out={name!r}: is what is read; name another --out"
    assert Path(name).read_bytes() == before and seen_in(Path()) == [Path(name)]


@pytest.mark.fault(
    when="a user's files in the folder of a check-up have the names of its parts",
    then="they stay: what was found is kept in `.rarefy` there",
    lost="nothing",
)
def test_a_checkup_keeps_its_parts_out_of_sight() -> None:
    trees("scores.csv")
    Path("o").mkdir()
    Path("o/set.json").write_text("mine")
    call = ["checkup", "scores.csv", "--label", "kind", "--only", "set", "--out", "o"]
    assert main([*call, "--overwrite"]) == 0
    assert Path("o/set.json").read_text() == "mine"
    assert {path.name for path in seen_in(Path("o"))} == {"checkup.html", "set.json"}


@pytest.mark.fault(
    when="a file of the user's lies where a command would write",
    then="it is named and left as it is, also with `--overwrite`; nothing is computed first",
    lost="nothing",
)
@pytest.mark.parametrize(
    ("call", "name"),
    [
        ([*TREES, "--out", "o"], "o/gallery.html"),
        ([*TREES, "--out", "o"], "o/scores.parquet"),
        ([*TREES, "--csv", "--overwrite", "--out", "o"], "o/scores.csv.json"),
        (["data", "check", "digits", "--sheet", "o/s.png"], "o/s.png"),
        (["report", "gone", "--out", "o/r.html"], "o/r.html"),
        (["demo", "--out", "o"], "o/report.html"),
        ([*SMALL, "--keep", "0.5", "--save", "o"], "o/digits-lenet-keep-0.5-noise-0-seed-0.pt"),
    ],
)
def test_d1_what_rarefy_did_not_write_stays(call: list[str], name: str, told: Told) -> None:
    trees("scores.csv")
    Path("o").mkdir()
    Path(name).write_text("mine")
    assert main(call) == 2
    assert f"{name!r}: is there, and rarefy has no record of writing it" in told()
    assert Path(name).read_text() == "mine" and seen_in(Path("o")) == [Path(name)]


@pytest.mark.fault(
    when="a page or table of rarefy's was changed by hand since",
    then="it is replaced with `--overwrite` only; what is not written again stays",
    lost="nothing",
)
def test_d1_changed_outputs_are_asked_about(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    trees("scores.csv")
    assert main([*TREES, "--csv", "--out", "o"]) == 0
    before = seen_in(Path("o"))
    with monkeypatch.context() as failing:
        failing.delattr(parquet, "write_table")
        assert main([*TREES, "--no-gallery", "--out", "o"]) == 1 and told()
    assert seen_in(Path("o")) == before and all(map(is_intact, before))
    Path("o/gallery.html").write_text("my notes")
    assert main([*TREES, "--out", "o"]) == 2
    assert "'o/gallery.html': was changed after rarefy wrote it; pass --overwrite" in told()
    # the table is written again, and its older CSV would be of other scores: that one goes
    assert main([*TREES, "--no-gallery", "--out", "o"]) == 0
    names = [path.name for path in seen_in(Path("o"))]
    assert names == ["gallery.html", "scores.parquet"]
    assert Path("o/gallery.html").read_text() == "my notes"
    assert main([*TREES, "--out", "o", "--overwrite"]) == 0
    assert "my notes" not in Path("o/gallery.html").read_text()


@pytest.mark.fault(
    when="a command with `--overwrite` is refused for another reason, or stopped",
    then="it has given nothing up: what was changed by hand is asked about again",
    lost="nothing",
)
def test_d1_a_refused_overwrite_changes_nothing(told: Told) -> None:
    trees("scores.csv")
    assert main([*TREES, "--csv", "--out", "o"]) == 0
    Path("o/scores.csv").write_text("my notes")
    Path("o/gallery.html").unlink()
    Path(f"o/{RECORDS}/gallery.html.json").unlink()
    Path("o/gallery.html").write_text("mine")
    assert main([*TREES, "--csv", "--out", "o", "--overwrite"]) == 2
    assert "gallery.html" in told()
    assert main([*TREES, "--csv", "--no-gallery", "--out", "o"]) == 2
    assert "'o/scores.csv': was changed after rarefy wrote it" in told()
    assert Path("o/scores.csv").read_text() == "my notes"


@pytest.mark.fault(
    when="two processes write the same file at the same moment",
    then="the last one stays, whole, and is known as rarefy's",
    lost="nothing",
)
def test_d1_two_writers_leave_a_file_that_is_known() -> None:
    def meanwhile(path: Path) -> None:
        path.write_text("first")
        pid = os.getpid
        os.getpid = lambda: pid() + 1  # type: ignore[method-assign]
        try:
            write_output(Path("a.txt"), "second")
        finally:
            os.getpid = pid  # type: ignore[method-assign]

    for content in ("first", "first"):
        write_output(Path("a.txt"), meanwhile)
        assert Path("a.txt").read_text() == content and is_intact(Path("a.txt"))


@pytest.mark.fault(
    when="`--results` names a folder with a table of somebody else's, or results of more seeds",
    then="before anything runs the first is refused; the others are enough, or with `--overwrite` "
    "refused",
    lost="nothing",
)
@pytest.mark.usefixtures("only_toy")
def test_d1_results_of_others_stay(told: Told) -> None:
    call = ["run", "toy", "--scale", "tiny", "--results", "r"]
    assert main([*call, "--seeds", "3"]) == 0
    assert main([*call, "--seeds", "2", "--out", "b"]) == 0
    assert not Path("b").exists()  # (they are there already: a note says it)
    assert main([*call, "--seeds", "2", "--out", "b", "--overwrite"]) == 2
    assert "r/toy-tiny.json has 3 seeds, these would be fewer; name another folder" in told()
    Path("r/toy-tiny.json").unlink()
    before = Path("r/toy-tiny.parquet").read_bytes()
    assert main([*call, "--seeds", "4", "--out", "b"]) == 2
    assert "r/toy-tiny.parquet was not written by rarefy (no JSON); move it away" in told()
    assert Path("r/toy-tiny.parquet").read_bytes() == before and not Path("b").exists()
    assert main([*call[:-1], "r/toy-tiny.parquet/below", "--out", "b"]) == 2
    assert "is a file, not a folder" in told() and not Path("b").exists()


@pytest.mark.fault(
    when="`train --save` names a folder with networks of another update rule or granularity",
    then="it is refused before training, with the command that wrote them",
    lost="nothing",
)
def test_d4_networks_of_another_training_stay(told: Told) -> None:
    assert main([*SMALL, "--keep", "0.5"]) == 0
    before = {path: path.read_bytes() for path in Path("nets").glob("*.pt")}
    assert len(before) == 2
    for other in (["--update", "dense"], ["--granularity", "layer"]):
        assert main([*SMALL, "--keep", "0.5", *other, "--out", "b"]) == 2
        message = told()
        assert ".pt': was written by: " in message and "--overwrite to replace it" in message
        assert "or name another --save" in message and not Path("b").exists()
    assert {path: path.read_bytes() for path in before} == before
    assert main([*SMALL, "--keep", "0.5"]) == 0  # the same training goes on
    assert main([*SMALL, "--keep", "0.5", *other, "--out", "b", "--overwrite"]) == 0
    assert any(path.read_bytes() != content for path, content in before.items())


@pytest.mark.slow
@pytest.mark.fault(
    when="two folders of one name are scored or trained on",
    then="each has a folder of its own in `runs/`, told apart by a hash of its path",
    lost="nothing",
)
def test_d4_folders_of_one_name_do_not_share_a_store() -> None:
    for place in ("a", "b"):
        for label in ("cat", "dog"):
            folder = Path(place, "photos", label)
            folder.mkdir(parents=True)
            for shade in range(6):
                size, colour = (8, 8), 40 * shade + (7 if place == "b" else 0)
                Image.new("L", size, colour).save(folder / f"{shade}.png")
    quick = ["--epochs", "1", "--seeds", "1", "--jobs", "1", "--network", "lenet", "--keep", "0.5"]
    for place in ("a", "b", "./a/"):
        photos = os.path.join(place, "photos")
        assert main(["influence", photos, "--neighbours", "0", "--no-gallery"]) == 0
        assert main(["train", photos, *quick]) == 0
    assert main(["influence", "a/photos", "--size", "4", "--neighbours", "0", "--no-gallery"]) == 0
    names = sorted(path.name.rpartition("-")[0] for path in seen_in(Path("runs")))
    assert names == ["influence-photos"] * 3 + ["train-photos-lenet"] * 2


@pytest.mark.fault(
    when="another label column of the same table is scored", then="another folder", lost="nothing"
)
def test_d4_other_choices_have_a_folder_of_their_own() -> None:
    trees("scores.csv")
    for columns, label in (("height", "kind"), ("girth", "height")):
        assert main([*TREES, "--columns", columns, "--no-gallery"]) == 0
        assert main(["checkup", "scores.csv", "--label", label, "--only", "set"]) == 0
    names = [path.name.rpartition("-")[0] for path in seen_in(Path("runs"))]
    assert names == ["checkup-scores.csv"] * 2 + ["influence-scores.csv"] * 2


@pytest.mark.fault(
    when="a check-up of other data or labels names the folder of an earlier one, or its page was "
    "changed by hand",
    then="it is refused before any work; `--overwrite` replaces the page",
    lost="nothing",
)
def test_d4_a_checkup_stays(told: Told) -> None:
    trees("scores.csv")
    call = ["checkup", "scores.csv", "--only", "set", "--label"]
    assert main([*call, "height", "--out", "o"]) == 0
    before = Path("o/checkup.html").read_bytes()
    assert main([*call, "kind", "--out", "o"]) == 2
    assert "'o/checkup.html': was written by: " in told()
    assert Path("o/checkup.html").read_bytes() == before
    assert main([*call, "kind", "--out", "o", "--overwrite"]) == 0
    assert main([*call, "kind"]) == 0
    (page,) = Path("runs").glob("*/checkup.html")
    page.write_text("mine")
    assert main([*call, "kind"]) == 2
    assert "was changed after rarefy wrote it" in told() and page.read_text() == "mine"


KILLED = """
import os, sys, signal
from pathlib import Path
from typing import BinaryIO
from rarefy.core import writing
real, moment = os.replace, int(sys.argv[1])
def replace(old, new):
    global moment
    moment -= 1
    if moment == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    real(old, new)
    if moment == -1:
        os.kill(os.getpid(), signal.SIGKILL)
os.replace = replace
writing.write_output(Path("out.txt"), "new")
"""


@pytest.mark.fault(
    when="a command is killed while it replaces its own file",
    then="the old content or the new one is there, whole, and the next command goes on",
    lost="what was being written",
)
def test_d1_a_kill_leaves_a_whole_file_that_is_known() -> None:
    write_output(Path("out.txt"), "old")
    for moment, content in ((1, "old"), (2, "old"), (3, "new")):
        # before the record, before the file, and (never reached) after both
        ran = subprocess.run([sys.executable, "-c", KILLED, str(moment)], check=False)
        assert ran.returncode == (-signal.SIGKILL if moment < 3 else 0)
        assert Path("out.txt").read_text() == content and is_intact(Path("out.txt"))
        check_output(Path("out.txt"))


def _killed(words: list[str], moment: int) -> None:
    """The command, until it is about to rename or remove for the n-th time."""
    moments = itertools.count(1)

    def counted(change: Callable[..., None]) -> Callable[..., None]:
        def called(*given: object, **options: object) -> None:
            if next(moments) == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            change(*given, **options)

        return called

    for name in ("replace", "rename", "unlink", "rmdir"):
        setattr(os, name, counted(getattr(os, name)))
    sys.exit(main(words))


@pytest.mark.quick("clean")
@pytest.mark.parametrize("verb", ["influence", "clean"])
@pytest.mark.fault(
    when="`influence` or `clean` is killed before any file that it renames or removes",
    then="what was there is there, whole; the same command goes on",
    lost="what was being written",
)
def test_a_kill_at_any_change_of_files_loses_nothing(verb: str) -> None:
    before, call = trees("scores.csv"), [*TREES, "--no-check-labels", "--out", "o"]
    kept = [Path("o/scores.parquet"), Path("o/gallery.html")]
    assert main([*call, "--csv"]) == 0
    if verb == "clean":
        picks = pd.read_parquet("o/scores.parquet")[["id"]].head(1).assign(decision="drop")
        rows = {"format": "rarefy picks 1", "data": "scores.csv", "read": {"label": "kind"}}
        Path("picks.json").write_text(json.dumps({**rows, "picks": picks.to_dict("records")}))
        call = ["clean", "scores.csv", "--picks", "picks.json", "--out", "cleaned"]
    for moment in itertools.count(1):
        process = multiprocessing.get_context("forkserver").Process(
            target=_killed, args=(call, moment)
        )
        process.start()
        process.join(60)
        assert Path("scores.csv").read_bytes() == before and all(map(is_intact, kept))
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    assert moment > 2 and main(call) == 0


@pytest.mark.fault(
    when="the power fails right after a file was replaced",
    then="content and name are on the disk: both were flushed, in this order",
    lost="nothing",
    named="power cut",
)
def test_d3_outputs_are_flushed_before_they_get_their_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    flush, replace = os.fsync, os.replace

    def flushed(handle: int) -> None:
        seen.append(os.path.basename(os.readlink(f"/proc/self/fd/{handle}")))
        flush(handle)

    def replaced(old: Path, new: Path) -> None:
        seen.append(f"-> {Path(new).name}")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", replaced)
    write_output(Path("o/a.txt"), "content")
    partial = f".a.txt.{os.getpid()}.partial"
    record = [f".a.txt.json.{os.getpid()}.partial", "-> a.txt.json", RECORDS]
    assert seen == [*record, partial, "-> a.txt", "o"]


@pytest.mark.fault(
    when="the disk is full while a trained network is saved",
    then="one line names the file, and the older file is as it was",
    lost="what was being written",
    named="disk full",
)
def test_d12_a_full_disk_is_told_with_the_files_name(monkeypatch: pytest.MonkeyPatch) -> None:
    digits: ImageData = on_device("digits", torch.device("cpu"))
    folder, network = OutputFolder(Path("nets")), torch.nn.Linear(2, 2)
    save_network(folder, "one", network, digits, {"network": "lenet"})
    before = Path("nets/one.pt").read_bytes()

    def full(state: object, file: BinaryIO) -> None:
        file.write(b"half")
        raise RuntimeError("[enforce fail at inline_container.cc:659] . unexpected pos 64 vs 0\n#0")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(RunError, match=r"^cannot write nets/one\.pt: \[enforce fail[^\n]*$"):
        save_network(folder, "one", network, digits, {"network": "lenet"})
    assert Path("nets/one.pt").read_bytes() == before
    assert [path.name for path in seen_in(Path("nets"))] == ["one.pt"]


@pytest.mark.fault(
    when="a record of what was written is damaged or gone",
    then="its file counts as not ours and is left alone",
    lost="nothing",
)
def test_d1_without_a_record_nothing_is_replaced() -> None:
    write_output(Path("a.txt"), "one")
    record = record_of(Path("a.txt"))
    assert record is not None and set(record) == {"name", "command", "hash", "before", "of"}
    Path(RECORDS, "a.txt.json").write_text(json.dumps({**record, "name": "b.txt"}))
    for damage in (lambda: None, lambda: shutil.rmtree(RECORDS)):
        damage()
        with pytest.raises(UsageError, match=r"out='a\.txt': is there, and rarefy has no"):
            check_output(Path("a.txt"), overwrite=True)
        with pytest.raises(RunError, match=r"a\.txt: it is there, and not as rarefy"):
            write_output(Path("a.txt"), "two")
    assert Path("a.txt").read_text() == "one"
