"""Names, places, and what is said when something is not there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rarefy.core.errors import UsageError
from rarefy.data.images import catalog, load_images
from rarefy.data.images.catalog import SETS, describe_set, fetch_set
from rarefy.data.images.download import RemoteFile
from rarefy.data.images.listing import listed, spell_bytes
from rarefy.data.images.places import data_folder


def test_the_folder_is_an_argument_a_setting_or_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAREFY_DATA", str(tmp_path / "setting"))
    assert data_folder(tmp_path) == tmp_path
    assert data_folder() == tmp_path / "setting"
    monkeypatch.setenv("RAREFY_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder() == tmp_path / "cache" / "rarefy" / "data"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert data_folder() == tmp_path / ".cache" / "rarefy" / "data"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert data_folder() == tmp_path / "Library" / "Caches" / "rarefy" / "data"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert data_folder() == tmp_path / "local" / "rarefy" / "data"
    assert data_folder("~/sets") == tmp_path / "sets"


def test_a_file_is_no_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="folder=.*must be a folder"):
        data_folder(tmp_path / "file")
    monkeypatch.setenv("RAREFY_DATA", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="RAREFY_DATA=.*must be a folder"):
        data_folder()


@pytest.mark.parametrize("name", ["mnist", "cifar10", "cifar100"])
def test_an_absent_set_says_what_to_do(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAREFY_DATA", str(tmp_path))
    with pytest.raises(UsageError) as caught:
        load_images(name)
    message = str(caught.value)
    assert message.startswith(f"{name} is not in {tmp_path} (looked for ")
    assert f"rarefy data fetch {name};" in message  # no --data: the setting is used there too
    assert "https://" in message and "RAREFY_DATA" in message and "\n" not in message


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ("mnst", "unknown data set 'mnst'; did you mean 'mnist'.*nor is there a folder"),
        ("nothing", "unknown data set"),
        ("", "unknown data set ''"),
        ("./nothing", "no folder ./nothing"),
        ("some/where", "no folder some/where"),
        ("~/surely-not-there", "no folder"),
    ],
)
def test_unknown_names_and_paths(which: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load_images(which)


def test_a_file_is_no_data_set(tmp_path: Path) -> None:
    (tmp_path / "file.zip").write_text("")
    with pytest.raises(UsageError, match="is a file; a folder of class folders is needed"):
        load_images(tmp_path / "file.zip")


def test_options_are_for_folders() -> None:
    with pytest.raises(UsageError, match="size=9: is for folders of images, digits has none"):
        load_images("digits", size=9)


def test_official_files_are_spelled_out() -> None:
    for known in SETS.values():
        for file in known.remote:
            assert file.url.startswith("https://") and len(file.sha256) == 64 and file.size > 4000
            assert not Path(file.path).is_absolute() and ".." not in file.path
    assert not SETS["digits"].remote


def test_only_missing_files_are_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def pretend(file: RemoteFile, folder: Path, progress: bool) -> Path:
        asked.append(file.path)
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"x")
        return target

    monkeypatch.setattr(catalog, "fetch", pretend)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"x")
    assert len(fetch_set("mnist", tmp_path)) == 3
    assert not any("train-images" in path for path in asked)
    assert fetch_set("mnist", tmp_path) == []
    assert fetch_set("digits", tmp_path) == []
    assert fetch_set("cifar10", tmp_path) == [tmp_path / "cifar-10-python.tar.gz"]
    entry = describe_set("cifar10", tmp_path)
    assert entry["present"] and entry["bytes"] == 1
    assert entry["where"] == str(tmp_path / "cifar-10-python.tar.gz")
    assert not describe_set("cifar100", tmp_path)["present"]
    with pytest.raises(UsageError, match="did you mean 'cifar10'"):
        fetch_set("cifar-10", tmp_path)


def test_lists_and_sizes_for_people() -> None:
    assert listed(["a", "b"]) == "a; b"
    assert listed([str(number) for number in range(12)]).endswith("8; 9; and 2 more")
    assert [spell_bytes(size) for size in (12, 28_881, 170_498_071, 2.5e12)] == [
        "12 bytes",
        "28.9 kB",
        "170.5 MB",
        "2500.0 GB",
    ]
