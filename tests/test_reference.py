"""The public names: documented whole, every example run, lazily imported, typed for users."""

from __future__ import annotations

import doctest
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import sklearn.datasets
import torch

import rarefy
from pages.reference import Entry, entries, items, page

ROOT = Path(__file__).parents[1]
ENTRIES = list(entries())
SLOW = {
    *("clean", "influence", "plot", "pretrain_images", "train", "PretrainRun", "TrainRun"),
    *("PretrainRun.features", "LabelCheck", "LabelCheck.fit_predict"),
}
"""Examples that take seconds."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all examples: the same call finds what it made before."""
    made = tmp_path_factory.mktemp("examples")
    (made / "results").symlink_to(ROOT / "results")
    return made


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(entry, marks=pytest.mark.slow)
        if entry.name.removeprefix("rarefy.") in SLOW
        else entry
        for entry in ENTRIES
    ],
    ids=lambda entry: entry.name,
)
def test_example_runs(entry: Entry, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    names = {"rarefy": rarefy, "torch": torch}
    names |= {name: getattr(sklearn.datasets, name) for name in ("load_digits", "load_wine")}
    found = doctest.DocTestParser().get_doctest(
        entry.parts["Example"], names, entry.name, None, None
    )
    assert found.examples
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    said: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=flags).run(found, out=said.append)
    assert not failed, "".join(said)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_docstring_says_what_goes_in_and_what_comes_out(entry: Entry) -> None:
    parts, signature = entry.parts, entry.signature
    assert parts[""].endswith((".", "**")) or "\n" in parts[""]
    if signature is None or (inspect.isclass(entry.what) and "Arguments" not in parts):
        assert inspect.isclass(entry.what)  # of what it gives, attributes are told
        assert "Attributes" in parts or issubclass(entry.what, Exception)
        return
    told = [name for names, _ in items(parts.get("Arguments", "")) for name in names.split(", ")]
    assert sorted(filter(None, told)) == sorted(signature.parameters)
    if not inspect.isclass(entry.what):
        assert ("Returns" in parts) == (signature.return_annotation != "None")


def test_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "reference.md").read_text("utf-8") == page(), (
        "run: python docs/make.py reference"
    )


def test_import_is_quick_and_shows_the_whole_surface() -> None:
    code = "import sys, rarefy; print(*dir(rarefy)); print(*sys.modules, file=sys.stderr)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert not {"torch", "xarray", "pandas", "numpy"} & set(ran.stderr.split())
    assert set(ran.stdout.split()) == set(rarefy.__all__)
    for name in set(rarefy.__all__) - {"__version__"}:
        assert re.search(rf"^    .*\b{name}\b", rarefy.__doc__ or "", re.MULTILINE), name
