"""The list of studies, read from the source of their files."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import rarefy
from rarefy import studies
from rarefy.core.errors import Busy, RunError
from rarefy.sweep.lock import Lock

GOOD = "class Coin:\n    name: str = 'coin'\n    title = 'A coin'\n"


def listed_with(texts: dict[str, str], folder: Path, patch: pytest.MonkeyPatch) -> list[str]:
    for name, text in texts.items():
        target = folder / "lab" / name / "study.py"
        target.parent.mkdir(parents=True)
        target.write_text(text)
    patch.setattr(studies, "__file__", str(folder / "__init__.py"))
    return list(studies.listed.__wrapped__())


def test_what_is_listed_is_what_is_loaded() -> None:
    for name, entry in studies.listed().items():
        kind = entry.load()
        assert (kind.name, kind.title, kind.papers, kind.shows) == (
            name,
            entry.title,
            entry.papers,
            entry.shows,
        )
        assert (kind.claims, kind.needs, kind.headline) == (
            entry.claims,
            entry.needs,
            entry.headline,
        )


def test_plain_and_annotated_lines_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert listed_with({"coin": GOOD}, tmp_path, monkeypatch) == ["coin"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD.replace("'A coin'", "f'{1}'"), "malformed"),
        (GOOD.replace("    title = 'A coin'\n", ""), "title"),
        ("class Coin(:\n", "invalid syntax"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    text: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RunError, match=f"lab/coin/study.py .*{told}"):
        listed_with({"coin": text}, tmp_path, monkeypatch)


def test_two_studies_of_one_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RunError, match="a study 'coin' exists already"):
        listed_with({"coin": GOOD, "other": GOOD}, tmp_path, monkeypatch)


def test_a_store_that_is_being_written_can_be_tried_again(tmp_path: Path) -> None:
    first, second = (Lock(tmp_path / "lock", tmp_path) for _ in range(2))
    first.acquire()
    with pytest.raises(Busy, match="is being written by another process \\(pid") as error:
        second.acquire()
    first.release()
    assert error.value.exit_code == 3


def test_the_verb_and_the_room_train() -> None:
    assert "keep" in inspect.signature(rarefy.train).parameters
