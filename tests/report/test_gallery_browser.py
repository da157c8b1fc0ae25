"""The gallery in a real browser: keys, mouse and finger, decisions and their file."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from browser import Tab, browser, needs_browser
from toy_scores import Page, Places, digit, scores

from rarefy.report.gallery import write_gallery
from rarefy.tools.clean.picks import FORMAT, read_picks

pytestmark = needs_browser
ODD = 'quote " comma , </script>'


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return scores({"a": 200, ODD: 40, "c": 30})


@pytest.fixture(scope="module")
def path(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "g.html"
    classes = tuple(table["label"].unique())
    origin = {"data": "my photos/cats", "read": {"size": 16}}
    write_gallery(
        path, table, title="t", classes=classes, thumbnail=digit, positions=Places(), origin=origin
    )
    return path


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Tab, Path]]:
    folder = tmp_path_factory.mktemp("browser")
    with browser(folder) as tab:
        yield tab, folder / "downloads"


@pytest.fixture
def tab(started: tuple[Tab, Path], path: Path) -> Iterator[Tab]:
    tab = started[0]
    tab.open(path)
    tab.run("localStorage.clear()")
    tab.open(path)
    yield tab
    assert not tab.errors


def picks_of(tab: Tab) -> dict[str, tuple[str, str]]:
    held = json.loads(tab.run("exported()"))
    return {pick["id"]: (pick["decision"], pick["new_label"]) for pick in held["picks"]}


def mislabelled(table: pd.DataFrame) -> pd.DataFrame:
    mine = table[table["triage"] == "maybe mislabelled"]
    return mine.sort_values(["disagreement", "percentile"], ascending=False, kind="stable")


FIRST = '.view:not([hidden]) .cell[data-r="{}"] .open'


def place_of(path: Path, identity: str) -> int:
    return int(Page.read(path).numbers["id"].index(identity))


def test_keys_decide_and_go_on_to_the_next(tab: Tab, path: Path, table: pd.DataFrame) -> None:
    assert tab.run("state.view") == "triage"
    flagged = mislabelled(table)
    known = Page.read(path).numbers
    first = flagged.iloc[0]
    tab.click(FIRST.format(place_of(path, first["id"])))
    panel = tab.run('document.getElementById("panel").innerText')
    for name in ("influence", "distance", "mahalanobis", "own", "shared", "norm"):
        assert f"{float(f'{first[name]:.4g}'):g}" in panel, name
    assert first["id"] in panel and first["rule"] in panel
    for label in ("Keep K", "Drop D", "Relabel R", "Undecided U", "Close Esc"):
        assert label in panel, "keys are labelled"
    tab.press("d", "k", "R")
    decided = picks_of(tab)
    assert decided[flagged.iloc[0]["id"]] == ("drop", "")
    assert decided[flagged.iloc[1]["id"]] == ("keep", "")
    third = flagged.iloc[2]
    differs = third["neighbour_label"] != third["label"]
    if differs:
        assert decided[third["id"]] == ("relabel", third["neighbour_label"])
    else:
        assert third["id"] not in decided, "without a suggestion a class must be chosen"
        assert tab.run("document.activeElement.id") == "to"
    assert len(known["id"]) == tab.run("known.id.length")
    tab.press("Escape")
    assert tab.run("panel.hidden")


def test_a_decision_can_be_taken_back_and_is_kept(
    tab: Tab, path: Path, table: pd.DataFrame
) -> None:
    first = mislabelled(table).iloc[0]
    tab.click(FIRST.format(place_of(path, first["id"])))
    tab.press("d")
    tab.open(path)
    assert picks_of(tab) == {first["id"]: ("drop", "")}, "the browser keeps it"
    assert tab.run('document.getElementById("count").textContent') == "1"
    assert tab.run('document.querySelectorAll(".cell.drop").length') >= 1
    tab.click(FIRST.format(place_of(path, first["id"])))
    tab.click('#panel [data-do=""]')
    assert picks_of(tab) == {}


def test_the_suggested_label_is_chosen_already(tab: Tab, path: Path, table: pd.DataFrame) -> None:
    flagged = mislabelled(table)
    other = flagged[flagged["neighbour_label"] != flagged["label"]].iloc[0]
    tab.click(FIRST.format(place_of(path, other["id"])))
    assert tab.run('document.getElementById("to").value') == other["neighbour_label"]
    assert other["label"] not in tab.run(
        'Array.from(document.getElementById("to").options, o => o.value)'
    )
    tab.click('#panel [data-do="relabel"]')
    assert picks_of(tab) == {other["id"]: ("relabel", other["neighbour_label"])}
    same = flagged[flagged["neighbour_label"] == flagged["label"]].iloc[0]
    tab.click(FIRST.format(place_of(path, same["id"])))
    assert tab.run('document.getElementById("to").value') == ""
    tab.press("r")
    assert same["id"] not in picks_of(tab)
    assert "choose one" in tab.run('document.getElementById("said").textContent')
    wanted = next(name for name in ("a", ODD) if name != same["label"])
    tab.run(f'document.getElementById("to").value = {json.dumps(wanted)}')
    tab.press("Enter")
    assert picks_of(tab)[same["id"]] == ("relabel", wanted)


def test_all_of_a_group_at_once(tab: Tab, table: pd.DataFrame) -> None:
    tab.click('.group [data-bulk="relabel"]')
    flagged = mislabelled(table)
    other = flagged[flagged["neighbour_label"] != flagged["label"]]
    assert picks_of(tab) == {
        row["id"]: ("relabel", row["neighbour_label"]) for _, row in other.iterrows()
    }
    tab.click('.group [data-bulk="drop"]')
    assert picks_of(tab) == dict.fromkeys(flagged["id"], ("drop", ""))
    tab.click('.group [data-bulk="clear"]')
    assert picks_of(tab) == {}


def test_the_exported_file_is_what_clean_reads(
    tab: Tab, started: tuple[Tab, Path], path: Path, table: pd.DataFrame
) -> None:
    tab.press("e")
    assert "nothing decided yet" in tab.run('document.getElementById("said").textContent')
    flagged = mislabelled(table)
    tab.click(FIRST.format(place_of(path, flagged.iloc[0]["id"])))
    tab.press("d", "k", "e")
    file = started[1] / "cats-picks.json"
    until = time.monotonic() + 20
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.05)
    held: dict[str, Any] = json.loads(file.read_text("utf-8"))
    file.unlink()
    assert held["format"] == FORMAT
    assert held["fingerprint"] == Page.read(path).numbers["fingerprint"]
    assert held["data"] == "my photos/cats" and held["read"] == {"size": 16}
    again = started[1] / "again.json"
    again.write_text(json.dumps(held), "utf-8")
    found = {pick.id: pick for pick in read_picks(again).picks}
    for place, decision in enumerate(("drop", "keep")):
        row = flagged.iloc[place]
        pick = found.pop(row["id"])
        assert (pick.decision, pick.label, pick.name) == (decision, row["label"], row["name"])
        assert pick.why == f"maybe mislabelled: {row['rule']}"
    assert not found
    command = "rarefy clean 'my photos/cats' --picks cats-picks.json --out cats-clean"
    assert command in tab.run('document.getElementById("said").textContent')
    tab.press("Escape")
    tab.click("[data-show=decisions]")
    assert tab.run('document.getElementById("command").textContent') == command
    assert "2 decided: keep 1, drop 1" in tab.run("document.body.innerText")


def test_a_rectangle_on_the_map_selects(tab: Tab, path: Path) -> None:
    tab.click("[data-show=map]")
    box = tab.run('document.getElementById("map").getBoundingClientRect().toJSON()')
    # samples lie on the lower edge, from left to right by row
    low = box["y"] + 0.9 * box["height"]
    right, end = box["x"] + 0.26 * box["width"], box["y"] + box["height"] - 1
    tab.mouse((box["x"] + 1, low), (right, low), (right, end))
    known = Page.read(path).numbers
    x = 20 + 0.96 * np.array(known["map"][0])
    inside = np.flatnonzero((x >= 1) & (x <= 260)).tolist()
    assert len(inside) > 20
    assert tab.run('document.getElementById("chosen").all') == inside
    assert f"{len(inside)} selected" in tab.run("document.body.innerText")
    tab.click('#chosen-group [data-bulk="drop"]')
    assert set(picks_of(tab)) == {known["id"][place] for place in inside}
    place = inside[3]
    tab.run("scrollTo(0, 0)")
    box = tab.run('document.getElementById("map").getBoundingClientRect().toJSON()')
    tab.mouse((box["x"] + x[place] / 1000 * box["width"], box["y"] + 0.98 * box["height"]))
    assert abs(tab.run("state.open") - place) <= 1, "a click opens the sample (or its neighbour)"


def test_classes_are_sorted_by_the_chosen_measure(
    tab: Tab, path: Path, table: pd.DataFrame
) -> None:
    tab.click("[data-show=classes]")
    known = Page.read(path).numbers
    mine = table[table["label"] == known["classes"]["0"]]
    tab.run('const m = document.getElementById("measure"); m.value = "mahalanobis"; '
            'm.dispatchEvent(new Event("change"))')  # fmt: skip
    strips = tab.run('Array.from(document.querySelectorAll("#c0 .strip"), '
                     "s => Array.from(s.children, c => Number(c.dataset.r)))")  # fmt: skip
    by = mine.sort_values("mahalanobis", ascending=False)["index"].tolist()
    assert [known["index"][place] for place in strips[0]] == by[:6]
    assert [known["index"][place] for place in strips[1]] == by[::-1][:6]


@pytest.mark.parametrize(("width", "height"), [(390, 844), (390, 664), (1400, 900)])
def test_a_sample_is_on_the_first_screen(tab: Tab, path: Path, width: int, height: int) -> None:
    tab.open(path, width, height)
    first = 'document.querySelector(".view:not([hidden]) .cell").getBoundingClientRect()'
    assert tab.run(f"{first}.bottom") <= height
    assert tab.run("document.documentElement.scrollWidth") <= width, "nothing sticks out"
    shown = tab.run('getComputedStyle(document.querySelector(".keys")).display')
    assert (shown == "none") == (width < 600), "keys are told where there is a keyboard"
    tab.click(".view:not([hidden]) .open")
    drop = 'document.querySelector("#panel [data-do=drop]").getBoundingClientRect()'
    assert 0 <= tab.run(f"{drop}.top") and tab.run(f"{drop}.bottom") <= height
    assert tab.run(f"{drop}.right") <= width


def test_rows_of_a_table_show_names_and_values(started: tuple[Tab, Path], tmp_path: Path) -> None:
    tab, table = started[0], scores({"a": 30, "b": 20})
    values = np.random.default_rng(0).normal(size=(50, 6))
    names = [f"feature {place}" for place in range(6)]
    path = tmp_path / "g.html"
    write_gallery(
        path,
        table,
        title="rows",
        classes=("a", "b"),
        columns=lambda row: list(zip(names, values[row], strict=True)),
    )
    tab.open(path, 390, 844)
    row = mislabelled(table).iloc[0]
    at = place_of(path, row["id"])
    cell = tab.run(f"""document.querySelector('{FIRST.format(at)}').innerText""")
    told = Page.read(path).numbers["columns"]["told"][at]
    for column in told:
        assert names[column] in cell and f"{values[row['index'], column]:.4g}" in cell
    tab.click(FIRST.format(at))
    panel = tab.run('document.querySelector("#panel .features").innerText')
    assert all(name in panel for name in names)
    assert "usual in a" in panel
    alone = np.flatnonzero(table["neighbour_label"] == table["label"])[0]
    tab.run(f"openSample(known.index.indexOf({alone}))")
    other = {"a": "b", "b": "a"}[table["label"][alone]]
    assert tab.run('document.getElementById("to").value') == other, "there is only one other class"
    assert not tab.errors


def test_the_label_check_suggests_and_orders(started: tuple[Tab, Path], tmp_path: Path) -> None:
    tab, table = started[0], scores({"a": 30, "b": 20, "c": 10})
    other = table["label"].map({"a": "b", "b": "c", "c": "a"})
    chance = np.random.default_rng(0).uniform(0.01, 0.3, len(table)).round(4)
    table = table.assign(
        suggested_label=other,
        given_probability=chance,
        suggested_probability=1 - chance,
        label_issue=True,
    )
    path = tmp_path / "g.html"
    write_gallery(path, table, title="t", classes=("a", "b", "c"), thumbnail=digit)
    tab.open(path)
    flagged = table[table["triage"] != ""].sort_values("given_probability")
    shown = tab.run("Array.from(document.querySelectorAll('.group .cell'), "
                    "c => known.index[c.dataset.r])")  # fmt: skip
    assert shown == flagged["index"].tolist(), "the least likely label first"
    tab.click(".group .open")
    first = flagged.iloc[0]
    assert tab.run('document.getElementById("to").value') == first["suggested_label"]
    said = f"say {first['suggested_label']} with probability {1 - first['given_probability']:.4g}"
    assert said in tab.run('document.getElementById("panel").innerText')
    tab.press("r")
    assert picks_of(tab) == {first["id"]: ("relabel", first["suggested_label"])}
    assert not tab.errors
