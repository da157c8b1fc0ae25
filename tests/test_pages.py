"""What people read: every link leads somewhere, and a few rules of style (typos has the spelling,
in make lint)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from markdown.extensions.toc import slugify

ROOT = Path(__file__).parents[1]
TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
PAGES = [*TOP, *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/*.md"))]
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def read(page: Path | str) -> str:
    return (ROOT / page).read_text("utf-8")


def prose(page: str) -> str:
    """Without code and with its line numbers as they were."""
    return CODE.sub(lambda found: "\n" * found[0].count("\n"), read(page))


def anchors(page: Path) -> set[str]:
    """Of the headings, as mkdocs and GitHub make them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"(?ms)^```.*?^```$", "", read(page)), re.MULTILINE)
    return {slugify(heading.replace("`", ""), "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_lead_to_files_and_headings(page: str) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        if not file.is_file() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert not broken


def test_the_site_has_every_page_once() -> None:
    def files(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        values = entry.values() if isinstance(entry, dict) else entry
        return [file for value in values for file in files(value)]  # type: ignore[attr-defined]

    listed = files(yaml.safe_load(read("mkdocs.yml"))["nav"])
    written = {page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")}
    assert len(listed) == len(set(listed))
    assert written <= set(listed)
    # (made by docs/make.py, into the site)
    assert all(page.startswith("studies/") for page in set(listed) - written)


def test_the_readme_is_short() -> None:
    assert len(read("README.md").splitlines()) <= 130


UNITS = (
    "cell|class|day|epoch|filter|image|layer|line|neuron|output|page|row|run|sample|seed|side|step"
)
RULES = {
    # "one row a sample", "8 to 64 samples a class"
    "say per": r"\b(?:one|each|\d+|rows?|samples?|labels?|ms|seconds|times) (?:(?!in )\w+ )?an? "
    rf"(?:{UNITS})\b(?! of)",
    # a key of the ledger where people expect a paper
    "name the paper": r"(?<![\w,.#-])(?<!\d )00[0-4](?:'s\b|\b(?![\w.,%]*\d))(?! %)",
}


# (two pages have the words of verdicts, which the golden files hold)
@pytest.mark.parametrize("page", sorted({*PAGES} - {"docs/claims.md", "docs/longtail-table.md"}))
def test_our_rules_of_style(page: str) -> None:
    found = [
        f"{page}:{number}: {rule}: {bad[0]!r}"
        for number, line in enumerate(prose(page).splitlines(), 1)
        for rule, pattern in RULES.items()
        if (bad := re.search(pattern, line))
    ]
    assert not found, "\n".join(found)


def test_the_rules_of_style_can_fail() -> None:
    for rule, line in {
        "say per": "one row a sample",
        "name the paper": "as 003 Eq. (10) says",
    }.items():
        assert re.search(RULES[rule], line)
    assert re.search(RULES["say per"], "8 to 64 samples a class")
    for line in ("20,000 cells", "0.002 s", "one row per sample", "in 2,003 runs", "gained 0.000"):
        assert not any(re.search(pattern, line) for pattern in RULES.values()), line
