"""What tells one's own network apart from itself of yesterday, when its code was another."""

from __future__ import annotations

import importlib
import linecache
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from torch import nn

from rarefy.core.errors import UsageError
from rarefy.nets.builder import NETWORKS, identity

Written = Callable[[str], str]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    """Writes a module into an empty current folder and gives its name, a new one each time."""
    monkeypatch.chdir(tmp_path)

    def write(text: str) -> str:
        name = f"own_{abs(hash(tmp_path))}_{len(list(tmp_path.iterdir()))}"
        (tmp_path / f"{name}.py").write_text("import torch\nfrom torch import nn\n" + text)
        return name

    return write


NET = "def net(classes):\n    return nn.Sequential(nn.Flatten(), nn.Linear({size}, classes))\n"


def test_identity_changes_with_the_code_of_ones_own_network(
    written: Written, tmp_path: Path
) -> None:
    name, path = written(NET.format(size=64)), list(sys.path)
    first = identity(f"{name}:net")
    assert first.startswith(f"{name}:net (") and "\n" not in first
    assert identity(f"{name}:net") == first and sys.path == path
    file = tmp_path / f"{name}.py"
    for text in (NET.format(size=32), NET.format(size=64) + "def helper():\n    pass\n"):
        kept = file.read_text()
        del sys.modules[name]
        linecache.clearcache()
        file.write_text("import torch\nfrom torch import nn\n" + text)
        os.utime(file, (1, len(text)))  # (compiled files are told apart by time and size)
        importlib.invalidate_caches()
        assert identity(f"{name}:net") != first, text
        file.write_text(kept)


def test_identity_of_a_partial_and_of_what_has_no_source(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partial belongs to the module it stands in, and no address of memory is in an identity."""
    text = "import functools\n" + NET.format(size=64) + "short = functools.partial(net)\n"
    first, second = written(text), written(text + "# changed\n")
    hashes = {identity(f"{name}:short").partition(" ")[2] for name in (first, second)}
    assert len(hashes) == 2
    made = types.ModuleType("made_on_the_fly")
    found = set()
    for net in (lambda classes: nn.Linear(1, classes), lambda classes: nn.Linear(1, classes)):
        net.__module__ = made.__name__
        made.net = net  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, made.__name__, made)
        found.add(identity("made_on_the_fly:net"))
    assert len(found) == 1


def test_our_own_networks_belong_to_a_version() -> None:
    assert {identity(name) for name in NETWORKS} == {""}


def test_identity_of_what_is_not_there_is_told() -> None:
    with pytest.raises(UsageError, match="no module 'no_such_module'"):
        identity("no_such_module:net")
