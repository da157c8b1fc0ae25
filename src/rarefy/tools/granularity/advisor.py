"""How fine should the labels be? From a finished comparison to one sentence.

Candidates are all labels that were pre-trained on but the baselines (re-training on the target, one
pass) and the controls (random ids, one id per sample). Their gain is target accuracy less that of
re-training, seed by seed, each chosen on held-out images; its interval is Student's at 95 %,
corrected for the number of candidates (Bonferroni). Fewer than ``FEWEST`` seeds decide nothing.

(a) Some candidates gain for sure (interval above 0): the coarsest of them that is not worse than
    the best is advised, that is the one with the fewest classes whose difference from the best, by
    its corrected interval, is no loss of more than half of the best's gain.
    Where one pass on the target, as long as both stages together, is certainly better than the
    best level, the pass is advised; where it is not told apart from what is advised, the sentence
    says so.
(b) No gain can be as large as ``worth`` points (all intervals lie below it): no level helps here.
(c) Else nobody can tell yet: so many seeds more would have a chance of four in five to decide
    between the two if means and spread stay what they are (normal approximation).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import xarray as xr

from rarefy.tools.decision import (
    CANNOT_TELL,
    DOUBT,
    FEWEST,
    NONE,
    USE,
    WORTH,
    Decision,
    spelled,
)
from rarefy.tools.granularity.cautions import about_baselines, about_labels
from rarefy.tools.granularity.judged import Judged
from rarefy.tools.granularity.rows import (
    CONTROLS,
    gain,
    kind,
    probe_accuracy,
    rows_of,
    tuned_accuracy,
)
from rarefy.tools.granularity.sets import GIVEN, ONCE, TARGET


@dataclass(frozen=True)
class Advice:
    """``decision`` has the sentence, and as its choice labels to pre-train on, ``once`` (one pass)
    or ``target`` (no level helps); ``made``: what made labels are worth next to given ones;
    ``rows``: what it stands on."""

    decision: Decision
    made: str
    warnings: tuple[str, ...]
    rows: list[dict[str, Any]]
    target: str = TARGET

    @property
    def sentence(self) -> str:
        return self.decision.sentence

    @property
    def level(self) -> str | None:
        """What to pre-train on; None where nothing is advised."""
        choice = self.decision.choice
        return None if choice in (TARGET, ONCE) else choice

    def described(self) -> dict[str, Any]:
        """What JSON can hold."""
        told = {"sentence": self.sentence, "level": self.level}
        return {**asdict(self), **told, "warnings": list(self.warnings)}


def advise(
    results: xr.Dataset,
    target: str = TARGET,
    images: int = 0,
    epochs: int = 0,
    worth: float = WORTH,
) -> Advice:
    """What to pre-train on, by the results of a ``GranularityExperiment``. ``images``: how many
    were pre-trained on, ``epochs`` of a training in all; 0: nobody knows."""
    tuned = tuned_accuracy(results)
    by_probe = not tuned.notnull().any() and bool(probe_accuracy(results).notnull().any())
    accuracy = probe_accuracy(results) if by_probe else tuned
    rows = rows_of(results, accuracy, images * epochs)
    done = [row for row in rows if row["kind"] not in CONTROLS and row["pairs"]]
    names = [row["labels"] for row in done]
    level = 1 - DOUBT / max(len(names), 1)
    judged = Judged(
        accuracy,
        {one: gain(accuracy, one, level=level) for one in names},
        {row["labels"]: row["classes"] for row in done},
        level,
    )
    decided = Decision(CANNOT_TELL, None, "cannot tell: no level is compared with re-training yet")
    if names:
        decided = _decide(judged, target, worth)
    advised = decided.choice if decided.choice in names else None
    warnings = about_labels(judged, rows, probe_accuracy(results), by_probe, advised, images)
    if names:
        warnings += about_baselines(judged, results, advised)
    return Advice(decided, _made(judged), tuple(warnings), rows, target)


def _decide(judged: Judged, target: str, worth: float) -> Decision:
    gains, best = judged.gains, judged.best
    if judged.gaining:
        found = judged.coarsest()
        sentence = f"pre-train on {judged.told(found, f' over re-training on {target}')}"
        if found != best:
            more = f"{judged.named(best)}: {gains[best].mean:+.2f}"
            sentence += f"; it is the coarsest that is not worse than the best, {more}"
        if gains[found].high < worth:
            sentence += f"; a sure gain, but of less than {worth:g} points"
        return _beside_one_pass(judged, found, sentence, target)
    enough = all(it.n >= FEWEST for it in gains.values())
    if enough and all(it.high < worth for it in gains.values()):
        return Decision(
            NONE,
            TARGET,
            f"no level helps here: none gains {worth:g} points over re-training on {target}; "
            f"the best is {judged.told(best)}",
        )
    further, words = judged.more_seeds(worth)
    ahead = gains[best].mean > 0
    so_far = (
        "the best so far is" if ahead else "none is ahead of re-training so far, the nearest is"
    )
    told = f"cannot tell: {words} would; {so_far} {judged.told(best)}"
    return Decision(CANNOT_TELL, None, told, further)


def _beside_one_pass(judged: Judged, found: str, sentence: str, target: str) -> Decision:
    """A budget of two stages can also be spent in one."""
    if ONCE not in judged.accuracy["labels"].values.tolist():
        return Decision(USE, found, sentence)
    best = judged.best
    over = gain(judged.accuracy, ONCE, best, judged.level)
    if over.n >= FEWEST and over.low > 0:
        return Decision(
            USE,
            ONCE,
            f"train once on {target}, as long as both stages together: {spelled(over)} over the "
            f"best level, {judged.told(best)}",
        )
    over = gain(judged.accuracy, ONCE, found, judged.level)
    if over.n >= FEWEST and over.low > 0:  # the coarser one is not enough then
        found, sentence = (
            best,
            f"pre-train on {judged.told(best, f' over re-training on {target}')}",
        )
        over = gain(judged.accuracy, ONCE, found, judged.level)
    if over.n and not over.high < 0:
        sentence += f"; not told apart from one pass of the same length ({-over.mean:+.2f})"
    return Decision(USE, found, sentence)


def _made(judged: Judged) -> str:
    """What made labels are worth here, next to given ones."""
    given, made = (
        max(some, key=lambda one: judged.gains[one].mean, default="")
        for some in (
            [one for one in judged.gains if kind(one) == GIVEN],
            [one for one in judged.gains if kind(one) != GIVEN],
        )
    )
    if not made:
        return "made labels: none were compared"
    worth = f"made labels are worth {judged.gains[made].mean:+.2f} points here ({made})"
    if not given:
        return f"{worth}; there is no given level to compare with"
    apart = gain(judged.accuracy, made, given, judged.level)
    words = "not told apart"
    if apart.n >= FEWEST and apart.low > 0:
        words = "made labels are better"
    elif apart.n >= FEWEST and apart.high < 0:
        words = "given labels are better"
    return f"{worth}, given labels {judged.gains[given].mean:+.2f} ({given}): {words}"
