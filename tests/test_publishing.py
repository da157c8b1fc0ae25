"""What is published with the code: the archive of results, the citation, the changelog."""

from __future__ import annotations

import json
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import archive
import rarefy
from rarefy.core.papers import PAPERS

ROOT = Path(__file__).parents[1]


def test_archive_of_one_commit_has_the_same_bytes_and_can_be_read(tmp_path: Path) -> None:
    if subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True).returncode:
        pytest.skip("an archive is made of a commit")
    first, second = archive.write(tmp_path / "a"), archive.write(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as files:
        files.extractall(tmp_path)
    folder = tmp_path / first.stem
    results = rarefy.load(folder / "results")
    assert isinstance(results, rarefy.Results)
    assert results["contrast-init-paper"].sizes["seed"] == 100
    names = {path.name for path in folder.iterdir()}
    assert names == {".zenodo.json", "CITATION.cff", "LICENSE", "README.md", "ledger", "results"}
    assert not list((folder / "ledger").glob("*.py")) and list((folder / "ledger").glob("*.toml"))
    told = json.loads((folder / ".zenodo.json").read_text("utf-8"))
    assert told["version"] == rarefy.__version__
    assert {"title", "description", "creators", "upload_type", "license"} <= told.keys()


def test_citation_names_the_version_and_all_papers() -> None:
    told = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= told.keys()
    assert str(told["version"]) == rarefy.__version__
    assert [one["title"] for one in told["references"]] == [one.title for one in PAPERS.values()]
    for reference, paper in zip(told["references"], PAPERS.values(), strict=True):
        names = [one.get("family-names", "") for one in reference["authors"]]
        assert ", ".join(names) == paper.authors and reference["type"]


def test_version_is_one_everywhere_and_the_changelog_begins_with_it() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert told["version"] == rarefy.__version__
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    first = next(line for line in changes.splitlines() if line.startswith("## "))
    assert first.startswith(f"## {rarefy.__version__}") and len(changes.splitlines()) <= 60
