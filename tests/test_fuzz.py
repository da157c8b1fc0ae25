"""Every reader takes damaged files for what they are: a value, or one line that names the file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from fuzz_targets import TARGETS
from fuzzing import FOLDER, damaged, finding
from hypothesis import given, settings
from hypothesis import strategies as st


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
