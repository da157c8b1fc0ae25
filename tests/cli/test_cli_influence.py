"""``rarefy influence`` through its real entry point."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from folders import seen_in
from PIL import Image
from planted import shapes_with_five

from rarefy.cli import main
from rarefy.cli.scored_tables import advice
from rarefy.core.errors import OutOfTime
from rarefy.tools.influence import scoring
from rarefy.tools.influence.writing import read_table


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


QUICK = ["--no-gallery", "--no-check-labels"]


def frame(count: int = 60) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    kinds = np.array(["ash", "oak", "elm"])[np.arange(count) % 3]
    numbers = generator.normal((np.arange(count) % 3)[:, None] * 2, 1, (count, 3))
    return pd.DataFrame(numbers, columns=["height", "girth", "age"]).assign(kind=kinds)


def test_digits_get_a_table_and_a_gallery(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["influence", "digits", "--csv"]) == 0
    told = capsys.readouterr().out
    assert "1,438 samples, 10 classes" in told and "rare but right" in told
    folder = Path("runs/influence-digits")
    assert {path.name for path in seen_in(folder)} == {
        *("scores.parquet", "scores.csv", "scores.csv.json", "gallery.html")
    }
    table = read_table(folder / "scores.parquet")
    assert len(table) == 1438 and table.attrs["data"] == "digits"
    page = (folder / "gallery.html").read_text(encoding="utf-8")
    assert table["id"][0][:8] and "Atypical samples of digits" in page


def test_planted_errors_are_found_in_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    images, kinds, wrong = shapes_with_five()
    for number, (pixels, kind) in enumerate(zip(images, kinds, strict=True)):
        Path("shapes", kind).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(f"shapes/{kind}/{number}.png")
    assert main(["influence", "shapes", "--out", "there", "--csv"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "labels most in doubt" in told and "labels are in doubt, of 288 checked" in told
    table = read_table("there/scores.csv").set_index("name")
    planted = table.loc[[f"square/{number}.png" for number in wrong]]
    assert planted["label_issue"].all() and (planted["suggested_label"] == "circle").all()
    assert (planted["triage"] == "maybe mislabelled").all()


def test_rules_that_are_off_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    some = frame()
    some.loc[0, "kind"] = "yew"
    some.to_csv("trees.csv", index=False)
    call = ["influence", "trees.csv", "--label", "kind"]
    assert main(call) == 0
    told = " ".join(capsys.readouterr().out.split())
    off = "label check is off for class yew (one sample or copies of it: nothing to learn the"
    assert off in told and "neighbour rule is off for class yew" in told
    assert off in next(Path("runs").glob("influence-trees*/gallery.html")).read_text("utf-8")
    assert main([*call, "--json", "--no-gallery", "--overwrite"]) == 0
    told_json = json.loads(capsys.readouterr().out)
    assert off in " ".join(told_json["notes"])
    assert told_json["label_issues"] == told_json["triage"].get("maybe mislabelled", 0)
    assert main([*call, *QUICK, "--overwrite"]) == 0
    assert "label check" not in capsys.readouterr().out


def test_where_no_label_was_checked_neighbours_have_spoken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = np.random.default_rng(0).normal(np.repeat([0.0, 9.0], 30)[:, None], 1.0, (60, 3))
    kinds = ["oak"] * 30 + ["yew"] * 28 + ["oak"] * 2
    pd.DataFrame(rows).assign(kind=kinds).to_csv("trees.csv", index=False)
    call = ["influence", "trees.csv", "--label", "kind", "--no-check-labels", "--no-gallery"]
    assert main(call) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "no label was checked: in doubt by their neighbours alone" in said
    assert said.endswith("no label was checked; by their neighbours alone 2 are in doubt")
    assert main([*call, "--json", "--overwrite"]) == 0
    # (NaN is no JSON)
    doubts = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["doubts"]
    assert [(row["name"], row["suggested_label"]) for row in doubts] == [("", "yew")] * 2
    assert [row["given_probability"] for row in doubts] == [None, None]


def test_units_do_not_rule_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    frame().assign(age=frame()["age"] * 1e5).to_csv("trees.csv", index=False)
    call = ["influence", "trees.csv", "--label", "kind", *QUICK]
    assert main(call) == 0
    assert "rules the score" not in capsys.readouterr().err
    assert main([*call, "--no-standardize", "--out", "there"]) == 0
    assert "'age' varies" in capsys.readouterr().err
    spread = [
        read_table(next(Path("runs").rglob("scores.parquet"))),
        read_table("there/scores.parquet"),
    ]
    assert spread[0]["distance"].max() < 10 < spread[1]["distance"].max()


def test_a_table_by_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    frame().to_parquet("trees.parquet")
    call = ["influence", "trees.parquet", "--label", "kind", "--columns", "height,girth"]
    assert main([*call, *QUICK, "--neighbours", "0", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["samples"] == 60 and told["classes"] == 3 and told["undefined"] == 0
    assert list(told["written"]) == ["table"] and len(told["highest"]) == 10


def test_class_folders_with_a_bad_file(capsys: pytest.CaptureFixture[str]) -> None:
    generator = np.random.default_rng(0)
    for kind in ("a", "b"):
        Path("photos", kind).mkdir(parents=True)
        for number in range(6):
            pixels = generator.integers(0, 255, (8, 8, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(f"photos/{kind}/{number}.png")
    Path("photos/b/bad.png").write_bytes(b"no image")
    assert main(["influence", "photos"]) == 2
    assert "bad.png" in capsys.readouterr().err
    assert main(["influence", "photos", "--skip-bad", "--out", "there"]) == 0
    assert "left out" in capsys.readouterr().err and Path("there/gallery.html").exists()
    assert set(read_table("there/scores.parquet")["name"]) >= {"a/0.png", "b/5.png"}


def test_stopped_scoring_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["influence", "digits", "--max-seconds", "1e-6", *QUICK]) == 3
    assert "note: stopped while scoring" in capsys.readouterr().err
    assert Path("runs/influence-digits/.rarefy/unfinished").is_dir()
    assert not Path("runs/influence-digits/scores.parquet").exists()
    assert main(["influence", "digits", *QUICK]) == 0
    assert not Path("runs/influence-digits/.rarefy/unfinished").exists()


def test_scores_are_kept_when_neighbours_are_stopped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = scoring.neighbour_labels

    def late(*arguments: Any, **options: Any) -> Any:
        raise OutOfTime("stopped while looking for neighbours")

    monkeypatch.setattr(scoring, "neighbour_labels", late)
    assert main(["influence", "digits", *QUICK]) == 3
    assert Path("runs/influence-digits/.rarefy/unfinished/scores/state.npz").exists()
    monkeypatch.setattr(scoring, "neighbour_labels", real)
    assert main(["influence", "digits", *QUICK, "--ddof", "0"]) == 2
    assert "--overwrite begins anew" in capsys.readouterr().err
    assert main(["influence", "digits", *QUICK]) == 0


def test_an_error_does_not_stand_in_the_way_of_corrected_data() -> None:
    some = frame()[["height", "girth"]].to_numpy()
    np.save("labels.npy", frame()["kind"].to_numpy().astype("U3"))
    np.save("x.npy", np.where(np.arange(60)[:, None] == 7, np.nan, some))
    assert main(["influence", "x.npy", *QUICK]) == 2
    np.save("x.npy", some)
    assert main(["influence", "x.npy", *QUICK]) == 0


def test_an_embedding_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    Path("seen.py").write_text(
        "def halves(images):\n    return images.flatten(1)[:, ::2]\n", encoding="utf-8"
    )
    assert main(["influence", "digits", "--embed", "seen:halves", *QUICK]) == 0
    folder = Path("runs/influence-digits-seen-halves")
    assert read_table(folder / "scores.parquet").attrs["features"] == 32
    assert "embedding: start\n" in capsys.readouterr().err  # (nothing was there before)
    again = ["--embed", "seen:halves", "--standardize", "--out", "again", *QUICK]
    assert main(["influence", "digits", *again]) == 0


def test_parts_and_embeddings_have_folders_of_their_own() -> None:
    Path("unchanged.py").write_text("def same(images):\n    return images\n", encoding="utf-8")
    assert main(["influence", "digits", "--csv", *QUICK]) == 0
    assert main(["influence", "digits", "--split", "test", *QUICK]) == 0
    assert main(["influence", "digits", "--embed", "unchanged:same", *QUICK]) == 0
    assert {path.name for path in seen_in(Path("runs"))} == {
        *("influence-digits", "influence-digits-test", "influence-digits-unchanged-same")
    }
    table = read_table("runs/influence-digits-unchanged-same/scores.parquet")
    assert any("unchanged:same" in note for note in table.attrs["notes"])


def test_nothing_of_other_scores_is_left_beside_a_table() -> None:
    assert main(["influence", "digits", "--csv", "--out", "o", "--no-check-labels"]) == 0
    again = ["influence", "digits", "--split", "test", *QUICK, "--out", "o"]
    assert main(again) == 2 and main([*again, "--overwrite"]) == 0
    assert [path.name for path in seen_in(Path("o"))] == ["scores.parquet"]


def test_small_classes_do_not_rule_the_most_atypical(capsys: pytest.CaptureFixture[str]) -> None:
    some = frame(63)
    some.loc[:2, "kind"] = "yew"
    some.loc[30, ["height", "girth", "age"]] = 9.0
    some.to_csv("trees.csv", index=False)
    call = ["influence", "trees.csv", "--label", "kind", *QUICK, "--json"]
    assert main(call) == 0
    first = json.loads(capsys.readouterr().out)["highest"][0]
    assert first["label"] != "yew"


def test_class_names_that_are_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    generator = np.random.default_rng(0)
    for kind in (b"photos/a", b"photos/\xff"):
        os.makedirs(kind)
        for number in range(5):
            pixels = generator.integers(0, 255, (8, 8)).astype(np.uint8)
            path = Path(os.fsdecode(kind)) / f"{number}.png"
            Image.fromarray(pixels).save(path)
    assert main(["influence", "photos", "--out", "there", "--csv"]) == 0
    assert Path("there/gallery.html").exists()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["digts"], "did you mean 'digits'"),
        (["digits", "--ddof", "3"], "ddof=3: must be 0 or 1"),
        (["digits", "--standardize"], "standardize=True: does not fit images, whose pixels have"),
        (["one.csv", "--label", "kind"], "one.csv: column 'kind': all 3 samples have the label"),
        (["gap.csv", "--label", "kind"], "gap.csv: column 'x' has no value in row 1"),
        (["x.npy", "--labels", "y.npy"], "labels='3 labels': must be 2, one per sample"),
        (["digits", "--embed", "seen:short"], "embedding='seen:short'"),
        (["digits", "--label", "kind"], "label='kind': does not fit images"),
        (["trees.csv"], "label=None: trees.csv: name the column that has the classes"),
        (["trees.csv", "--label", "kin"], "kind"),
        (["digits", "--split", "half"], "split='half': must be one of train, test, all"),
        (["digits", "--out", "trees.csv"], "out='trees.csv': is a file; name a folder"),
        (["digits", "--memory", "nan"], "memory=nan: is not a number"),
        (["digits", "--max-seconds", "-3"], "--max-seconds=-3.0: must be more than 0"),
        (["digits", "--open", "--no-gallery"], "there is no page to open"),
    ],
)
def test_wrong_use_is_told_in_one_line(
    call: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame().to_csv("trees.csv", index=False)
    Path("one.csv").write_text("x,kind\n1,a\n5,a\n3,a\n", encoding="utf-8")
    Path("gap.csv").write_text("x,kind\n1,a\n,b\n3,a\n", encoding="utf-8")
    np.save("x.npy", np.ones((2, 2)))
    np.save("y.npy", np.arange(3))
    Path("seen.py").write_text("def short(images):\n    return images[1:]\n", encoding="utf-8")
    assert main(["influence", *call]) == 2
    told = capsys.readouterr().err.strip()
    assert message in told and "\n" not in told and told.startswith("error: ")


def test_the_last_sentence_names_a_class_and_how_many_are_as_doubtful() -> None:
    table = pd.DataFrame({"label": list("aabbc"), "given_probability": 0.5})
    table["label_issue"] = [True, False, True, False, False]
    table.attrs["label_accuracy"] = 1.0
    assert "most in class 'a' (1 of 2, as many per sample in 1 more): look" in advice(table)
    table["label_issue"] &= table["label"] == "a"
    assert "most in class 'a' (1 of 2): look" in advice(table)
