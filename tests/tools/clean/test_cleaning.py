"""Cleaned sets: of every layout exactly what was decided, and nothing else."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cleaned_sets import LAYOUTS, contents, frame, opened
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import rarefy
from rarefy.core.errors import RunError, UsageError
from rarefy.data.images.ids import digest_of
from rarefy.tools.clean import class_folders, cleaning
from rarefy.tools.clean.recording import undo
from rarefy.tools.samples.arrays import from_arrays
from rarefy.tools.samples.opening import open_samples
from rarefy.tools.samples.samples import Samples


def clean(*arguments: Any, **options: Any) -> cleaning.Cleaned:
    return cleaning.clean(*arguments, **options)


def pairs(samples: Samples) -> Counter[tuple[str, str]]:
    """Contents with their labels, however often."""
    named = zip(samples.ids, samples.labels, strict=True)
    return Counter((digest_of(one), samples.classes[label]) for one, label in named)


def picked(samples: Samples, decided: dict[int, str]) -> pd.DataFrame:
    """A decision per row: drop, keep, or the class to relabel to."""
    rows = [
        {
            "id": samples.ids[row],
            "label": samples.classes[samples.labels[row]],
            "name": "" if samples.files is None else samples.files[row],
            "decision": what if what in ("drop", "keep") else "relabel",
            "new_label": "" if what in ("drop", "keep") else what,
            "why": f"because of {row}",
        }
        for row, what in decided.items()
    ]
    return pd.DataFrame(rows, columns=["id", "label", "name", "decision", "new_label", "why"])


def wanted(samples: Samples, decided: dict[int, str]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for row, (one, label) in enumerate(zip(samples.ids, samples.labels, strict=True)):
        what = decided.get(row, "keep")
        if what != "drop":
            found[digest_of(one), samples.classes[label] if what == "keep" else what] += 1
    return found


@pytest.mark.quick("trees", "trees.csv", "trees.npz")
@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_what_is_left_is_all_but_what_was_dropped(name: str, data: st.DataObject) -> None:
    """Ids kept = all - dropped; labels differ exactly where relabelled; the source is untouched;
    undo leaves nothing."""
    layout = LAYOUTS[name]
    with tempfile.TemporaryDirectory() as place:
        source = layout.write(Path(place, name), frame())
        samples = opened(name, source)
        words = st.sampled_from(["drop", "keep", *samples.classes])
        # some of each class are left alone (images come by class)
        rows = st.integers(0, 3) if name in ("trees", "parted") else st.integers(15, 23)
        decided = data.draw(st.dictionaries(rows, words, max_size=6))
        before = contents(Path(place))
        picks = picked(samples, decided)
        turned = picks.sample(frac=1, random_state=0)
        done = clean(source, turned, Path(place, "out"), **layout.read)
        cleaned = opened(name, done.path / layout.cleaned)
        assert pairs(cleaned) == wanted(samples, decided)
        kinds = Counter(
            "keep" if what == samples.classes[samples.labels[row]] else what
            for row, what in decided.items()
        )
        assert done.dropped == kinds["drop"]
        assert done.relabelled == sum(kinds[kind] for kind in samples.classes)
        assert done.kept + done.dropped + done.relabelled == len(samples)
        assert done.classes["before"].tolist() == samples.counts.tolist()
        after = Counter(label for _, label in wanted(samples, decided).elements())
        assert dict(zip(done.classes["class"], done.classes["after"], strict=True)) == {
            kind: after[kind] for kind in samples.classes
        }
        assert sorted(done.log["index"]) == sorted(decided)
        assert clean(source, picks, Path(place, "out"), **layout.read).again
        assert str(undo(done.path).path) == str(done.path)
        assert contents(Path(place)) == before


@pytest.mark.parametrize("coding", ["utf-8", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("begin", ["", "\r\n\n"])
def test_every_other_byte_of_a_text_table_stays(tmp_path: Path, begin: str, coding: str) -> None:
    lines = [f'\ufeff{begin}"height",girth,kind,when\r\n']
    lines += [f"{row}.50,1e{row % 3},{'ab'[row % 2]},0{row}.01.2026\r\n" for row in range(12)]
    lines[5] = '4.50,1e1,a,"two\nlines, ""quoted"""\r\n'
    lines[7:7] = ["\r\n"]
    source = tmp_path / "t.csv"
    source.write_bytes("".join(lines).encode(coding))
    samples = open_samples(source, label="kind", standardize=False)
    picks = picked(samples, {0: "b", 3: "drop", 4: "b"})
    done = clean(source, picks, tmp_path / "out", label="kind")
    lines[1] = lines[1].replace(",a,", ",b,")
    lines[5] = lines[5].replace(",a,", ",b,")
    del lines[4]
    assert (done.path / "t.csv").read_bytes() == "".join(lines).encode(coding)
    assert done.next == f"rarefy influence {done.path}/t.csv --label kind"


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["cat/IMG_1.png", "dog/img_1.png"], ""),
        (["cat/\u00e9.png", "dog/e\u0301.png"], ""),
        (["cat/0.png", "dog/a.png", "dog/A.png"], "dog/A.png; dog/a.png"),
        (["cat/0.png", "Dog/a.png", "dog/b.png"], "Dog; dog"),
        (["cat/0.png", "dog/\u00e9.png", "dog/e\u0301.png"], "dog/e\u0301.png; dog/\u00e9.png"),
    ],
)
def test_a_disk_that_takes_names_for_one(
    tmp_path: Path, names: list[str], told: str, copy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = class_folders._put

    def onto_it(source: Path, target: Path, copy: bool) -> None:
        put(source, Path(unicodedata.normalize("NFC", str(target)).lower()), copy)

    for number, name in enumerate([*names, "cat/z.png"]):
        path = tmp_path / "d" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8), number, np.uint8)).save(path)
    samples = open_samples(tmp_path / "d", standardize=False)
    assert samples.files is not None
    row = samples.files.index(names[0])
    picks = picked(samples, {row: "drop" if told else "dog"})
    monkeypatch.setattr(class_folders, "_put", onto_it)
    if told:
        with pytest.raises(UsageError, match=f"its disk has one name for {told}; rename one"):
            clean(tmp_path / "d", picks, tmp_path / "o", copy=copy, allow_empty=True)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["d"]
    else:
        clean(tmp_path / "d", picks, tmp_path / "o", copy=copy, allow_empty=True)
        assert len(list((tmp_path / "o" / "dog").iterdir())) == 2


