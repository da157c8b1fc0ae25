"""``rarefy clean`` through its real entry point: from data to page to decisions to cleaned data."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browser import browser, needs_browser
from cleaned_sets import LAYOUTS, contents, frame

from rarefy.cli import main
from rarefy.tools.influence.writing import read_table


@pytest.fixture(autouse=True)
def in_a_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "80")
    return here


def picks(path: str, *decided: tuple[str, str, str]) -> str:
    rows = [{"id": one, "decision": what, "new_label": new} for one, what, new in decided]
    head = {"format": "rarefy picks 1", "data": "trees.csv", "read": {"label": "kind"}}
    Path(path).write_text(json.dumps({**head, "picks": rows}), "utf-8")
    return path


def scored(table: pd.DataFrame) -> pd.DataFrame:
    LAYOUTS["trees.csv"].write(Path("trees.csv"), table)
    assert main(["influence", "trees.csv", "--label", "kind", "--out", "page"]) == 0
    return read_table("page/scores.parquet")


def test_it_ends_in_counts_and_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    table = scored(frame())
    file = picks(
        "p.json",
        (table["id"][0], "drop", ""),
        (table["id"][3], "relabel", "oak"),
        (table["id"][4], "keep", ""),
    )
    capsys.readouterr()
    before = contents(Path())
    call = ["clean", "trees.csv", "--picks", file, "--out", "tidy"]
    assert main(call) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split() for line in told if line.startswith(("ash", "elm", "oak"))] == [
        ["ash", "8", "6"],
        ["elm", "8", "8"],
        ["oak", "8", "9"],
    ]
    assert told[-4:] == [
        "kept 22, dropped 1, relabelled 1 of 24 samples",
        "cleaned: tidy (log: clean-log.csv)",
        "undo: rarefy clean --undo tidy",
        "next: rarefy influence tidy/trees.csv --label kind",
    ]
    log = pd.read_csv("tidy/clean-log.csv", keep_default_na=False)
    assert log["decision"].tolist() == ["drop", "relabel", "keep"]
    assert main([*call, "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["done_before"] and again["next"] == "rarefy influence tidy/trees.csv --label kind"
    assert main(["clean", "--undo", "tidy"]) == 0
    assert capsys.readouterr().out.startswith("removed: tidy (2 files); trees.csv was never")
    assert contents(Path()) == before


def test_wrong_use_is_one_line_and_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    table = scored(frame())
    good = picks("p.json", (table["id"][0], "drop", ""))
    other = picks("other.json", ("f" * 32, "drop", ""))
    strange = picks("strange.json", (table["id"][0], "relabel", "oack"))
    Path("there").mkdir()
    before = contents(Path())
    capsys.readouterr()
    whole = ["trees.csv", "--picks", good, "--out", "o"]
    for arguments, message in (
        ([], "data=None: name the data that the page was made of"),
        (["trees.csv"], "picks=None: name the file that the page exported (E)"),
        (["trees.csv", "--picks", good], "out=None: name a folder for the cleaned set"),
        ([*whole[:-1], "there"], "out='there': is there already"),
        (["nothing.csv", *whole[1:]], "there is no file nothing.csv"),
        (["digits", *whole[1:]], "are picks of 'trees.csv', and digits cannot be read as that"),
        ([*whole[:2], other, *whole[3:]], "are picks of other data than trees.csv"),
        ([*whole[:2], strange, *whole[3:]], "did you mean 'oak'?"),
        ([*whole[:2], "none.json", *whole[3:]], "picks='none.json': there is no such file"),
        ([*whole, "--label", "kin"], "label='kin': no such column"),
        ([*whole, "--undo", "o"], "does not fit --undo"),
        (["--undo", "there"], "undo='there': was not written by rarefy clean"),
        (["--undo", "o"], "undo='o': there is no such folder"),
    ):
        assert main(["clean", *arguments]) == 2, arguments
        told = capsys.readouterr()
        assert told.err.startswith("error: ") and message in told.err, told.err
        assert told.err.count("\n") == 1 and not told.out
    assert contents(Path()) == before and not Path("o").exists()


def test_picks_of_a_set_known_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["influence", "digits", "--no-gallery", "--neighbours", "0"]) == 0
    table = read_table("runs/influence-digits/scores.parquet")
    rows = [{"id": one, "decision": "drop"} for one in table["id"][:5]]
    Path("p.json").write_text(json.dumps({"format": "rarefy picks 1", "picks": rows}), "utf-8")
    capsys.readouterr()
    assert main(["clean", "digits", "--picks", "p.json", "--out", "o"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[-1] == "next: rarefy train o"
    assert "written as class folders of PNG files" in told.err
    assert len(list(Path("o/train").rglob("*.png"))) == 1433
    assert len(list(Path("o/test").rglob("*.png"))) == 359


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", "--help"]) == 0
    shown = capsys.readouterr().out
    for words in ("rarefy influence my_photos --open", "Example: rarefy clean", "--undo"):
        assert words in shown


def test_the_map_of_a_page_by_option(capsys: pytest.CaptureFixture[str]) -> None:
    frame().to_csv("t.csv", index=False)
    call = ["influence", "t.csv", "--label", "kind", "--out", "p"]
    assert main([*call, "--map", "umap"]) == 2
    assert "map='umap': must be pca or none" in capsys.readouterr().err
    assert main([*call, "--map", "none"]) == 0
    assert "<canvas" not in Path("p/gallery.html").read_text("utf-8")
    assert main([*call, "--overwrite"]) == 0
    assert "<canvas" in Path("p/gallery.html").read_text("utf-8")
    assert (
        capsys.readouterr()
        .out.splitlines()[-1]
        .endswith("then rarefy clean t.csv --picks FILE --out DIR")
    )


@needs_browser
def test_flipped_labels_are_put_right_in_three_steps(tmp_path: Path) -> None:
    """What a curator does: the page, R and E in a real browser, the command."""
    truth = frame(90)
    truth[["height", "girth", "age"]] += 2.0 * (np.arange(90) % 3)[:, None]
    flipped = truth.copy()
    flipped.loc[[3, 40, 71], "kind"] = ["oak", "elm", "ash"]
    table = scored(flipped)
    assert (table["triage"][[3, 40, 71]] != "").all()
    (tmp_path / "b").mkdir()
    with browser(tmp_path / "b") as tab:
        tab.open(Path("page/gallery.html"))
        for row in (3, 40, 71):
            place = tab.run(f"known.index.indexOf({row})")
            tab.click(f'[data-view="triage"] .cell[data-r="{place}"] .open')
            tab.press("r")
        tab.press("e")
        file, until = tmp_path / "b/downloads/trees-picks.json", time.monotonic() + 20
        while not file.exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert not tab.errors
    assert main(["clean", "trees.csv", "--picks", str(file), "--out", "tidy"]) == 0
    pd.testing.assert_frame_equal(pd.read_csv("tidy/trees.csv"), truth)
