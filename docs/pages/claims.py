"""docs/claims.md: the atlas, one strip per claim; and a page for each (``pages.claim``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from pages import DOCS, claim
from pages.markdown import MADE, MARKS, plain, table, tile
from rarefy.core.papers import PAPERS
from rarefy.ledger.answers import Answer
from rarefy.ledger.api import current_answers
from rarefy.ledger.claims import STATES
from rarefy.ledger.search import places

HEAD = """# Does it hold?

{made}

Every statement of the papers that can be checked by running something, and our answer. The large
tile is the answer; small ones are the same question under other choices, by condition (point at one
to read it): ✓ holds, ✗ fails, ? open.

{legend}

**The rule.** A claim stands on one to three *primary readings*, declared in the ledger with
tolerance, reason and least number of runs. It is *supported* when all of them hold and
*contradicted* when one fails, with p-values corrected by Holm within the claim and by Benjamini and
Hochberg at 5 % over the claims of a paper. Failing both, it is *smaller than published* if the
interval excludes the published size, *premise not met* if the theorem does not speak of what was
run, *not run* without results, and else *undecided*. Readings under other choices never decide:
they show how far the answer carries."""
KINDS = {"fig": "Fig.", "table": "Table", "thm": "Theorem", "lemma": "Lemma", "prop": "Prop."}
KINDS |= {"remark": "Remark", "sec": "Section", "app": "App."}
"""What a paper numbers, in the order of an index; a figure is asked for first."""
SHORT = ("fig", "table", "thm")  # of them on the first page
BLOCK = re.compile(r"(<!-- answers: made by docs/make.py claims -->\n).*(<!-- end -->)", re.DOTALL)


def files(results: Path) -> dict[str, str | bytes]:
    """All pages and plots by name."""
    answers = current_answers()
    drawn = [claim.pictures(answer, results) for answer in answers.values()]
    images = {f"claims/{name}": image for mine in drawn for name, image in mine.items()}
    return {**texts(answers, results), **images}


def texts(answers: Mapping[str, Answer], results: Path) -> dict[str, str]:
    """The pages without the plots, which take longer."""
    index = (DOCS / "index.md").read_text("utf-8")
    pages = {f"claims/{name}.md": claim.page(one, results) for name, one in answers.items()}
    return {"claims.md": page(answers), "index.md": with_answers(index, answers), **pages}


def page(answers: Mapping[str, Answer]) -> str:
    legend = " · ".join(f"{tile(state)} {state}" for state in STATES)
    parts = [HEAD.format(made=MADE, legend=legend)]
    for key, mine in _by_paper(answers).items():
        parts.append(f"## {_short(key)}")
        if key in PAPERS:
            parts.append(f"*{plain(PAPERS[key])}*")
        parts.append(table(["claim", "answer", "in a sentence"], map(_strip, mine)))
        if index := _index(mine, KINDS):
            parts.append(f"By place: {index}.")
    return "\n\n".join(parts) + "\n"


def with_answers(text: str, answers: Mapping[str, Answer]) -> str:
    """The first page with its table of figures renewed."""
    rows = []
    for key, mine in _by_paper(answers).items():
        anchor = re.sub(r"[^a-z0-9]+", "-", _short(key).lower()).strip("-")
        lines = " · ".join(f"[{plain(a.claim.sentence)}](claims/{a.claim.id}.md)" for a in mine)
        place = _index(mine, SHORT) if key in PAPERS else lines
        rows.append([f"[{_short(key)}](claims.md#{anchor})", place])
    made = table(["paper", "figure, table or theorem"], rows)
    return BLOCK.sub(lambda found: f"{found[1]}\n{made}\n\n{found[2]}", text)


def _by_paper(answers: Mapping[str, Answer]) -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = {}
    for answer in answers.values():
        found.setdefault(answer.claim.papers[0], []).append(answer)
    return found


def _short(key: str) -> str:
    name = PAPERS[key].short if key in PAPERS else "our own questions"
    return name[0].upper() + name[1:]


def _strip(answer: Answer) -> list[str]:
    """Tiles and sentence of one claim."""
    name = answer.claim.id
    others = sorted(answer.others, key=lambda one: (one.setting, one.study))
    tiles = f"{tile(answer.state)} " + "".join(tile(one.outcome, one.setting) for one in others)
    where, line = plain(answer.claim.where), plain(answer.claim.sentence)
    return [f"[{name}](claims/{name}.md) {where}", tiles.strip(), line]


def _index(answers: Iterable[Answer], kinds: Iterable[str]) -> str:
    """ "Fig. 3 B6 ✓, Theorem 1 B3 ✗", linked, in the paper's order."""
    kinds = list(kinds)
    named: dict[tuple[str, str], list[Answer]] = {}
    for answer in answers:
        for place in places(answer.claim.where):
            if place[0] in kinds:
                named.setdefault(place, []).append(answer)
    ordered = sorted(named, key=lambda at: (kinds.index(at[0]), _natural(at[1])))
    return " · ".join(
        f"**{KINDS[at[0]]} {at[1].upper()}** "
        + " ".join(f"[{a.claim.id} {MARKS[a.state]}](claims/{a.claim.id}.md)" for a in named[at])
        for at in ordered
    )


def _natural(number: str) -> list[tuple[int, str]]:
    """A.2 after A.1 and before A.10, and after 9."""
    return [(int(part), "") if part.isdigit() else (10**6, part) for part in number.split(".")]