def test_types_of_columns_stay(tmp_path: Path) -> None:
    for name in ("trees.parquet", "trees.feather"):
        source = LAYOUTS[name].write(tmp_path / name, frame())
        samples = opened(name, source)
        picks = picked(samples, {2: "drop", 4: samples.classes[samples.labels[3]]})
        done = clean(source, picks, tmp_path / f"{name}-out", **LAYOUTS[name].read)
        load = pd.read_parquet if name.endswith("t") else pd.read_feather
        before, after = load(source), load(done.path / name)
        assert (before.dtypes == after.dtypes).all()
        expected = before.drop(index=2)
        expected.loc[4, "kind"] = before["kind"][3]
        pd.testing.assert_frame_equal(after, expected.reset_index(drop=True))
    words = done.next.split()
    assert words[-2:] == ["--columns", "age"], "the next command reads it as this one did"


def test_arrays_of_other_parts_stay_and_those_beside_are_cut(tmp_path: Path) -> None:
    source = LAYOUTS["trees.npz"].write(tmp_path / "trees.npz", frame())
    samples = opened("trees.npz", source)
    done = clean(source, picked(samples, {2: "drop", 4: "3"}), tmp_path / "out")
    with np.load(source) as before, np.load(done.path / "trees.npz") as after:
        assert set(before.files) == set(after.files)
        assert after["y"].dtype == np.int16 and after["y"][3] == 3
        assert (after["remarks"] == np.delete(before["remarks"], 2)).all()
        for name in ("X_test", "y_test"):
            assert (after[name] == before[name]).all()
    assert any("cut too: remarks" in note for note in done.notes)


def test_links_lead_to_the_files_and_copies_are_files(tmp_path: Path) -> None:
    source = LAYOUTS["trees"].write(tmp_path / "trees", frame())
    samples = opened("trees", source)
    assert samples.files is not None
    ash = samples.files.index("ash/01.png")
    picks = picked(samples, {ash: "oak"})
    linked = clean(source, picks, tmp_path / "linked")
    copied = clean(source, picks, tmp_path / "copied", copy=True)
    (row,) = linked.log.to_dict("records")
    assert row["new_name"] == "oak/01-from-ash.png", "the name was taken there"
    assert row["why"] == f"because of {ash}"
    link = linked.path / row["new_name"]
    assert link.is_symlink() and Path(os.readlink(link)) == tmp_path / "trees/ash/01.png"
    assert not any(path.is_symlink() for path in copied.path.rglob("*"))
    images = {name: held for name, held in contents(linked.path).items() if name.endswith(".png")}
    assert images.items() <= contents(copied.path).items()
    assert linked.next == f"rarefy train {tmp_path}/linked"
    shutil.rmtree(source)
    assert len(opened("trees", copied.path)) == 24, "copies need no source"


