"""Parent maps in CSV and JSON: chains make levels, mistakes are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_hierarchy import names_at, small_data

from rarefy.core.errors import UsageError
from rarefy.data.hierarchy.parent_map import chain_levels, level_name
from rarefy.data.hierarchy.reading import with_hierarchy

PARENTS = {
    "husky": "dog",
    "poodle": "dog",
    "siamese": "cat",
    "sedan": "car",
    "dog": "animal",
    "cat": "animal",
}
ROWS = "".join(f"{child},{parent}\n" for child, parent in PARENTS.items())
TURNED = "parent,child\n" + "".join(f"{parent},{child}\n" for child, parent in PARENTS.items())
NESTED = {"animal": {"dog": ["husky", "poodle"], "cat": {"siamese": {}}}, "car": [{"sedan": None}]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain.csv", ROWS),
        ("header.csv", "Child,Parent\n" + ROWS),
        ("superclass.csv", "class,superclass\n" + ROWS),
        ("bom.csv", "\ufeff" + ROWS),
        ("utf-16.csv", ROWS),
        ("utf-16.json", json.dumps(PARENTS)),
        ("twice.csv", ROWS + "\n husky , dog\r\n\n"),
        ("semicolons.csv", ROWS.replace(",", ";")),
        ("tabs.tsv", ROWS.replace(",", "\t")),
        ("turned.csv", TURNED),
        ("flat.json", json.dumps(PARENTS)),
        ("nested.json", json.dumps(NESTED)),
    ],
)
def test_every_form_gives_the_same_levels(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-16" if path.stem == "utf-16" else "utf-8")
    data = with_hierarchy(small_data(), path)
    assert names_at(data, "parent") == ["dog"] * 4 + ["cat"] * 2 + ["car"] * 2
    # the branch of cars is shorter: its last ancestor stays
    assert names_at(data, "grandparent") == ["animal"] * 6 + ["car"] * 2
    assert list(data.train.levels) == list(data.test.levels) == ["parent", "grandparent"]
    assert data.test.levels["parent"][1] == data.train.levels["parent"][1]
    assert data.notes == ("a note",)


def test_numbers_are_names_too(tmp_path: Path) -> None:
    for number, held in enumerate(({"even": [0, 2], "odd": [1]}, {"0": 5, "1": 6, "2": 5})):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(held))
        labels, _ = with_hierarchy(small_data("012", each=1), path).train.levels["parent"]
        assert labels.tolist() == [0, 1, 0]


def test_other_names_and_single_labels_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "parents.csv"
    path.write_text(ROWS + "car,thing\nanimal,thing\nunicorn,animal\nparrot,bird\n")
    data = with_hierarchy(small_data(), path)
    assert list(data.train.levels) == ["parent", "grandparent"]
    assert data.notes == (
        "a note",
        f"{path}: 2 names ignored, no class of this set: parrot; unicorn",
        f"{path}: level 'ancestor-3' has one label, 'thing': left out",
    )


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", ROWS + "husky,wolf\n", "'husky' has more than one parent: 'dog' and 'wolf'"),
        ("a.csv", ROWS + "animal,husky\n", r"'husky' is its own ancestor \(husky > dog > animal"),
        ("a.csv", ROWS + "car,car\n", r"'car' is its own ancestor \(car > car\)"),
        ("a.csv", ROWS + "wolf,\n", "empty parent of 'wolf'"),
        ("a.csv", ROWS + ",wolf\n", r"an empty name \(its parent is 'wolf'\)"),
        ("a.csv", ROWS.replace("sedan", "s"), "no 'parent' of class 'sedan'"),
        ("a.csv", "x,y\ny,z\n", "no 'parent' of class 'husky'; 'poodle'; 'siamese'; and 1 more"),
        ("a.csv", ROWS + "wolf,dog,x\n", "line 7 has 3 columns, 2 in the first"),
        ("a.csv", 'husky,"dog\n', "line 1 is no CSV"),
        ("a.csv", "husky\n", "no columns in it"),
        ("a.csv", ", ,\n", "no row has anything in it"),
        ("a.csv", "child,parent\n", "has a header, but no rows"),
        ("a.csv", " \n", "is empty"),
        ("a.csv", ROWS.encode("utf-16-le"), "holds zero bytes, as no text in UTF-8 does"),
        ("a.csv", ROWS.encode("utf-16")[:-1], "is no text in UTF-16, though marked so"),
        ("a.json", '{"husky": "\\ud800"}', "is no JSON"),
        ("a.json", "{", "is no JSON"),
        ("a.json", "[" * 100_000, "is no JSON"),
        ("a.json", "[1]", "must be a JSON object"),
        ("a.json", '{"husky": "dog", "husky": "cat"}', "'husky' stands twice"),
        ("a.json", '{"dog": ["husky"], "wolf": ["husky"]}', "'husky' has more than one parent"),
        ("a.json", '{"dog": ["husky"], "sedan": "car"}', "'sedan' must hold an object or a list"),
        ("a.json", '{"dog": [["husky"]]}', r"'dog' holds \['husky'\], which is no name"),
        ("a.json", '{"dog": {"husky": {"dog": []}}}', "is its own ancestor"),
        ("a.txt", ROWS, "unknown format of a hierarchy, must be .csv, .tsv, .json"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, name: str, text: str | bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(UsageError, match=words) as caught:
        with_hierarchy(small_data(), path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_which_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file .*none.csv"):
        with_hierarchy(small_data(), tmp_path / "none.csv")
    with pytest.raises(UsageError, match="one file of annotations .* is needed, found none"):
        with_hierarchy(small_data(), tmp_path)
    (tmp_path / "parents.csv").write_text(ROWS)
    (tmp_path / "readme.txt").write_text("about something else")
    assert "grandparent" in with_hierarchy(small_data(), str(tmp_path)).train.levels
    (tmp_path / "more.csv").write_text(ROWS)
    with pytest.raises(UsageError, match=r"found 2 \(more.csv; parents.csv\)"):
        with_hierarchy(small_data(), tmp_path)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=12))
def test_levels_of_any_tree_are_its_ancestors(draws: list[int]) -> None:
    """Node n hangs below one of the nodes before it, so that there is no cycle."""
    parents = {str(n): str(draw % n) for n, draw in enumerate(draws, start=1)}
    found = chain_levels(parents, list(parents), "").levels
    before = {name: name for name in parents}
    for above in range(1, len(found) + 1):
        here = found[level_name(above)]
        assert all(here[name] == parents.get(before[name], before[name]) for name in parents)
        assert here != before
        before = dict(here)
    assert set(before.values()) == {"0"}
