"""Every reader takes damaged files for what they are: a value, or one line that names the file."""

from __future__ import annotations

import logging
import re
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from fuzz_targets import TARGETS
from fuzzing import FOLDER, damaged, file, finding
from hypothesis import given, settings
from hypothesis import strategies as st

from rarefy.core.errors import UsageError


def unlike(path: Path) -> object:
    raise UsageError("another.txt: cannot be read")


WRONG: dict[str, Callable[[Path], object]] = {
    "KeyError at": lambda path: {}[path],
    "warns: UserWarning": lambda path: warnings.warn("odd", stacklevel=1),
    "does not name a.txt": unlike,
    "says no short line": lambda path: logging.getLogger("rarefy").warning("a\x1b"),
    "took .* MB": lambda path: bytearray(b"x") * 500_000_000,
    "wrote '.*/x'": lambda path: (path.parents[2] / "x").write_bytes(b""),
    "os.mkdir": lambda path: (path.parents[2] / "y").mkdir(),
    "subprocess.Popen": lambda path: subprocess.run(["true"], check=True),
    "did outside": lambda path: (path.parents[1] / "beside").touch(),
}


@pytest.mark.parametrize("found", WRONG)
def test_what_a_reader_must_not_do_is_found(found: str, tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    target = file("wrong", "a.txt", WRONG[found], lambda: [b""])
    assert re.search(found, finding(target, b"", tmp_path / "room"))


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_is_damaged_is_named_in_one_line(name: str, eager: None) -> None:
    target = TARGETS[name]
    seeds = target.seeds()

    @settings(max_examples=target.runs, deadline=None)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        content = damaged(seeds, lambda below: data.draw(st.integers(0, below - 1)))
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            assert not (found := finding(target, content, Path(folder))), f"{found}\n{content!r}"

    for seed in seeds:
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            assert not (found := finding(target, seed, Path(folder))), f"the file itself: {found}"
    run()
