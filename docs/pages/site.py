"""The site: pages written by hand, and a page per study made of committed results."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

from mkdocs.commands.build import build as build_site
from mkdocs.config import load_config

from pages import DOCS, ROOT, links, study
from pages.figures import TEXT, figures
from pages.markdown import plain
from rarefy.core.papers import PAPERS
from rarefy.ledger.api import current_answers
from rarefy.ledger.verdicts import load_verdicts
from rarefy.studies import Entry, listed

INDEX = """# The studies

A study is one figure or one family of theorems of a paper, as something that runs. Each page has
the figures of our run at the published size, the answers that it gives, and the data."""


def make(results: Path) -> None:
    """Pages into build/docs, the site into site/; an error for a dead link."""
    sources = ROOT / "build" / "docs"
    write(sources, results, ROOT / "build" / "figures")
    build(sources, ROOT / "site")


def write(folder: Path, results: Path, kept: Path) -> None:
    """All pages, into a folder that is emptied first. ``kept``: figures drawn before."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__", "pages"))
    shutil.copytree(results, folder / "data")
    (folder / "studies").mkdir()
    files = sorted(results.glob("*.parquet"))
    drawn = figures(files, kept)
    for stem, images in drawn.items():
        shutil.copytree(images, folder / "studies" / stem, ignore=shutil.ignore_patterns(TEXT))
    answers, verdicts = current_answers(), load_verdicts()
    found = [study.Results.of(path) for path in files]
    for name, entry in listed().items():
        mine = [one for one in found if one.study == name]
        ordered = study.in_order(mine, [answers[claim] for claim in entry.claims])
        judged = [verdict for verdict in verdicts if verdict.study == name]
        text = study.page(entry.load(), ordered, drawn, answers, judged)
        (folder / "studies" / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "studies" / "index.md").write_text(index(), encoding="utf-8")


def index() -> str:
    """All studies, by paper."""
    answers, parts = current_answers(), [INDEX]
    for key, mine in by_paper().items():
        paper = PAPERS.get(key)
        parts.append(f"## {plain(paper.title if paper else 'Our own questions')}")
        if paper:
            parts.append(
                f"{paper.authors} ({paper.short})" if paper.authors else f"({paper.short})"
            )
        for one in mine:
            told = [f"**[{plain(one.title)}]({one.name}.md)**", plain(one.shows), f"`{one.name}`"]
            lines = [f"- {study.answer_line(answers[name])}" for name in one.claims]
            parts.append("<br>\n".join((told[0], " · ".join(told[1:]))))
            parts += ["\n".join(lines)] if lines else []
    return "\n\n".join(parts) + "\n"


def by_paper() -> dict[str, list[Entry]]:
    """In the order of the papers."""
    entries = listed().values()
    found = {key: [one for one in entries if one.papers[:1] == (key,)] for key in PAPERS}
    found["own"] = [one for one in entries if not one.papers]
    return {key: mine for key, mine in found.items() if mine}


def build(sources: Path, site: Path, nav: list[Any] | None = None) -> None:
    """The HTML of a folder of pages, and its check. ``nav``: contents, if not those of mkdocs.yml
    and the studies."""
    config = load_config(
        str(ROOT / "mkdocs.yml"), strict=True, docs_dir=str(sources), site_dir=str(site)
    )
    config.nav = nav or with_studies(config.nav or ["index.md"])
    logging.basicConfig(format="%(levelname)s: %(message)s")  # else it would end without a word
    build_site(config)
    # it would want a server, and lie at the root of one
    (site / "404.html").unlink()
    # a page opened from disk may load a script, but no JSON: docs/search.js
    found = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    script = f"var search_index = {json.dumps(found, separators=(',', ':'))};\n"
    (site / "search" / "search_index.js").write_text(script, encoding="utf-8")
    if dead := links.dead(site):
        raise SystemExit("\n".join(["dead links in the site:", *dead]))


def with_studies(nav: list[Any]) -> list[Any]:
    """Contents with the studies, paper by paper; the pages of claims are reached from the atlas."""
    papers: list[Any] = []
    if "studies/index.md" not in str(nav):
        papers.append({"All studies": "studies/index.md"})
    for key, mine in by_paper().items():
        name = PAPERS[key].short if key in PAPERS else "our own questions"
        pages = [{one.title: f"studies/{one.name}.md"} for one in mine]
        papers.append({name[0].upper() + name[1:]: pages})
    return [*nav, {"Studies": papers}]
