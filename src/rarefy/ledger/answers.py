"""From verdicts to one answer per claim, by one rule.

A primary reading is supported when its verdict holds, with n no less than declared, and
contradicted when it fails. All supported: the claim is supported. One contradicted: the claim is.
Otherwise, in this order: a published size that the interval excludes makes the claim smaller than
published; a premise that is not met says so; a reading without a verdict is not run; the rest is
undecided.

Chance: the p-values of a claim's primaries are corrected by Holm, those of the claims of a paper by
Benjamini and Hochberg at ``LEVEL``; what does not survive is undecided. Readings under other
choices never decide: how many of them agree is shown beside the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scipy import special

from rarefy.core.verdict import Verdict
from rarefy.ledger.claims import Claim, Primary

LEVEL = 0.05
NORMAL = 200
"""From this n on Student's quantile is the normal one to a percent."""


@dataclass(frozen=True)
class Part:
    """One primary reading with its verdict; ``p``: corrected within the claim, of what ``state``
    says (1 where nothing is decided)."""

    primary: Primary
    verdict: Verdict | None
    state: str
    p: float
    why: str = ""

    @property
    def id(self) -> str:
        return self.primary.id


@dataclass(frozen=True)
class Answer:
    """``p``: of the answer, before the correction over the paper's claims. ``agree`` of ``others``
    readings under other choices come out like the answer; ``exceptions`` do not."""

    claim: Claim
    state: str
    parts: tuple[Part, ...] = ()
    p: float = 1.0
    why: str = ""
    others: tuple[Verdict, ...] = ()

    @property
    def word(self) -> str:
        """The outcome of a verdict that agrees with this answer."""
        return "fails" if self.state == "contradicted" else "holds"

    @property
    def agree(self) -> int:
        return sum(verdict.outcome == self.word for verdict in self.others)

    @property
    def exceptions(self) -> list[Verdict]:
        return [verdict for verdict in self.others if verdict.outcome != self.word]


def compute_answers(claims: Iterable[Claim], verdicts: Iterable[Verdict]) -> dict[str, Answer]:
    """Every claim's answer, corrected over the claims of its (first) paper."""
    found: dict[str, Answer] = {}
    families: dict[str, list[Claim]] = {}
    for claim in claims:
        families.setdefault(claim.papers[0], []).append(claim)
    own: dict[str, list[Verdict]] = {one.id: [] for family in families.values() for one in family}
    for verdict in verdicts:
        own.setdefault(verdict.about, []).append(verdict)
    for family in families.values():
        mine = [_alone(claim, own[claim.id]) for claim in family]
        kept = _surviving(mine)
        for place, one in enumerate(mine):
            if one.state == "smaller than published" and one.claim.id not in kept:
                # the size is not excluded after all: then the direction is what is asked
                bare = [replace(verdict, published=None) for verdict in own[one.claim.id]]
                mine[place] = _alone(one.claim, bare)
        kept = _surviving(mine)
        for one in mine:
            if one.p < 1 and one.claim.id not in kept:
                why = f"p {one.p:.2g} does not survive the correction over the paper's claims"
                one = replace(one, state="undecided", why=why)
            found[one.claim.id] = one
    return found


def _surviving(answers: Iterable[Answer]) -> set[str]:
    """The claims whose answers survive the correction over all that were tested."""
    tested = [one for one in answers if one.state not in ("not run", "premise not met")]
    survives = benjamini_hochberg([one.p for one in tested])
    return {one.claim.id for one, good in zip(tested, survives, strict=True) if good}


def _alone(claim: Claim, verdicts: Sequence[Verdict]) -> Answer:
    """The answer by its own primaries."""
    others = tuple(v for v in verdicts if v.role == "robustness" and _counts(v))
    parts = _parts(claim, verdicts)
    states = [part.state for part in parts]
    if not parts:
        return Answer(claim, "not run", parts, why=claim.not_run, others=others)
    p = 1.0
    if all(state == "supported" for state in states):
        state, p = "supported", max(part.p for part in parts)
    else:
        order = ("contradicted", "smaller than published", "premise not met", "not run")
        state = next((one for one in order if one in states), "undecided")
        if state in ("contradicted", "smaller than published"):
            p = min(part.p for part in parts if part.state == state)
    why = next((part.why for part in parts if part.state == state and part.why), "")
    return Answer(claim, state, parts, p, why, others)


def _counts(verdict: Verdict) -> bool:
    # rehearsals, too few seeds and places where the claim says nothing are no test of it
    return (
        verdict.scale not in ("tiny", "quick")
        and verdict.n >= 5
        and verdict.outcome in ("holds", "fails", "inconclusive")
    )


