"""The first screen of the page: what its studies say about the papers, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rarefy.core.contracts import Study
from rarefy.core.papers import paper_names
from rarefy.ledger.answers import Answer
from rarefy.ledger.api import answers_with, current_answers
from rarefy.ledger.search import places
from rarefy.report.sections import Entry, PanelView, Section, as_declared, small_image

WITH_PICTURE = 6
"""They fit on one screen, of a telephone too."""
_DECIDED = ("supported", "contradicted", "smaller than published")


@dataclass
class Finding:
    """One answer: ``where`` it stands in the paper, the section that shows it, a picture perhaps.
    ``before``: what the ledger answers, where these results changed it."""

    answer: Answer
    where: str
    anchor: str
    before: str = ""
    picture: PanelView | None = None


@dataclass(frozen=True)
class _Touch:
    """A claim in one entry."""

    answer: Answer
    entry: Entry
    section: Section


def find_findings(entries: Sequence[Entry], sections: Sequence[Section]) -> list[Finding]:
    """The answers that these entries touch, most important first."""
    ledger = current_answers()
    declared = [one for one in entries if as_declared(one[0], one[1])]
    # an entry of this run stands before the committed one, and what comes last counts
    found = answers_with(verdict for one in reversed(declared) for verdict in one[3])
    best: dict[str, _Touch] = {}
    for entry, section in zip(entries, sections, strict=True):
        section.answers = touched(entry, found)
        for answer in section.answers:
            touch, name = _Touch(answer, entry, section), answer.claim.id
            if name not in best or _suits(touch) > _suits(best[name]):
                best[name] = touch
    findings: list[Finding] = []
    shown: set[tuple[str, str]] = set()
    for touch in sorted(best.values(), key=_rank):
        claim, state = touch.answer.claim, touch.answer.state
        before = ledger[claim.id].state
        where = f"{paper_names(claim.papers)}, {claim.where}"
        findings.append(
            Finding(touch.answer, where, touch.section.anchor, before if before != state else "")
        )
        wanted = (touch.section.name, getattr(claim, "picture", ""))
        if len(shown) < WITH_PICTURE and wanted not in shown:
            findings[-1].picture = small_image(touch.entry[0], touch.entry[2], wanted[1])
            shown |= {wanted} if findings[-1].picture else set()
    return findings


def touched(entry: Entry, found: Mapping[str, Answer]) -> list[Answer]:
    """The answers that an entry bears on, the one that it is about first."""
    study, _, _, verdicts = entry
    names = dict.fromkeys(v.about for v in verdicts if v.about in found)
    return sorted((found[name] for name in names), key=lambda answer: _order(study, answer))


def _order(study: Study, answer: Answer) -> tuple[bool, bool]:
    """First what stands where the study's own figure does, then what is decided."""
    first = places(study.shows.partition(";")[0])
    return not first & places(answer.claim.where), answer.state not in _DECIDED


def _rank(touch: _Touch) -> tuple[bool, bool, bool]:
    """What leads: the figures of headline studies, then what is decided."""
    elsewhere, undecided = _order(touch.entry[0], touch.answer)
    return elsewhere or not touch.entry[0].headline, undecided, elsewhere


def _suits(touch: _Touch) -> tuple[bool, bool]:
    """How well an entry shows a claim: best are the study and the scale that decide it."""
    study, scale = touch.entry[0].name, touch.entry[1]
    primaries = touch.answer.claim.primaries
    return (
        any((one.study, one.scale) == (study, scale) for one in primaries),
        any(one.study == study for one in primaries),
    )
