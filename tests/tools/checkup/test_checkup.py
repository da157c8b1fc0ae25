"""A check-up of small sets: what is planted comes first, parts are resumed, bad input is told."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from rarefy.cli import app
from rarefy.core.errors import OutOfTime, RunError, UsageError
from rarefy.report.checkup import write_checkup
from rarefy.tools.checkup import parts
from rarefy.tools.checkup.api import checkup
from rarefy.tools.checkup.sections import DONE, FAILED, SKIPPED
from rarefy.tools.influence.label_check import KNOWN
from rarefy.tools.train_images import train

pytestmark = pytest.mark.usefixtures("quick")


def shapes(folder: Path, sizes: dict[str, int], side: int = 12) -> Path:
    """A folder of squares in the corner of their class, with a little noise."""
    draws = np.random.default_rng(0)
    for label, (name, size) in enumerate(sizes.items()):
        (folder / name).mkdir(parents=True)
        for place in range(size):
            pixels = draws.integers(0, 40, (side, side)).astype(np.uint8)
            row, column = divmod(label, 2)
            pixels[6 * row : 6 * row + 5, 6 * column : 6 * column + 5] += 180
            Image.fromarray(pixels).save(folder / name / f"{place}.png")
    return folder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return shapes(tmp_path / "photos", {"a": 60, "b": 30, "c": 12})


def test_a_table_with_flipped_labels(tmp_path: Path) -> None:
    from sklearn.datasets import load_wine

    frame = load_wine(as_frame=True).frame.rename(columns={"target": "kind"})
    flipped = [3, 40, 70, 100, 150]
    frame.loc[flipped, "kind"] = (frame.loc[flipped, "kind"] + 1) % 3
    frame.to_csv(tmp_path / "wine.csv", index=False)
    found = checkup(tmp_path / "wine.csv", label="kind", out=tmp_path / "out")
    assert [one.status for one in found.sections] == [DONE, DONE, SKIPPED, SKIPPED, SKIPPED]
    first = found.first[0]
    assert "labels in doubt" in first.what and first.command.endswith("--label kind --open")
    rows = {row for table in found.sections[1].tables[:1] for row in table.samples}
    assert len(set(flipped) & rows) >= 4
    assert found.sentence.startswith("do first: look at") and len(found.frame) >= 1
    page = write_checkup(tmp_path / "page.html", found).read_text()
    assert "<script" not in page and first.what[1:] in page


def test_a_table_that_says_nothing_is_not_to_be_embedded(tmp_path: Path) -> None:
    draws, said = np.random.default_rng(0), list[str]()
    frame = pd.DataFrame(draws.normal(size=(300, 6))).rename(columns="f{}".format)
    frame["label"] = draws.integers(0, 3, 300)
    frame.to_parquet(tmp_path / "own.parquet")
    found = checkup(tmp_path / "own.parquet", only=["samples"], out=tmp_path / "o", say=said.append)
    assert found.sections[0].numbers["label_accuracy"] < KNOWN
    assert found.sections[0].numbers["issues"]
    assert not [one for one in found.todo if "--embed" in one.command]
    assert said[0] == "note: labels: column 'label' of own.parquet"


def test_a_folder_with_a_broken_file_and_a_leak(photos: Path, tmp_path: Path) -> None:
    (photos / "a" / "broken.png").write_bytes(b"no image")
    (photos / "b" / "copy.png").write_bytes((photos / "a" / "0.png").read_bytes())
    found = checkup(photos, only=["set", "samples"], out=tmp_path / "out")
    assert found.sections[0].numbers["broken"] == 1
    leak, conflict, broken = (one.what for one in found.first)
    assert leak.startswith("take training images") and conflict.startswith("decide which label")
    assert broken == "mend or remove 1 file that cannot be read"
    page = write_checkup(tmp_path / "page.html", found).read_text()
    assert "data:image/webp" in page


def test_parts_are_kept_and_only_missing_ones_run(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def counted(name: str, part: Any) -> Any:
        def run(of: parts.Subject) -> Any:
            ran.append(name)
            if name == "finer" and len(ran) == 3:
                raise OutOfTime("over")
            return part(of)

        return run

    for name, part in list(parts.PARTS.items()):
        monkeypatch.setitem(parts.PARTS, name, counted(name, part))
    options: dict[str, Any] = {"skip": ["learning", "features"], "out": tmp_path / "out"}
    first = checkup(photos, **options)
    assert ran == ["set", "samples", "finer"] and first.missing == ("finer",) and not first.finished
    second = checkup(photos, **options)
    assert ran[3:] == ["finer"] and second.finished
    assert second.sections[:2] == first.sections
    # a damaged file is passed over; other data are other findings
    (tmp_path / "out/.rarefy/checkup/set.json").write_text("{")
    checkup(photos, **options)
    assert ran[4:] == ["set"]
    (photos / "a" / "0.png").unlink()
    checkup(photos, **options)
    assert ran[5:] == ["set", "samples", "finer"]


def test_a_part_that_fails_leaves_the_others(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(of: parts.Subject) -> Any:
        raise RunError("no luck")

    monkeypatch.setitem(parts.PARTS, "samples", broken)
    found = checkup(photos, skip=["learning", "features"], out=tmp_path / "out")
    assert [one.status for one in found.sections] == [DONE, FAILED, DONE]
    assert found.sections[1].answer == "failed: no luck" and found.failed == ["samples"]
    assert found.sentence.endswith("; samples failed")
    assert not (tmp_path / "out/.rarefy/checkup/samples.json").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"only": ["nothing"]}, "unknown part 'nothing'"),
        ({"only": ["set"], "skip": ["set"]}, "leave no part"),
        ({"max_seconds": 0}, "must be more than 0"),
        ({"hierarchy": "parents.csv", "data": "wine.csv"}, "hierarchy=.*is for images"),
        ({"size": 8, "data": "digits"}, "size=.*is for folders, and digits is none"),
        ({"size": 8, "data": "wine.csv"}, "size=.*is for folders"),
    ],
)
def test_bad_input(options: dict[str, Any], words: str, photos: Path, tmp_path: Path) -> None:
    data = options.pop("data", str(photos))
    if data.endswith(".csv"):
        data = str(tmp_path / data)
        pd.DataFrame({"x": [1.0, 2.0], "kind": ["a", "b"]}).to_csv(data, index=False)
    with pytest.raises(UsageError, match=words):
        checkup(data, out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_the_verb_ends_in_what_to_do_first(photos: Path, tmp_path: Path) -> None:
    options = ["--only", "set,samples,finer", "--out", str(tmp_path / "out")]
    ran = CliRunner().invoke(app, ["checkup", str(photos), *options])
    assert ran.exit_code == 0, ran.output
    lines = ran.output.strip().splitlines()
    assert lines[-1].startswith(("do first:", "nothing to do first"))
    assert (tmp_path / "out" / "checkup.html").exists()
    again = CliRunner().invoke(app, ["checkup", str(photos), *options, "--json"])
    assert again.exit_code == 0 and '"decision"' in again.output
    wrong = CliRunner().invoke(app, ["checkup", str(photos), "--only", "sets"])
    assert wrong.exit_code == 2 and "unknown part 'sets'" in wrong.output


def test_what_a_quick_network_learns(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "train", partial(train, seeds=1, epochs=1, network="lenet", jobs=1))
    found = checkup(photos, only=["learning"], out=tmp_path / "out")
    (section,) = found.sections
    assert section.status == DONE, section.answer
    assert section.numbers["classes"] == 3 and section.tables[0].lines
    assert len(list((tmp_path / "out").glob("train-*"))) == 1
    # other data are another training, and the same ones can be trained anew
    (photos / "a" / "0.png").unlink()
    for overwrite in (False, True):
        (section,) = checkup(
            photos, only=["learning"], out=tmp_path / "out", overwrite=overwrite
        ).sections
        assert section.status == DONE, section.answer
    assert len(list((tmp_path / "out").glob("train-*"))) == 2
