"""Stores at an address: a kill before every single write."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from killed_remotely import EARLIER, kill_and_go_on

pytestmark = pytest.mark.usefixtures("eager")


@pytest.mark.parametrize("how", EARLIER)
def test_killed_before_each_write_the_same_command_finishes_it(
    how: str,
    memory: str,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    kills = kill_and_go_on(memory, monkeypatch, how)
    record_property("kills", kills)
    assert kills > 20
