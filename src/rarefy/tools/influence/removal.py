"""Leave out a share of the training samples by a score, train on the rest, ask the test set.

003 Fig. 7 does it with the influence score. Scores come from the whole training set and know
nothing of the test set; what is left out never depends on how well anything was learnt.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.core.contracts import Context
from rarefy.core.errors import UsageError, bad_value, unknown
from rarefy.core.rng import key
from rarefy.data.images.catalog import SETS
from rarefy.data.images.ids import chosen_by_content, digest_of
from rarefy.measure.influence.held_out import score_held_out
from rarefy.measure.influence.passes import ClassScores
from rarefy.nets.by_name import identity
from rarefy.tools.answers import Scorer, finished
from rarefy.tools.image_data import on_device
from rarefy.tools.influence.neighbours import neighbour_labels
from rarefy.tools.influence.scoring import NEIGHBOURS, influence_of
from rarefy.tools.samples.opening import open_samples
from rarefy.tools.samples.samples import Samples
from rarefy.tools.sparse_training import Task, new_training, own_random_state
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.image_batches import Scaling
from rarefy.train.supervised import Training
from rarefy.train.thinning import Thinning

LOGISTIC = "logistic"
"""Logistic regression on standardised features: works on anything, in seconds."""
LOW = "-low"
SCORES = ("influence", "distance", "mahalanobis", "norm", "disagreement")
SHORT = {"high": "influence", "low": "influence-low"}
RANDOM = "random"
WITHIN = ("class", "all")
TEST_SHARE = 0.2
"""Of data that has no test part of its own."""
LOGISTIC_STEPS = 300


@dataclass(frozen=True)
class Order:
    """By which score samples leave, highest first (or lowest)."""

    score: str
    lowest: bool

    @classmethod
    def parse(cls, word: str) -> Order:
        """``high`` and ``low`` influence, ``random``, ``distance``, ``distance-low`` ..."""
        full = SHORT.get(word, word)
        score = full.removesuffix(LOW)
        if score not in (*SCORES, RANDOM) or (score == RANDOM and full != RANDOM):
            known = (*SHORT, RANDOM, *SCORES[1:], *(f"{one}{LOW}" for one in SCORES[1:]))
            raise unknown("way to choose what is removed (by)", word, known)
        return cls(score, full != score)


@dataclass(frozen=True)
class Removal:
    """What is left out before a training."""

    by: str = "high"
    fraction: float = 0.1
    within: str = "class"
    """``class``: the same share of every class, since raw scores are not comparable between
    classes; ``all``: the highest of the whole set, as 003 sorts."""
    subsample: float = 1.0
    """Share of the training samples drawn first, by the seed: where a training has no chance in it
    (logistic regression), this is what differs between seeds."""

    def __post_init__(self) -> None:
        Order.parse(self.by)
        if not 0 <= self.fraction < 1:
            raise bad_value("fraction", self.fraction, "must be at least 0 and below 1")
        if not 0 < self.subsample <= 1:
            raise bad_value("subsample", self.subsample, "must be above 0 and at most 1")
        if self.within not in WITHIN:
            raise unknown("within", self.within, WITHIN)


@dataclass(frozen=True)
class After:
    """What a training on the rest reaches: shares of right answers."""

    test: float
    tail: float
    """On the tail of the test set: its highest held-out scores, class by class."""
    rest: float
    trained: int
    """Samples that were left."""
    smallest: float
    """Share of its samples that the class with the largest loss has left."""
    nonfinite_step: int = -1


# --------------------------------------------------------------------------------------------- data


@dataclass(frozen=True, eq=False)
class Parts:
    """A data set in two parts, and the scores of its training part."""

    text: str
    train: Samples
    test: Samples
    is_images: bool
    copied: int
    """Test samples whose content is in the training part too."""


@lru_cache(maxsize=2)
def _parts(text: str, label: str, folder: str | None) -> Parts:
    path = Path(text.rpartition("?")[0] or text)
    is_images = text in SETS or path.is_dir()
    if is_images:
        train, test = (open_samples(text, split=split) for split in ("train", "test"))
    else:
        whole = open_samples(text, label=label or None)
        contents = [digest_of(one) for one in whole.ids]
        asked = np.array(chosen_by_content(contents, whole.labels.tolist(), TEST_SHARE))
        if not asked.any() or asked.all():
            raise UsageError(f"{text}: too few different samples a class for a test part")
        train, test = whole.take(~asked), whole.take(asked)
    known = {digest_of(one) for one in train.ids}
    copied = sum(digest_of(one) in known for one in test.ids)
    return Parts(text, train, test, is_images, copied)


def parts_of(text: str, label: str = "") -> Parts:
    """Training and test part of what ``text`` names; what has no test part gets one by content."""
    return _parts(text, label, os.environ.get("RAREFY_DATA"))


@lru_cache(maxsize=2)
def _scores(text: str, label: str, folder: str | None, device: torch.device) -> ClassScores:
    return influence_of(_parts(text, label, folder).train, device=device)


@lru_cache(maxsize=2)
def _tail(
    text: str, label: str, folder: str | None, share: float, device: torch.device
) -> NDArray[np.bool_]:
    parts = _parts(text, label, folder)
    train, test = parts.train, parts.test
    scores = score_held_out(
        train.features,
        train.labels,
        test.features,
        test.labels,
        len(train.classes),
        scale=train.scale,
        device=device,
    )
    return highest(scores.influence, test.labels, share, "class")


@lru_cache(maxsize=2)
def _disagreement(
    text: str, label: str, folder: str | None, device: torch.device
) -> NDArray[np.float64]:
    return neighbour_labels(_parts(text, label, folder).train, NEIGHBOURS, device).disagreement


def score_of(parts: Parts, label: str, name: str, device: torch.device) -> NDArray[np.float64]:
    """One number a training sample; cells of a study share the work."""
    where = parts.text, label, os.environ.get("RAREFY_DATA"), device
    if name == "disagreement":
        return _disagreement(*where)
    return np.asarray(getattr(_scores(*where), name))


def highest(
    values: NDArray[np.float64], labels: NDArray[np.int64], share: float, within: str
) -> NDArray[np.bool_]:
    """Which samples have the highest values: the share of every class, or of all. Values that are
    undefined are never among them; ties are broken by place; a class keeps at least one sample."""
    chosen = np.zeros(len(values), dtype=bool)
    ranked = np.where(np.isfinite(values), values, -np.inf)
    groups = [np.flatnonzero(labels == one) for one in np.unique(labels)]
    for rows in groups if within == "class" else [np.arange(len(values))]:
        defined = int(np.isfinite(values[rows]).sum())
        count = min(round(share * len(rows)), defined, len(rows) - 1)
        chosen[rows[np.argsort(-ranked[rows], kind="stable")[:count]]] = True
    if within == "all":
        for rows in groups:
            if chosen[rows].all():  # nobody can learn a class that is gone
                chosen[rows[np.argmin(ranked[rows])]] = False
    return chosen


def left_after(
    removal: Removal, parts: Parts, label: str, run_key: int, device: torch.device
) -> NDArray[np.bool_]:
    """Which training samples are left."""
    generator = np.random.default_rng([key(run_key, "removal") & (2**63 - 1)])
    labels = parts.train.labels
    drawn = np.ones(len(labels), dtype=bool)
    if removal.subsample < 1:
        drawn = highest(generator.random(len(labels)), labels, removal.subsample, "class")
    chance = generator.random(len(labels))
    if removal.fraction == 0:
        return drawn
    order = Order.parse(removal.by)
    values = chance if order.score == RANDOM else score_of(parts, label, order.score, device)
    rows = np.flatnonzero(drawn)
    own = -values[rows] if order.lowest else values[rows]
    gone = highest(own, labels[rows], removal.fraction, removal.within)
    left = drawn.copy()
    left[rows[gone]] = False
    return left


# ----------------------------------------------------------------------------------------- training


def train_without(
    removal: Removal,
    task: Task,
    run_key: int,
    context: Context,
    label: str = "",
    tail_share: float = 0.1,
    name: str = "run",
) -> After:
    """Train ``task.network`` on what is left of ``task.data`` and ask it."""
    parts = parts_of(task.data, label)
    left = left_after(removal, parts, label, run_key, context.device)
    folder = os.environ.get("RAREFY_DATA")
    tail = _tail(task.data, label, folder, tail_share, context.device)
    if task.network == LOGISTIC:
        right, stopped = _logistic(parts, left), -1
        context.advance(task.recipe.epochs)
        context.say(f"{name}: test accuracy {100 * right.mean():.1f} %")
    elif parts.is_images:
        right, stopped = _network(task, left, tail, run_key, context, name)
    else:
        raise bad_value("network", task.network, f"needs images; for other data use {LOGISTIC}")
    had, has = (np.bincount(parts.train.labels[rows]) for rows in (slice(None), left))
    return After(
        test=float(right.mean()),
        tail=float(right[tail].mean()) if tail.any() else float("nan"),
        rest=float(right[~tail].mean()),
        trained=int(left.sum()),
        smallest=float((has / np.maximum(had[: len(has)], 1))[had[: len(has)] > 0].min()),
        nonfinite_step=stopped,
    )


def _logistic(parts: Parts, left: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Right answers, one a test sample."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=LOGISTIC_STEPS))
    own = np.asarray(parts.train.features[left], dtype=np.float32) * np.float32(parts.train.scale)
    with warnings.catch_warnings():
        # its regularised optimum is near long before the last digit settles
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(own, parts.train.labels[left])
    asked = np.asarray(parts.test.features, dtype=np.float32) * np.float32(parts.test.scale)
    return np.asarray(model.predict(asked) == parts.test.labels, dtype=np.float64)


def _network(
    task: Task,
    left: NDArray[np.bool_],
    tail: NDArray[np.bool_],
    run_key: int,
    context: Context,
    name: str,
) -> tuple[NDArray[np.float64], int]:
    """The same from a network; accuracies of tail and rest stand for the single answers."""
    data = on_device(task.data, context.device)
    rows = torch.from_numpy(np.flatnonzero(left))
    pieces = [data.test.take(torch.from_numpy(which)) for which in (tail, ~tail)]
    with own_random_state(run_key, context.device):
        training = new_training(task, Thinning(), data, data.train.take(rows), run_key, context)

        def watch(now: Training) -> None:
            loss = now.history.loss[-1]
            context.say(f"{name}: epoch {now.epoch}/{task.recipe.epochs}, loss {loss:.3f}")

        checkpoint = None
        if context.scratch is not None:
            named = key(run_key, task, data.fingerprint, identity(task.network), _digest(left))
            checkpoint = Checkpoint(context.scratch / f"{named & (2**64 - 1):016x}.pt")
        history = training.run(context, checkpoint, watch)
        network = finished(training)
        scorer = Scorer(training, Scaling(data.mean, data.std), run_key, context)
        right = np.empty(len(tail))
        for which, piece in zip((tail, ~tail), pieces, strict=True):
            right[which] = scorer(network, piece, 0.0).accuracy if len(piece) else np.nan
        if checkpoint is not None:
            checkpoint.remove()
    if history.nonfinite_step >= 0:
        right[:] = np.nan
    return right, history.nonfinite_step


def _digest(left: NDArray[np.bool_]) -> str:
    from hashlib import blake2b

    return blake2b(np.packbits(left).tobytes(), digest_size=8).hexdigest()
