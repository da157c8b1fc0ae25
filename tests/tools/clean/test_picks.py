"""Files of picks: what is wrong with one is told in a line, and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from cleaned_sets import LAYOUTS, contents, frame, opened

from rarefy.core.errors import UsageError
from rarefy.tools.clean.cleaning import clean
from rarefy.tools.clean.picks import FORMAT, read_picks
from rarefy.tools.clean.recording import undo
from rarefy.tools.samples.samples import Samples


@pytest.fixture
def source(tmp_path: Path) -> str:
    return LAYOUTS["trees.csv"].write(tmp_path / "trees.csv", frame())


@pytest.fixture
def samples(source: str) -> Samples:
    return opened("trees.csv", source)


def pick(samples: Samples, row: int, decision: str = "drop", **more: Any) -> dict[str, Any]:
    label = samples.classes[samples.labels[row]]
    return {"id": samples.ids[row], "label": label, "decision": decision, **more}


def file_of(tmp_path: Path, picks: list[Any], **head: Any) -> Path:
    path = tmp_path / "picks.json"
    about = {"format": FORMAT, "data": "oaks.csv", "read": {"label": "kind"}, **head}
    path.write_text(json.dumps({**about, "picks": picks}), "utf-8")
    return path


def refused(source: str, picks: Any, tmp_path: Path, message: str, **options: Any) -> None:
    """One line that says so, and nothing has changed."""
    before = contents(tmp_path)
    with pytest.raises(UsageError) as caught:
        clean(source, picks, tmp_path / "out", **{"label": "kind", **options})
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert contents(tmp_path) == before and not (tmp_path / "out").exists()


def test_files_that_hold_no_picks(source: str, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    refused(source, path, tmp_path, "there is no such file")
    for content, message in {
        b"no json": "is no JSON (Expecting value",
        b"\xff\xfe\x00": "is no text",
        b"[]": 'has no picks in it (no "format": "rarefy picks 1")',
        b'{"a": 1}': "has no picks in it",
        b'{"format": "rarefy picks 9"}': "is in the format 'rarefy picks 9', here 'rarefy picks 1'",
        b'{"format": "rarefy picks 1"}': 'must have a list "picks"',
        b'{"format": "rarefy picks 1", "picks": {}}': 'must have a list "picks"',
        b'{"format": "rarefy picks 1", "picks": [3]}': "must be an object with an id",
        b'{"format": "rarefy picks 1", "picks": [{"id": 3}]}': "must be an object with an id",
        b'{"format": "rarefy picks 1", "picks": [], "read": {"columns": "a"}}': '"columns" must be',
        b'{"format": "rarefy picks 1", "picks": [], "read": {"size": []}}': '"size" must be a text',
    }.items():
        path.write_bytes(content)
        refused(source, path, tmp_path, message)


def test_decisions_that_make_no_sense(source: str, samples: Samples, tmp_path: Path) -> None:
    for picks, message in (
        ([pick(samples, 0, "burn")], "decision='burn': of pick 0 of"),
        ([pick(samples, 0, "relabel")], "new_label='': of pick 0 of"),
        ([pick(samples, 0), pick(samples, 0, "keep")], "has two decisions about"),
        (
            [pick(samples, 0, "relabel", new_label=kind) for kind in ("oak", "elm")],
            "relabel oak and relabel elm",
        ),
        (
            [pick(samples, 0, "relabel", new_label="oka")],
            "is no class of trees.csv; did you mean 'oak'? (known: ash; elm; oak)",
        ),
        ([pick(samples, 0, "relabel", new_label="yew")], "new_label='yew': for"),
    ):
        refused(source, file_of(tmp_path, picks), tmp_path, message)
    both = read_picks(file_of(tmp_path, [pick(samples, 0), pick(samples, 0)]))
    assert len(both.picks) == 1, "the same decision twice is one"


def test_picks_of_other_data_are_known_by_content(
    source: str, samples: Samples, tmp_path: Path
) -> None:
    other = [pick(samples, 0), {**pick(samples, 1), "id": "0" * 32, "name": "oak.png"}]
    message = "are picks of other data than trees.csv: 1 of 2 picked samples are not in it (first"
    refused(source, file_of(tmp_path, other), tmp_path, f"{message} 'oak.png')")
    path = file_of(tmp_path, [], fingerprint="another")
    refused(source, path, tmp_path, "they were made of 'oaks.csv'")
    changed = [{**pick(samples, 0), "label": "oak"}]
    words = "has the label 'oak' there and 'ash' in trees.csv: its labels were changed since"
    refused(source, file_of(tmp_path, changed), tmp_path, words)


def test_a_class_that_would_be_empty(source: str, samples: Samples, tmp_path: Path) -> None:
    ash = [row for row in range(24) if samples.classes[samples.labels[row]] == "ash"]
    gone = [pick(samples, row) for row in ash[1:]]
    gone.append(pick(samples, ash[0], "relabel", new_label="oak"))
    path = file_of(tmp_path, gone)
    refused(source, path, tmp_path, "no sample of ash would be left; keep one of each")
    done = clean(source, path, tmp_path / "o2", allow_empty=True)
    assert set(pd.read_csv(done.path / "trees.csv")["kind"]) == {"oak", "elm"}
    rest = [pick(samples, row) for row in range(24) if row not in ash]
    path = file_of(tmp_path, rest)
    words = "samples of at least 2 classes must be left"
    refused(source, path, tmp_path, words, allow_empty=True)


def test_an_output_folder_that_is_there(source: str, samples: Samples, tmp_path: Path) -> None:
    path = file_of(tmp_path, [pick(samples, 0)])
    there = tmp_path / "there"
    for made in (there.mkdir, lambda: (there / "mine.txt").write_text("mine")):
        made()
        with pytest.raises(UsageError, match="is there already; name a folder that is not"):
            clean(source, path, there)
    assert [one.name for one in there.iterdir()] == ["mine.txt"]
    with pytest.raises(UsageError, match=r"trees\.csv is a file, not a folder"):
        clean(source, path, Path(source) / "out")
    folder = LAYOUTS["trees"].write(tmp_path / "trees", frame())
    with pytest.raises(UsageError, match="lies inside .*trees, which stays as it is"):
        clean(folder, path, tmp_path / "trees/elm/../tidy")
    done = clean(source, path, tmp_path / "out")
    other = file_of(tmp_path, [pick(samples, 1)])
    with pytest.raises(UsageError, match="was made of other picks or data; rarefy clean --undo"):
        clean(source, other, done.path)
    again = file_of(tmp_path, [pick(samples, 0)])
    assert clean(source, again, done.path).again
    (done.path / "trees.csv").write_text("changed")
    with pytest.raises(UsageError, match=r"was changed since rarefy wrote it \(trees\.csv\)"):
        clean(source, again, done.path)


def test_only_what_is_as_it_was_written_is_undone(
    source: str, samples: Samples, tmp_path: Path
) -> None:
    done = clean(source, file_of(tmp_path, [pick(samples, 0)]), tmp_path / "out")
    with pytest.raises(UsageError, match="there is no such folder"):
        undo(tmp_path / "nothing")
    (tmp_path / "mine").mkdir()
    with pytest.raises(UsageError, match="was not written by rarefy clean; nothing is removed"):
        undo(tmp_path / "mine")
    whole = contents(done.path)
    for name in ("trees.csv", "more.txt"):
        (done.path / name).write_text("mine")
        with pytest.raises(UsageError, match=f"changed, added or gone since: {name}"):
            undo(done.path)
        (done.path / "more.txt").unlink(missing_ok=True)
        (done.path / "trees.csv").write_bytes(whole["trees.csv"])
    (done.path / "clean-log.csv").unlink()
    with pytest.raises(UsageError, match=r"clean-log\.csv"):
        undo(done.path)
    (done.path / "clean-log.csv").write_bytes(whole["clean-log.csv"])
    (done.path / ".DS_Store").write_bytes(b"seen")  # somebody only looked
    assert undo(done.path).files == 2
    assert not done.path.exists()


def test_a_table_of_picks_needs_its_columns(source: str, tmp_path: Path) -> None:
    refused(source, pd.DataFrame({"id": ["a"]}), tmp_path, "must have a column 'decision'")