def test_a_test_part_is_taken_along(tmp_path: Path) -> None:
    source = LAYOUTS["parted"].write(tmp_path / "parted", frame())
    samples = opened("parted", source)
    done = clean(source, picked(samples, {0: "drop", 1: "oak"}), tmp_path / "out")
    before, after = contents(Path(source)), contents(done.path)
    parts = [{n: b for n, b in held.items() if n.startswith("test/")} for held in (before, after)]
    assert parts[0] and parts[0] == parts[1]
    picks = picked(samples, dict.fromkeys(range(8), "drop"))
    with pytest.raises(UsageError, match=r"no image of ash would be left in train/"):
        clean(source, picks, tmp_path / "none", allow_empty=True)
    assert not (tmp_path / "none").exists()


def test_unreadable_files_are_left_out_and_told(tmp_path: Path) -> None:
    source = LAYOUTS["trees"].write(tmp_path / "trees", frame())
    Path(source, "ash/bad.png").write_bytes(b"no image")
    Path(source, "ash/notes.txt").write_text("no image either")
    samples = open_samples(source, skip_bad=True)
    done = clean(source, picked(samples, {0: "drop"}), tmp_path / "out", skip_bad=True)
    assert "1 file that cannot be read left out" in done.notes
    assert not list(done.path.rglob("bad.png")) and len(opened("trees", done.path)) == 23


@pytest.mark.slow
@pytest.mark.parametrize("split", ["train", "test", "all"])
def test_a_set_known_by_name_becomes_class_folders(tmp_path: Path, split: str) -> None:
    samples = open_samples("digits", split=split)
    decided = {0: "drop", 5: "7", len(samples) - 1: "drop"}
    done = clean("digits", picked(samples, decided), tmp_path / "out", split=split)
    again = open_samples(done.path, split=split)
    assert pairs(again) == wanted(samples, decided), "pixel by pixel"
    assert len(open_samples(done.path, split="all")) == 1795
    assert done.next == f"rarefy train {done.path}"


def test_a_folder_named_as_a_set_does_not_stand_in_its_way(here: Path) -> None:
    Path("digits").mkdir()
    samples = open_samples("digits")
    assert clean("digits", picked(samples, {0: "drop"}), "out").kept == 1437


def test_a_cleaned_set_can_be_cleaned_and_the_first_undone(tmp_path: Path) -> None:
    source = LAYOUTS["trees"].write(tmp_path / "trees", frame())
    first = clean(source, picked(opened("trees", source), {0: "drop"}), tmp_path / "first")
    samples = opened("trees", first.path)
    second = clean(first.path, picked(samples, {0: "drop"}), tmp_path / "second")
    undo(first.path)
    assert len(opened("trees", second.path)) == 22, "its links lead to the data themselves"


def test_the_label_column_by_either_word(tmp_path: Path) -> None:
    source = LAYOUTS["trees.csv"].write(tmp_path / "trees.csv", frame())
    rows = picked(opened("trees.csv", source), {0: "drop"}).to_dict("records")
    file = tmp_path / "p.json"
    head = {"format": "rarefy picks 1", "read": {"label": "kind"}}
    file.write_text(json.dumps({**head, "picks": rows}))
    for number, words in enumerate(({}, {"label": "kind"}, {"labels": "kind"})):
        done = clean(source, file, tmp_path / f"out{number}", **words)
        assert done.kept == 23 and done.next.endswith("--label kind")
    source = LAYOUTS["trees.csv"].write(
        tmp_path / "own.csv", frame().rename(columns={"kind": "label"})
    )
    done = clean(source, picked(open_samples(source), {0: "drop"}), tmp_path / "own")
    assert done.kept == 23 and done.next.endswith("own.csv --label label")


