"""The gallery page: true to its table, whole, offline, escaped, with nothing dropped."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from folders import seen_in
from toy_scores import Page, Places, digit, four, scores

from rarefy.core.errors import RunError, UsageError
from rarefy.core.writing import write_output
from rarefy.report.gallery import write_gallery
from rarefy.report.gallery.table import plain_text

SIZES = {"cat": 300, "dog": 90, "single": 1, "lonely": 1, "owl": 7}
CLASSES = (*SIZES, "nobody")
HOSTILE = (
    '</script><script>alert("1")</script>',
    "\"><img src=x onerror=alert(2)> ' `",
    "two\nlines \u202egpj.exe & <b>bold</b>",
    "{{ 7 * 7 }} {% raw %} ${1}",
    "]]> --> </style> \u2028 \x00 été 猫",
)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return scores(SIZES)


@pytest.fixture(scope="module")
def page(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("gallery") / "new" / "gallery.html"
    report = write_gallery(
        path,
        table,
        title="Toys",
        classes=CLASSES,
        thumbnail=digit,
        positions=Places(),
        neighbours=lambda rows: {
            row: [(row + step) % len(table) for step in (1, 2)] for row in rows
        },
        facts=[("samples", "twice"), ("features", "made up"), ("divisor", 1)],
        columns=lambda row: [("pixel", 1.0)],
    )
    assert [item.name for item in seen_in(path.parent)] == ["gallery.html"], "no leftovers"
    assert report.bytes == path.stat().st_size
    assert (report.samples, report.undefined, report.classes) == (399, 2, 6)
    assert report.pictures == report.shown
    assert str(report) == f"{path}: {report.shown} of 399 samples, 5 of 6 classes, 0.2 MB"
    return Page.read(path)


def test_every_number_is_the_tables(page: Page, table: pd.DataFrame) -> None:
    known = page.numbers
    shown = table.set_index("index").loc[known["index"]]
    assert known["id"] == shown["id"].tolist()
    assert known["name"] == shown["name"].tolist()
    assert [known["classes"][str(label)] for label in known["label"]] == shown["label"].tolist()
    columns = ["influence", "own", "shared", "shrinking", "distance", "mahalanobis", "norm"]
    assert sorted(known["numbers"]) == sorted([*columns, "disagreement"])
    for name, values in known["numbers"].items():
        assert values == [four(value) for value in shown[name]], name
    assert known["percentiles"]["influence"] == [four(value) for value in shown["percentile"]]
    assert known["copies"] == shown["copies"].tolist()
    assert known["conflict"] == shown["conflict"].astype(int).tolist()
    for name in ("triage", "rule", "neighbour_label"):
        words, numbers = known[name]
        assert [words[number] for number in numbers] == shown[name].tolist()


def test_numbers_beside_the_pictures_are_the_tables(page: Page, table: pd.DataFrame) -> None:
    cells = re.findall(
        r'data-r="(\d+)"><span class="tile t(\d+)" role="img" aria-label="(.*?)">.*?'
        r'<span class="value">(.*?)</span>',
        page.source,
    )
    assert len(cells) > 100
    for place, picture, spoken, value in cells:
        row = table.iloc[page.numbers["index"][int(place)]]
        assert place == picture
        assert value == ("undefined" if np.isnan(row.influence) else f"{row.influence:.4g}")
        assert spoken.startswith(f"{row.label}, {row['name'].split('/')[1]}, influence {value}")


def test_other_numbers_have_percentiles_of_their_own(page: Page, table: pd.DataFrame) -> None:
    cats = table[table["label"] == "cat"]
    for place, index in enumerate(page.numbers["index"]):
        if table["label"][index] == "cat":
            below = (cats["distance"] < table["distance"][index]).mean()
            expected = 100 * below * len(cats) / (len(cats) - 1)
            assert page.numbers["percentiles"]["distance"][place] == four(expected)
    assert "shrinking" not in page.numbers["percentiles"], "the same for the whole class"


def test_strips_hold_the_ends_of_each_class(page: Page, table: pd.DataFrame) -> None:
    for number, name in enumerate(SIZES):
        mine = table[table["label"] == name].sort_values("influence", ascending=False)["influence"]
        (card,) = re.findall(
            rf'<section class="card" id="c{number}".*?</section>', page.source, re.S
        )
        if not mine.notna().any():
            assert "no score" in card
            continue
        strips = re.findall(r'data-kind="(\w+)" data-measure="influence">(.*?)</ul>', card, re.S)
        assert [kind for kind, _ in strips] == ["highest", "lowest", "random"]
        shown = {kind: re.findall(r'class="value">(.*?)<', cells) for kind, cells in strips}
        assert shown["highest"] == [f"{value:.4g}" for value in mine[:12]]
        assert shown["lowest"] == [f"{value:.4g}" for value in mine[::-1][:12]]
        assert len(shown["random"]) == min(12, len(mine))


def test_samples_without_a_score_have_a_list_of_their_own(page: Page) -> None:
    assert "No score: classes of one sample" in page.text
    assert "2 samples have no score. They are listed, not dropped; 2 of 2 shown." in page.text
    (view,) = re.findall(r'data-view="undefined".*?</section>', page.source, re.S)
    assert re.findall(r'class="label">(.*?)<', view) in (["single", "lonely"], ["lonely", "single"])
    assert "Without any sample: nobody." in page.text


def test_the_page_says_what_it_shows_and_what_the_score_is_not(page: Page) -> None:
    shown = len(page.numbers["id"])
    assert f"{shown} of 399 samples, 12 in a strip" in page.text
    assert "It is not a detector of label errors" in page.text
    assert "docs/scoreboard.md" in page.text
    assert "made up" in page.text
    assert "twice" not in page.text
    assert "columns" not in page.numbers, "an image is seen, not read"
    cats = page.numbers["label"].count(0)
    assert f"{cats} of 300 samples shown" in page.text


def test_triage_words_come_with_rule_and_count(page: Page, table: pd.DataFrame) -> None:
    flagged = int((table["triage"] != "").sum())
    assert f"{flagged} of {flagged} shown, most other labels nearby first" in page.text
    assert f"disagreement above 0.9 of 10 neighbours ({flagged})" in page.text
    first = re.findall(r'data-view="(\w+)"', page.source)[0]
    assert first == "triage", "what to look at comes first"


def test_neighbours_are_shown_with_pictures(page: Page, table: pd.DataFrame) -> None:
    index = page.numbers["index"]
    with_neighbours = [place for place, near in enumerate(page.numbers["near"]) if near]
    assert with_neighbours
    for place in with_neighbours:
        near = [index[other] for other in page.numbers["near"][place]]
        assert near == [(index[place] + step) % len(table) for step in (1, 2)]
        assert all(other in page.pictures for other in page.numbers["near"][place])


def test_the_page_parses_and_needs_nothing_from_outside(page: Page) -> None:
    assert not re.search(r"https?:", page.source)
    assert "@import" not in page.source
    for tag, attributes in page.found:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        for name in ("src", "href", "srcset", "action", "data"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/"))
        assert not any(name.startswith("on") for name in attributes)
    policy = next(a["content"] for a in page.all("meta") if "http-equiv" in a)
    assert (policy or "").startswith("default-src 'none'")
    identities = [a["id"] for _, a in page.found if "id" in a]
    assert len(identities) == len(set(identities))
    targets = {(a["href"] or "")[1:] for a in page.all("a")}
    assert targets <= set(identities)
    opened = len(
        re.findall(r"<(section|ul|li|svg|figure|div|dl)\b", page.source.split("<script>")[1])
    )
    closed = len(
        re.findall(r"</(section|ul|li|svg|figure|div|dl)>", page.source.split("<script>")[1])
    )
    assert opened == closed


def test_the_map_has_every_shown_sample(page: Page) -> None:
    index = np.array(page.numbers["index"])
    x, y = page.numbers["map"]
    assert x == np.rint(1000 * (index - index.min()) / np.ptp(index)).tolist()
    assert y == [0] * len(index), "where all have one value there is no division by 0"
    assert "by row numbers" in page.text


def test_a_suggested_label_comes_from_the_label_check_or_the_neighbours(tmp_path: Path) -> None:
    table = scores({"a": 20, "b": 20})

    def suggested(table: pd.DataFrame) -> list[str]:
        write_gallery(tmp_path / "g.html", table, title="t", classes=("a", "b"))
        known = Page.read(tmp_path / "g.html").numbers
        assert known["index"] == list(range(40))
        return [known["classes"][str(n)] if n >= 0 else "" for n in known["suggested"]]

    near = table["neighbour_label"]
    assert suggested(table) == near.where(near != table["label"], "").tolist()
    other = table["label"].map({"a": "b", "b": "a"}).where(table["index"] < 5, "")
    checked = table.assign(suggested_label=other, given_probability=0.5)
    assert suggested(checked) == other.tolist()
    assert suggested(table.drop(columns="neighbour_label")) == [""] * 40


def test_pictures_and_drawings_have_words(page: Page) -> None:
    for attributes in [*page.all("span", "tile"), *page.all("svg")]:
        assert attributes["role"] == "img"
        assert attributes["aria-label"]
    assert all(a.get("alt") for a in page.all("img"))
    used = {int(a["class"].split()[1][1:]) for a in page.all("span", "tile")}  # type: ignore[union-attr]
    assert used <= set(page.pictures)


def test_small_images_keep_every_pixel(page: Page) -> None:
    for place in list(page.pictures)[::40]:
        pixels = np.asarray(page.picture(place).convert("L"))
        assert (pixels == digit(page.numbers["index"][place])).all()


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    table = scores(dict.fromkeys(HOSTILE, 12))
    names = [f"dir/{HOSTILE[row % 5]}\udcff{row}.png" for row in range(len(table))]
    table["name"] = pd.Series(names, dtype=object)
    table["id"] = pd.Series([f"{HOSTILE[0]}{row}" for row in range(len(table))], dtype=object)
    table["triage"], table["rule"] = HOSTILE[1], HOSTILE[0]
    path = tmp_path / "gallery.html"
    write_gallery(
        path,
        table,
        title=HOSTILE[0],
        classes=HOSTILE,
        columns=lambda row: [(HOSTILE[1], float(row))],
        positions=Places(),
        facts=[(HOSTILE[1], HOSTILE[2])],
    )
    page = Page.read(path)
    assert len(page.all("script")) == 3, "the page's own: a class word, the numbers, the program"
    assert not page.all("img")
    assert not page.all("b")
    assert [*page.numbers["classes"].values()] == [plain_text(name) for name in HOSTILE]
    assert page.numbers["name"] == [plain_text(names[row]) for row in page.numbers["index"]]
    assert "two\\nlines \\u202egpj.exe & <b>bold</b>" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert all("\\udcff" in name for name in page.numbers["name"])
    assert HOSTILE[1] in page.text, "names of features are text, too"


def test_picks_belong_to_samples_and_labels_not_to_scores(tmp_path: Path) -> None:
    def fingerprint(table: pd.DataFrame) -> str:
        write_gallery(tmp_path / "g.html", table, title="t", classes=("a", "b"))
        return str(Page.read(tmp_path / "g.html").numbers["fingerprint"])

    table = scores({"a": 20, "b": 20})
    rescored = table.assign(influence=table["influence"] * 2)
    relabelled = table.assign(label=table["label"].replace({"a": "b", "b": "a"}))
    turned = table.sample(frac=1, random_state=0)
    assert fingerprint(table) == fingerprint(rescored) == fingerprint(turned)
    assert fingerprint(table) != fingerprint(relabelled)
    table.attrs["fingerprint"] = "of the data"
    assert fingerprint(table) == "of the data"


def test_a_failure_leaves_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, table = tmp_path / "g.html", scores({"a": 9, "b": 6})
    write_output(path, "old")
    with pytest.raises(UsageError, match="thumbnail='shape"):
        write_gallery(
            path, table, title="t", classes=("a", "b"), thumbnail=lambda row: np.zeros((4, 4))
        )

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(RunError, match="No space left"):
        write_gallery(path, table, title="t", classes=("a", "b"))
    assert path.read_text() == "old"
    assert [item.name for item in seen_in(tmp_path)] == ["g.html"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"table": scores({"a": 4}).iloc[:0]}, "table='0 rows': must have at least one sample"),
        ({"table": pd.DataFrame({"label": ["a"]})}, "must have a column 'influence'"),
        ({"classes": ("b",)}, r"classes=\('b',\): must hold every label; 'a' is missing"),
        ({"classes": ("a", "b", "a")}, "classes='a': must not name a class twice"),
        ({"neighbours": lambda rows: {rows[0]: [99]}}, "neighbours='99 for row 0'"),
        ({"path": "."}, "is a folder"),
        (
            {"thumbnail": lambda row: np.zeros((4, 4, 2), dtype=np.uint8)},
            r"must be \(height, width\) or \(height, width, 1, 3 or 4\)",
        ),
    ],
)
def test_wrong_use_is_named(change: dict[str, object], message: str, tmp_path: Path) -> None:
    given: dict[str, object] = {
        "path": tmp_path / "g.html",
        "table": scores({"a": 4}),
        "title": "t",
        "classes": ("a", "b"),
        **change,
    }
    with pytest.raises(UsageError, match=message):
        write_gallery(given.pop("path"), given.pop("table"), **given)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
