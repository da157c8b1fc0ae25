"""Ways to learn without labels, in words: ``simclr``, ``pruned:0.7``, ``branches:0.1``, ``sdclr``.

simclr      both views through the network (Chen et al. 2020)
pruned      both views through the masked network, every weight updated (000 Algorithm 1)
branches    one view through the network, the other through its masked copy, whose gradients reach
            the weights that it kept (Jiang et al. 2021, "SDCLR")
sdclr       the same with the settings of its authors: a tenth kept, normalisation layers of its own
            for each branch, three layers in the head
untrained   the network's first weights, and
pixels      no network at all: what features must be better than

The number is the share of weights that is kept; ``branches:1`` is the control of branches: no
masks, but the two views one by one, each with its own batch statistics. Further words, each after
a ``+``:

layer, filter, neuron     what competes (else ``global``: all weights of the backbone)
step, epoch               when masks are chosen (else: pruned at every step, branches every epoch)
one-sided                 the loss of 000 with its stopped gradient (else: the symmetric one)
schedule                  temperature up and down between 0.1 and 1 (Kukleva et al. 2023)
boost                     rare images are changed more, by the loss remembered of each (Zhou et al.
                          2022, "Contrastive Learning with Boosted Memorization", BCL-I)
harmonise                 points are shared among 100 directions (harmonise:20: among 20) in the
                          second half of the training (Zhou et al. 2023, "Combating Representation
                          Learning Disparity with Geometric Harmonization")
straight                  branches: the masked one updates all weights
own-norms                 branches: each has the weights of its normalisation layers

Controls of branches, which ask what it is about the mask:

random                    masks drawn at random, anew each time they are chosen
frozen                    masks chosen once, from the first weights
both                      both views through the masked network; what stays is the dense one
dropout, noise            no mask but random factors (0 or 1; Gaussian), drawn anew at every update,
                          that disturb every layer as much as the mask would (``Disturbance``)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rarefy.core.errors import UsageError, bad_value, unknown

FLOORS = ("untrained", "pixels")
KINDS = ("simclr", "pruned", "branches", "sdclr", *FLOORS)
PRUNED = ("pruned", "branches")
GRANULARITIES = ("layer", "filter", "neuron")
DISTURBANCES = ("dropout", "noise")
CONTROLS = ("random", "frozen", "both", *DISTURBANCES)
_OF_BRANCHES = ("straight", "own-norms", *CONTROLS)
WORDS = (*GRANULARITIES, "step", "epoch", "one-sided", "schedule", *_OF_BRANCHES)
_OF_MASKS = (*GRANULARITIES, "step", "epoch")
REMEMBERING = ("boost", "harmonise")
TARGETS = 100
"""Of harmonise: what the paper has, whatever the data (nobody knows classes without labels)."""


@dataclass(frozen=True)
class Method:
    """``parse`` makes one of its words. ``head_depth`` 0: as the training says."""

    kind: str = "simclr"
    keep: float = 1.0
    granularity: str = "global"
    every_step: bool = False
    objective: str = "nt-xent"
    schedule: bool = False
    straight: bool = False
    own_norms: bool = False
    # (not in the repr, by which checkpoints go: those of other methods stay what they are)
    random: bool = field(default=False, repr=False)
    frozen: bool = field(default=False, repr=False)
    both: bool = field(default=False, repr=False)
    disturbance: str = field(default="", repr=False)
    head_depth: int = 0
    boost: bool = field(default=False, repr=False)  # (checkpoints of other methods stay)
    targets: int = field(default=0, repr=False)
    """Of harmonise; 0: not so."""
    words: str = field(default="simclr", compare=False)
    """What it was parsed from."""

    @classmethod
    def parse(cls, text: str) -> Method:
        first, *further = text.split("+")
        kind, colon, share = first.partition(":")
        if kind not in KINDS:
            raise unknown("method", kind, KINDS)
        if kind in FLOORS and text != kind:
            raise bad_value("method", text, f"nothing is trained: {kind} stands alone")
        if kind == "simclr" and colon:
            raise bad_value("method", text, "simclr keeps all weights: no share behind it")
        if kind in PRUNED and not colon:
            raise bad_value("method", text, f"needs the share of weights to keep, as {kind}:0.3")
        keep = _share(text, share) if colon else 1.0
        if kind == "sdclr":
            keep = keep if colon else 0.1
            found = cls("branches", keep, own_norms=True, head_depth=3)
        else:
            found = cls(kind, keep, every_step=kind == "pruned")
        for word in further:
            remembers = word.partition(":")[0] in REMEMBERING
            found = (found._remembering if remembers else found._with)(word, text)
        _check_controls(found, further, text)
        if found.boost and found.objective != "nt-xent":
            raise bad_value("method", text, "boost remembers the symmetric loss: not one-sided")
        if found.own_norms and found.keep == 1:
            raise bad_value(
                "method",
                text,
                "norms of their own are those of a masked branch; without masks: branches:1",
            )
        return replace(found, words=text)

    def _with(self, word: str, text: str) -> Method:
        if word not in WORDS:
            known = ", ".join((*WORDS, *REMEMBERING))
            raise bad_value("method", text, f"after a + there can be {known}")
        if word in _OF_MASKS and self.kind == "simclr":
            raise bad_value("method", text, f"{word} is about masks, and simclr has none")
        if word in _OF_BRANCHES and self.kind != "branches":
            raise bad_value("method", text, f"{word} is about branches")
        if word in GRANULARITIES:
            if word == "neuron" and self.kind == "branches":
                raise bad_value("method", text, "branches mask weights, not whole neurons")
            return replace(self, granularity=word)
        if word in ("step", "epoch"):
            return replace(self, every_step=word == "step")
        if word == "one-sided":
            return replace(self, objective="one-sided")
        if word in DISTURBANCES:
            return replace(self, disturbance=word)
        return replace(self, **{word.replace("-", "_"): True})  # type: ignore[arg-type]

    def _remembering(self, word: str, text: str) -> Method:
        name, colon, targets = word.partition(":")
        if self.boost if name == "boost" else self.targets:
            raise bad_value("method", text, f"has {name} twice")
        if name == "boost":
            if colon:
                raise bad_value("method", text, "behind boost stands no number")
            return replace(self, boost=True)
        if colon and not (targets.isdecimal() and len(targets) < 19 and int(targets) >= 2):
            raise bad_value("method", text, "behind harmonise: stands the number of targets, as 20")
        return replace(self, targets=int(targets) if colon else TARGETS)

    @property
    def masked(self) -> bool:
        """Whether there is a masked network."""
        return self.kind in PRUNED and self.keep < 1 and not self.disturbance

    @property
    def trained(self) -> bool:
        return self.kind not in FLOORS


def _check_controls(method: Method, words: Sequence[str], text: str) -> None:
    asked = [word for word in CONTROLS if word in words]
    if asked and method.keep == 1:
        raise bad_value("method", text, f"{asked[0]} is about masks, and all weights are kept")
    if method.frozen and ("step" in words or "epoch" in words):
        raise bad_value("method", text, "frozen masks are chosen once, not at every step or epoch")
    if method.disturbance and len([word for word in asked if word != "both"]) > 1:
        one_of = ", ".join(word for word in CONTROLS if word != "both")
        raise bad_value(
            "method", text, f"{method.disturbance} takes the place of masks: one of {one_of}"
        )
    if method.both and method.own_norms:
        raise bad_value("method", text, "both views see one network: no norms of their own")


def _share(text: str, share: str) -> float:
    try:
        keep = float(share)
    except ValueError:
        raise bad_value("method", text, "behind the colon stands a share, as 0.3") from None
    if not 0 < keep <= 1:
        raise bad_value("method", text, "keeps a share above 0 and at most 1")
    return keep


def parse_methods(text: str) -> tuple[str, ...]:
    """Several, separated by commas, each checked; the same one twice is a slip."""
    found = tuple(word.strip() for word in text.split(",") if word.strip())
    if not found:
        raise UsageError(f"method={text!r}: name at least one of {', '.join(KINDS)}")
    for word in found:
        Method.parse(word)
    if len(set(found)) < len(found):
        raise bad_value("method", text, "has the same one twice")
    return found


LOW, HIGH, PERIOD = 0.1, 1.0, 400
"""Kukleva et al. 2023: temperatures between which the schedule goes, and epochs of one round (a
shorter training has one round)."""


def temperature(method: Method, usual: float, epoch: float, epochs: int) -> float:
    """tau at a (broken) epoch: 0.1 + 0.45 (1 + cos(2 pi epoch / period)) with a schedule."""
    if not method.schedule:
        return usual
    turn = 2 * math.pi * epoch / min(PERIOD, epochs)
    return LOW + 0.5 * (HIGH - LOW) * (1 + math.cos(turn))
