"""What the README and the pages show must work: code blocks run, commands exist."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import typer.main
from PIL import Image
from small_hierarchy import names_at, small_data

from rarefy import cli
from rarefy.data.hierarchy.reading import with_hierarchy

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{one.name}" for one in ROOT.glob("docs/*.md")),
)
RANKS = ("supercategory", "kingdom", "phylum", "class", "order", "family", "genus")
SPECIES = {
    "Prunella modularis": "Birds Animalia Chordata Aves Passeriformes Prunellidae Prunella",
    "Fringilla coelebs": "Birds Animalia Chordata Aves Passeriformes Fringillidae Fringilla",
    "Prunella vulgaris": "Plants Plantae Tracheophyta Magnoliopsida Lamiales Lamiaceae Prunella",
}
FILES = {
    "train_mini.json": json.dumps(
        {
            "categories": [
                {"image_dir_name": name, **dict(zip(RANKS, taxa.split(), strict=True))}
                for name, taxa in SPECIES.items()
            ]
        }
    ),
    "wordnet.is_a.txt": "dog poodle\npet poodle\npet siamese\npet dog\n",
}
"""What pages read that a reader has."""


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def code_blocks(page: str, language: str = "") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", read(page), re.DOTALL | re.MULTILINE)


def command_lines(page: str) -> list[str]:
    """Lines of plain code blocks, and inline code: where a page names commands."""
    lines = [line for block in code_blocks(page) for line in block.splitlines()]
    return lines + re.findall(r"`([^`\n]+)`", read(page))


class Sample(dict[str, Any]):
    """As FiftyOne has them: fields, and a path."""

    filepath = ""


def my_photos(monkeypatch: pytest.MonkeyPatch) -> list[Sample]:
    """A folder of class folders, and a stand-in for FiftyOne that shows it."""
    samples, pixels = [], np.random.default_rng(0).integers(0, 256, (12, 8, 8), dtype=np.uint8)
    for number, image in enumerate(pixels):
        path = Path("my_photos", f"class {number // 6}", f"{number:02}.png").resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
        samples.append(Sample())
        samples[-1].filepath = str(path)
    dataset = SimpleNamespace(iter_samples=lambda autosave: samples)
    library = SimpleNamespace(load_dataset={"my_photos": dataset}.__getitem__)
    monkeypatch.setitem(sys.modules, "fiftyone", library)
    return samples


@pytest.mark.quick("README.md", "docs/pruning.md")
@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/granularity.md",
        "docs/influence.md",
        "docs/laboratory.md",
        "docs/pruning.md",
        "docs/training.md",
    ],
)
@pytest.mark.usefixtures("quick")
def test_python_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page are one program, as a reader who follows it would type it."""
    monkeypatch.chdir(tmp_path)
    samples = my_photos(monkeypatch)
    for name, text in FILES.items():
        Path(name).write_text(text)
    names: dict[str, Any] = {}
    blocks = code_blocks(page, "python")
    assert blocks, f"{page} shows no Python"
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    if page == "docs/influence.md":
        assert [sample["influence"] for sample in samples] == [*names["scores"]["influence"]]
        assert names["issues"].nsmallest(2, "atypical_score")["is_atypical_issue"].all()
    if page == "docs/training.md":
        ranks = with_hierarchy(small_data(tuple(SPECIES), each=1), "ranks.csv")
        assert names_at(ranks, "genus") == [
            *("Prunellidae/Prunella", "Fringillidae/Fringilla", "Lamiaceae/Prunella")
        ]
        assert names_at(ranks, "taxon-class") == ["Aves", "Aves", "Magnoliopsida"]
        kinds = with_hierarchy(small_data(("poodle", "siamese"), each=1), "parents.csv")
        assert names_at(kinds, "parent") == ["dog", "pet"]


@pytest.mark.parametrize("page", PAGES)
def test_named_make_targets_exist(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    named = {
        found[1] for line in command_lines(page) if (found := re.match(r"make ([a-z-]+)", line))
    }
    assert named <= targets
    if page == "README.md":
        assert {"demo", "test"} <= named


@pytest.mark.parametrize("page", PAGES)
def test_named_verbs_and_options_exist(page: str) -> None:
    command = typer.main.get_command(cli.app)
    verbs = getattr(command, "commands", {})
    for line in command_lines(page):
        found = re.match(r"rarefy ([a-z]+)(?= |$)", line)
        if found is None:
            continue
        assert found[1] in verbs, line
        known = {name for option in verbs[found[1]].params for name in option.opts} | {"--help"}
        assert set(re.findall(r"--[a-z-]+", line.split("#")[0])) <= known, line
