"""What the README and the pages show must work: code blocks run, commands exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer.main
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
    for name, text in FILES.items():
        Path(name).write_text(text)
    names: dict[str, object] = {}
    blocks = code_blocks(page, "python")
    assert blocks, f"{page} shows no Python"
    for block in blocks:
        exec(compile(block, page, "exec"), names)
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
