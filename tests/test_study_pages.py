"""Pages of studies from committed results, and a site of three pages: links, search, a browser."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from browser import browser, needs_browser
from site_pages import results_of_search, wrong_with

from pages import DOCS, ROOT, figures, links, site, study
from rarefy.ledger.api import current_answers
from rarefy.ledger.verdicts import load_verdicts
from rarefy.studies import get_study, listed

STEM = "topk-stages-paper"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A first page, a study and its data; links to what is left out lead to the first page."""
    folder = tmp_path_factory.mktemp("site")
    pages = folder / "docs"
    for name in ("studies", "claims", "data"):
        (pages / name).mkdir(parents=True)
    for name in ("style.css", "search.js"):
        shutil.copy(DOCS / name, pages)
    for suffix in (".parquet", ".json"):
        shutil.copy(ROOT / "results" / f"{STEM}{suffix}", pages / "data")
    (pages / "index.md").write_text(
        "# First\n\n| a | b |\n|---|---|\n| " + "word " * 50 + " | b |\n"
    )
    (pages / "claims" / "S11.md").write_text("# S11: an answer\n\n[back](../index.md)\n")
    figures.draw(ROOT / "results" / f"{STEM}.parquet", pages / "studies" / STEM)
    found = [study.Results.of(ROOT / "results" / f"{STEM}.parquet")]
    drawn = {STEM: pages / "studies" / STEM}
    judged = [verdict for verdict in load_verdicts() if verdict.study == "topk-stages"]
    text = study.page(get_study("topk-stages"), found, drawn, current_answers(), judged)
    (drawn[STEM] / figures.TEXT).unlink()
    (pages / "studies" / "topk-stages.md").write_text(text)
    site.build(pages, folder / "site", nav=["index.md"])
    return folder / "site"


def test_a_study_has_answer_figure_command_parameters_and_data(built: Path) -> None:
    text = (built.parent / "docs" / "studies" / "topk-stages.md").read_text("utf-8")
    answer = current_answers()["S11"]
    assert f"[S11](../claims/S11.md) {study.plain(answer.claim.line)}" in text
    assert f'<img src="{STEM}/' in text and (built / "studies" / STEM).is_dir()
    assert "rarefy run topk-stages --scale paper\n" in text
    assert f"](../data/{STEM}.parquet)" in text and (built / "data" / f"{STEM}.json").exists()
    assert "| `seeds`" in text
    before, _, readings = text.partition("<details")
    assert "**holds**" in readings and "**holds**" not in before


def test_a_study_without_results_says_so() -> None:
    text = study.page(get_study("train-images"), [], {}, current_answers(), [])
    assert "no committed results" in text and "<img" not in text and "## Data" not in text


def test_the_published_size_comes_first_then_what_claims_stand_on() -> None:
    answers = [current_answers()[name] for name in get_study("longtail-table").claims]
    paths = sorted((ROOT / "results").glob("longtail-table-*.parquet"))
    found = study.in_order([study.Results.of(path) for path in paths], answers)
    assert found[0].scale == "cifar10-rho100-500"
    first = replace(found[-1], scale="paper")
    assert study.in_order([*found, first], answers)[0] is first


def test_studies_are_listed_by_paper() -> None:
    text = site.index()
    assert all(text.count(f"]({name}.md)") == 1 for name in listed())
    _, benign = text.split("## Rethinking Benign Overfitting in Two-Layer Neural Networks\n\n")
    assert benign.startswith("Xu, Chen (Xu & Chen)") and "benign-tail.md" in benign.split("## ")[0]


def test_dead_links_are_found(built: Path, tmp_path: Path) -> None:
    assert links.dead(built) == []
    (tmp_path / "b.html").write_text('<p id="there">')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there"><a href="b.html#gone"><img src="no.png"><a href="https://a.org/x">'
        '<script src="https://a.org/x.js"></script><a href="c.html">'
    )
    assert links.dead(tmp_path) == [
        "a.html: b.html#gone: has no such anchor",
        "a.html: no.png: is not there",
        "a.html: https://a.org/x.js: is loaded from elsewhere",
        "a.html: c.html: is not there",
    ]


@needs_browser
def test_pages_fit_and_search_works_from_disk(built: Path, tmp_path: Path) -> None:
    with browser(tmp_path) as tab:
        assert wrong_with(tab, [built / "index.html", built / "studies" / "topk-stages.html"]) == []
        found = results_of_search(tab, built / "studies" / "topk-stages.html", "stages")
        assert "studies/topk-stages.html" in found[0]
        assert not tab.errors


@needs_browser
def test_faults_of_a_page_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text(
        '<meta name="viewport" content="width=device-width"><img src="gone.png">'
        '<div style="width: 600px">wide</div><script>console.error("x")</script>'
        '<div style="overflow-x: auto"><p style="width: 2000px">scrolls</p></div>'
    )
    with browser(tmp_path) as tab:
        desk, phone = (
            [fault for fault in wrong_with(tab, [page]) if f"at {width}" in fault]
            for width in (1400, 390)
        )
    assert any("gone.png" in fault for fault in desk) and any('"x"' in fault for fault in desk)
    assert not any("wide" in fault for fault in desk) and any("wide" in fault for fault in phone)
    assert not any("scrolls" in fault for fault in phone)


@pytest.mark.parametrize("link", ["[x](gone.md)", '<a href="gone.html">x</a>'])
def test_a_site_with_a_dead_link_is_refused(tmp_path: Path, logged: list[str], link: str) -> None:
    for name in ("style.css", "search.js"):
        (tmp_path / "docs").mkdir(exist_ok=True)
        shutil.copy(DOCS / name, tmp_path / "docs")
    (tmp_path / "docs" / "index.md").write_text(f"# First\n\n{link}\n")
    with pytest.raises(SystemExit) as refused:
        site.build(tmp_path / "docs", tmp_path / "site", nav=["index.md"])
    assert "gone" in "".join(logged) + str(refused.value)
