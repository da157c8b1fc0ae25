"""The first screen of the page: what its studies say about the papers, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rarefy.core.contracts import Study
from rarefy.core.papers import paper_names
from rarefy.ledger.answers import Answer
from rarefy.ledger.api import answers_with, current_answers
from rarefy.ledger.search import places
from rarefy.report.sections import Entry, PanelView, Section, small_image

WITH_PICTURE = 6
"""They fit on one screen, of a telephone too."""
_LATER = {"premise not met": 1, "undecided": 1, "not run": 2}
"""Answers that come after those that are decided."""


@dataclass
class Finding:
    """One answer: ``where`` it stands in the paper, the section that shows it, a picture perhaps.
    ``before``: what the ledger answers, where these results changed it."""

    answer: Answer
    where: str
    study: str
    anchor: str
    before: str = ""
    picture: PanelView | None = None


_Touch = tuple[Answer, Entry, Section]
"""A claim in one entry."""


def find_findings(entries: Sequence[Entry], sections: Sequence[Section]) -> list[Finding]:
    """The answers that these entries touch, most important first."""
    ledger = current_answers()
    declared = [one for one, drawn in zip(entries, sections, strict=True) if drawn.as_declared]
    # an entry of this run stands before the committed one, and what comes last counts
    found = answers_with(verdict for one in reversed(declared) for verdict in one[3])
    best: dict[str, _Touch] = {}
    for entry, section in zip(entries, sections, strict=True):
        section.answers = touched(entry, found)
        for answer in section.answers:
            known = best.get(answer.claim.id)
            if known is None or _suits(answer, entry) > _suits(*known[:2]):
                best[answer.claim.id] = answer, entry, section
    findings: list[Finding] = []
    shown: set[tuple[str, str]] = set()
    for answer, entry, section in sorted(best.values(), key=_rank):
        claim, before = answer.claim, ledger[answer.claim.id].state
        where = f"{paper_names(claim.papers)}, {claim.where}"
        changed = before if before != answer.state else ""
        named = where[0].upper() + where[1:]
        findings.append(Finding(answer, named, section.name, section.anchor, changed))
        wanted = (section.name, claim.picture)
        if len(shown) < WITH_PICTURE and wanted not in shown:
            findings[-1].picture = small_image(entry[0], entry[2], wanted[1])
            shown |= {wanted} if findings[-1].picture else set()
    return findings


def touched(entry: Entry, found: Mapping[str, Answer]) -> list[Answer]:
    """The answers that an entry bears on, the one that it is about first."""
    study, _, _, verdicts = entry
    names = dict.fromkeys(v.about for v in verdicts if v.about in found)
    return sorted((found[name] for name in names), key=lambda answer: _order(study, answer))


def _order(study: Study, answer: Answer) -> tuple[bool, int]:
    """First what stands where the study's own figure does, then what is decided."""
    first = places(study.shows.partition(";")[0])
    return not first & places(answer.claim.where), _LATER.get(answer.state, 0)


def _rank(touch: _Touch) -> tuple[bool, int, bool]:
    """What leads: the figures of headline studies, then what is decided."""
    answer, (study, *_), _ = touch
    elsewhere, later = _order(study, answer)
    return elsewhere or not study.headline, later, elsewhere


def _suits(answer: Answer, entry: Entry) -> tuple[bool, bool]:
    """How well an entry shows a claim: best are the study and the scale that decide it."""
    deciding = {(one.study, one.scale) for one in answer.claim.primaries}
    name, scale = entry[0].name, entry[1]
    return (name, scale) in deciding, name in {study for study, _ in deciding}
