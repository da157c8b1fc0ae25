"""Label columns by class and by file: the header names the levels."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_hierarchy import data_of_files, names_at, small_data

from rarefy.core.errors import UsageError
from rarefy.data.hierarchy.levels import levels_identity
from rarefy.data.hierarchy.reading import with_hierarchy
from rarefy.data.images.image_set import ImageData

TABLE = """class,order,kingdom
husky,dogs,animal
poodle,dogs,animal
siamese,cats,animal
sedan,"cars, small",thing
"""


def _attach(tmp_path: Path, text: str, data: ImageData | None = None) -> ImageData:
    path = tmp_path / "table.csv"
    path.write_text(text)
    return with_hierarchy(small_data() if data is None else data, path)


def test_columns_by_class(tmp_path: Path) -> None:
    data = small_data()
    identities, fingerprint = data.train.ids, data.fingerprint
    found = _attach(tmp_path, TABLE, data)
    assert names_at(found, "order") == ["dogs"] * 4 + ["cats"] * 2 + ["cars, small"] * 2
    assert names_at(found, "kingdom") == ["animal"] * 6 + ["thing"] * 2
    assert data.train.levels == {}
    # kept, not computed anew
    assert found.train.__dict__["ids"] is identities and found.fingerprint == fingerprint
    assert "ids" in vars(found.train) and "fingerprint" in vars(found)
    # the same again changes nothing
    again = _attach(tmp_path, TABLE, found)
    assert levels_identity(again) == levels_identity(found) != levels_identity(data)


def test_two_columns_with_a_header(tmp_path: Path) -> None:
    rows = "husky,dogs\npoodle,dogs\nsiamese,cats\nsedan,cars\n"
    assert names_at(_attach(tmp_path, "class,order\n" + rows), "order")[0] == "dogs"
    guessed = _attach(tmp_path, "species,order\n" + rows)
    assert "order" in guessed.train.levels
    assert "the first row is read as its header: level 'order'" in guessed.notes[1]
    # a class that the set has not, in a parent map without a header
    for first, more in (("wolf,dogs\n", ""), ("wolf,forest\n", "dogs,animal\n")):
        assert "parent" in _attach(tmp_path, first + rows + more).train.levels


def test_columns_by_file(tmp_path: Path) -> None:
    data = data_of_files(["a/1.png", "a/2.png", "b/1.png"], ["a/3.png", "b/2.png"])
    rows = "a/1.png,a,old\na/2.png,a,new\na/3.png,a,new\nb/1.png,b,old\nb/2.png,b,new\n"
    found = _attach(tmp_path, "file,class,age\n" + rows + "c/1.png,c,odd\n", data)
    # the column of the classes says what the set says: it is no new level
    assert list(found.train.levels) == ["age"]
    assert names_at(found, "age") == ["old", "new", "old"]
    assert found.test.levels["age"][0].tolist() == [0, 0]
    assert "1 name ignored, no file of this set: c/1.png" in found.notes[0]
    with pytest.raises(UsageError, match=r"no 'age' of file 'b/2.png'"):
        _attach(tmp_path, "file,age\n" + "a/1.png,1\na/2.png,1\na/3.png,2\nb/1.png,1\n", data)
    with pytest.raises(UsageError, match="the set has a level 'class' already, with other labels"):
        _attach(tmp_path, "file,class,age\n" + rows.replace(",b,", ",a,"), data)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TABLE + "husky,wolves,animal\n", "'husky' has more than one order: 'dogs' and 'wolves'"),
        (TABLE.replace("cats", ""), "empty order of 'siamese'"),
        (TABLE.replace("siamese", ""), r"an empty name \(its order is 'cats'\)"),
        (TABLE.replace("siamese", "cat"), "no 'order' of class 'siamese'"),
        (TABLE.replace("kingdom", "order"), "two columns are called 'order'"),
        (TABLE.replace("kingdom", ""), "column 3 has no name in the header"),
        (TABLE.replace("kingdom", "class"), "the set has a level 'class' already"),
        (TABLE.partition("\n")[2], "the first row must name the columns, it is about 'husky'"),
        (TABLE.partition("\n")[0], "has a header, but no rows"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        _attach(tmp_path, text)


def test_a_level_that_is_there_must_say_the_same(tmp_path: Path) -> None:
    found = _attach(tmp_path, TABLE)
    with pytest.raises(UsageError, match="the set has a level 'order' already, with other labels"):
        _attach(tmp_path, TABLE.replace("cats", "felines"), found)
