"""A verdict: what one reading of the results came to. (Without torch: ``rarefy claims`` reads
thousands of them and should not wait for it.)"""

from __future__ import annotations

from dataclasses import dataclass

from rarefy.core.errors import bad_value

OUTCOMES = ("holds", "fails", "inconclusive", "premise-not-met", "not-run")


@dataclass(frozen=True)
class Verdict:
    """Outcome of one reading; (claim, study, scale, setting) is its identity.

    ``claim`` says what the reading is to a claim: "B6.1" the first of the primary readings that are
    declared for B6 in the ledger, "B6" the same question under another choice (robustness), ""
    something of our own (diagnostic). ``value`` is what ``interval`` is about and ``allowed`` where
    the claim wants it; ``p``: of a test that is not read off the interval, two-sided;
    ``published``: the number in the paper.

    Attributes:
        claim, study, scale, setting: what was read, and where.
        predicted, measured, tolerance: in words.
        outcome: holds, fails, inconclusive, premise-not-met or not-run.
        value, interval, allowed, n: the number, its 95 % interval, where it should lie, seeds.
        about: the claim's id, whatever the role.
        role: primary, robustness or diagnostic.

    Example:
        >>> results = rarefy.run("contrast-init", scale="tiny")
        >>> first = rarefy.judge("contrast-init", results)[0]
        >>> first.about, first.role, first.scale
        ('C9', 'primary', 'tiny')
    """

    claim: str
    study: str
    scale: str
    setting: str
    predicted: str
    measured: str
    interval: tuple[float, float] | None
    n: int
    tolerance: str
    outcome: str
    note: str = ""
    value: float | None = None
    allowed: tuple[float, float] | None = None
    p: float | None = None
    published: float | None = None

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise bad_value("outcome", self.outcome, f"must be one of {', '.join(OUTCOMES)}")

    @property
    def identity(self) -> tuple[str, str, str, str]:
        return (self.claim, self.study, self.scale, self.setting)

    @property
    def about(self) -> str:
        """The claim's id, whatever the role; empty for a diagnostic."""
        return self.claim.partition(".")[0]

    @property
    def role(self) -> str:
        return "primary" if "." in self.claim else "robustness" if self.claim else "diagnostic"