def test_arrays_and_frames_from_memory(tmp_path: Path) -> None:
    table = frame()
    X, y = table[["height", "girth", "age"]].to_numpy(), table["kind"].to_numpy()
    picks = picked(from_arrays(X, y), {1: "drop", 2: "oak"})
    arrays = clean(X, picks, tmp_path / "arrays", y)
    with np.load(arrays.path / "arrays.npz") as held:
        assert (held["features"] == np.delete(X, 1, axis=0)).all(), "in their own units"
        assert held["labels"][1] == "oak"
    framed = clean(table, picks, tmp_path / "framed", "kind")
    expected = table.drop(index=1).reset_index(drop=True)
    expected.loc[1, "kind"] = "oak"
    pd.testing.assert_frame_equal(pd.read_parquet(framed.path / "table.parquet"), expected)
    pixels = np.random.default_rng(0).integers(0, 255, (24, 5, 5, 3)).astype(np.uint8)
    drawn = clean(pixels, picked(from_arrays(pixels, y), {1: "drop"}), tmp_path / "drawn", y)
    seen = np.asarray(Image.open(drawn.path / "ash/000003.png"))
    assert (seen == pixels[3]).all() and not (drawn.path / "oak/000001.png").exists()
    assert rarefy.clean is cleaning.clean


def test_data_in_another_order_or_grown_are_the_same_data(tmp_path: Path) -> None:
    table = frame()
    source = LAYOUTS["trees.csv"].write(tmp_path / "trees.csv", table)
    samples = opened("trees.csv", source)
    file = tmp_path / "picks.json"
    head = {"format": "rarefy picks 1", "fingerprint": samples.fingerprint, "data": "trees.csv"}
    rows = picked(samples, {3: "drop", 8: "oak"}).to_dict("records")
    file.write_text(json.dumps({**head, "read": {"label": "kind"}, "picks": rows}))
    turned = table.sample(frac=1, random_state=1)
    turned.to_csv(source, index=False)
    done = clean(source, file, tmp_path / "turned")  # label: what the picks say
    assert not done.notes
    expected = turned.drop(index=3)
    expected.loc[8, "kind"] = "oak"
    found = pd.read_csv(done.path / "trees.csv")
    pd.testing.assert_frame_equal(found, expected.reset_index(drop=True))
    pd.concat([table, frame(3, seed=9)]).to_csv(source, index=False)
    grown = clean(source, file, tmp_path / "grown")
    assert grown.kept == 25 and any("has changed since" in note for note in grown.notes)


def test_copies_are_told_apart_by_their_names(tmp_path: Path) -> None:
    table = frame(9)
    table = pd.concat([table, table.assign(remark=[f"copy {row}" for row in range(9)])])
    source = tmp_path / "t.csv"
    table.to_csv(source, index=False)
    options = {"label": "kind", "names": "remark"}
    samples = open_samples(source, standardize=False, **options)
    assert samples.files is not None and samples.files[9] == "copy 0"
    picks = picked(samples, {9: "drop"})
    table.iloc[::-1].to_csv(source, index=False)
    done = clean(source, picks, tmp_path / "out", **options)
    left = pd.read_csv(done.path / "t.csv")["remark"]
    assert len(left) == 17 and "copy 0" not in set(left)


def test_a_failure_on_the_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = LAYOUTS["trees"].write(tmp_path / "trees", frame())
    samples = opened("trees", source)
    before = sorted(path.name for path in tmp_path.iterdir())
    real, made = os.symlink, []

    def full(target: str, link: Path) -> None:
        made.append(link)
        if len(made) > 5:
            raise OSError(28, "No space left on device")
        real(target, link)

    monkeypatch.setattr(os, "symlink", full)
    with pytest.raises(RunError, match="No space left on device"):
        clean(source, picked(samples, {0: "drop"}), tmp_path / "out")
    assert len(made) == 6 and sorted(path.name for path in tmp_path.iterdir()) == before

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cleaning, "record", stopped)
    monkeypatch.setattr(os, "symlink", real)
    with pytest.raises(KeyboardInterrupt):
        clean(source, picked(samples, {0: "drop"}), tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_formulas_in_the_log_are_text(tmp_path: Path) -> None:
    table = frame().assign(remark="=cmd()")
    source = tmp_path / "t.csv.gz"
    source.write_bytes(gzip.compress(table.to_csv(index=False).encode()))
    samples = open_samples(source, label="kind", names="remark", standardize=False)
    done = clean(source, picked(samples, {0: "drop"}), tmp_path / "o", label="kind", names="remark")
    assert "'=cmd()" in done.log_path.read_text()
    assert len(pd.read_csv(done.path / "t.csv.gz")) == 23