def _parts(claim: Claim, verdicts: Sequence[Verdict]) -> tuple[Part, ...]:
    at = {(v.claim, v.study, v.scale): v for v in verdicts}
    parts = []
    for primary in claim.primaries:
        verdict = at.get((primary.id, primary.study, primary.scale))
        parts.append(_part(primary, verdict, verdict))
    for state in ("smaller than published", "supported", "contradicted"):
        mine = [part for part in parts if part.state == state]
        # of all primaries: one that is not decided this way has p at least as large
        corrected = holm([part.p for part in mine] + [1.0] * (len(parts) - len(mine)))
        for part, p in zip(mine, corrected, strict=False):
            good = p <= LEVEL
            why = "" if good else f"p {p:.2g} after Holm's correction"
            fresh = replace(part, state=state if good else "undecided", p=p, why=why)
            if not good and state == "smaller than published" and part.verdict is not None:
                # the size is not excluded after all: then the direction is what is asked
                fresh = _part(part.primary, part.verdict, replace(part.verdict, published=None))
            parts[parts.index(part)] = fresh
    return tuple(parts)


def _part(primary: Primary, verdict: Verdict | None, asked: Verdict | None) -> Part:
    return Part(primary, verdict, *_decided(primary, asked))


def _decided(primary: Primary, verdict: Verdict | None) -> tuple[str, float, str]:
    """State, p-value and why it is not decided, of one primary alone. (Twice the p-value of the
    direction seen: it could have gone either way.)"""
    if verdict is None or verdict.outcome == "not-run":
        return "not run", 1.0, "no verdict of it in the ledger"
    if verdict.outcome == "premise-not-met":
        return "premise not met", 1.0, verdict.note
    if verdict.n < primary.least_n:
        return "undecided", 1.0, f"n = {verdict.n}, not {primary.least_n}"
    holds, fails = p_values(verdict)
    if verdict.outcome == "fails":
        return "contradicted", min(1.0, 2 * fails), ""
    smaller = 2 * p_smaller(verdict)
    if smaller <= LEVEL:
        return "smaller than published", smaller, ""
    if verdict.outcome == "holds":
        return "supported", min(1.0, 2 * holds), ""
    astride = verdict.interval is not None and verdict.p is None
    return "undecided", 1.0, "the interval has both in it" if astride else verdict.note


def p_values(verdict: Verdict) -> tuple[float, float]:
    """One-sided p-values: of data like these where the claim is just not true, and of data like
    these where it just is. From the interval (Student's, 95 %), or from the test's own p."""
    if verdict.value is None or verdict.allowed is None:
        return 1.0, 1.0
    floor, ceiling = verdict.allowed
    low, high = verdict.interval or (floor, ceiling)
    slack = 1e-12 * max(1.0, abs(verdict.value))
    if high - low <= slack and min(abs(verdict.value - edge) for edge in verdict.allowed) <= slack:
        # every sample lies on the edge: the judge says on which side of it that is
        chance = 0.5 ** min(verdict.n, 1000)
        return (chance, 1 - chance) if verdict.outcome == "holds" else (1 - chance, chance)
    # (the test asks for a trend at all: that one is too weak is read off the interval)
    weak = 0 < verdict.value < floor or ceiling < verdict.value < 0
    if verdict.p is not None and not (weak and verdict.outcome == "fails"):
        half = verdict.p / 2
        right = floor <= verdict.value <= ceiling
        return (half, 1 - half) if right else (1 - half, half)
    # two one-sided tests: the claim needs both edges, its contrary one
    below, above = _tail(verdict, floor), 1 - _tail(verdict, ceiling)
    return max(below, above), min(1 - below, 1 - above)


def p_smaller(verdict: Verdict) -> float:
    """One-sided p-value of an effect as large as the published one, or larger; 1 where none was
    published or the claim has no direction."""
    if verdict.published is None or verdict.value is None or verdict.allowed is None:
        return 1.0
    tail = _tail(verdict, verdict.published)  # small where the value lies above it
    if verdict.allowed[1] == float("inf"):
        return 1 - tail
    return tail if verdict.allowed[0] == -float("inf") else 1.0


def _tail(verdict: Verdict, edge: float) -> float:
    """P(T > (value - edge)/standard error): small where the value lies well above ``edge``."""
    assert verdict.value is not None
    if abs(edge) == float("inf"):
        return 0.0 if edge < 0 else 1.0
    low, high = verdict.interval or (-float("inf"), float("inf"))
    distance = verdict.value - edge
    freedom = min(max(verdict.n - 1, 1), NORMAL)
    half = verdict.value - low if distance > 0 else high - verdict.value
    if half == float("inf"):
        return 0.5
    if half <= 1e-12 * max(1.0, abs(verdict.value)):
        # all samples equal: as a sign test, which n of n samples on one side pass
        chance = 0.5 ** min(verdict.n, 1000)
        return 0.5 if distance == 0 else chance if distance > 0 else 1 - chance
    error = half / float(special.stdtrit(freedom, 0.975))
    return float(special.stdtr(freedom, -distance / error))


def holm(values: Sequence[float]) -> list[float]:
    """Holm's corrected p-values, in the order given."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    corrected, largest = [0.0] * len(values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(values) - rank) * values[index]))
        corrected[index] = largest
    return corrected


def benjamini_hochberg(values: Sequence[float], level: float = LEVEL) -> list[bool]:
    """Which of the p-values survive, at a false discovery rate of ``level``."""
    order = sorted(values)
    good = [p for rank, p in enumerate(order, 1) if p <= level * rank / len(order)]
    return [bool(good) and p <= good[-1] for p in values]
