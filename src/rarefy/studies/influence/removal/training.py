"""Leave out a share of the training samples by a score, train on the rest, ask the test set.

003 Fig. 7 does it with the influence score. Scores come from the whole training set and know
nothing of the test set; what is left out never depends on how well anything was learnt.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.core.contracts import Context
from rarefy.core.errors import bad_value, unknown
from rarefy.core.rng import key
from rarefy.nets.builder import identity
from rarefy.studies.influence.removal.data import Parts, Source, parts_of
from rarefy.tools.image_data import on_device
from rarefy.tools.network_evaluation import Scorer, final_network
from rarefy.tools.sparse_training import Task, new_training, own_random_state
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.image_batches import Scaling
from rarefy.train.pruning_spec import PruningSpec
from rarefy.train.supervised import Training

LOGISTIC = "logistic"
"""Logistic regression on standardised features: works on anything, in seconds."""
LOW = "-low"
SCORES = ("influence", "distance", "mahalanobis", "norm", "disagreement")
SHORT = {"high": "influence", "low": "influence-low"}
FULL = {full: word for word, full in SHORT.items()}
RANDOM = "random"
WITHIN = ("class", "all")
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
class RemovalResult:
    """What a training on the rest reaches: shares of right answers."""

    test: float
    tail: float
    """On the tail of the test set: its highest held-out scores, class by class."""
    far: float
    """On the test samples farthest from their class mean: a tail that the score did not choose."""
    rest: float
    """On those in neither."""
    trained: int
    """Samples that were left."""
    smallest: float
    """Share of its samples that the class with the largest loss has left."""
    nonfinite_step: int = -1


# ------------------------------------------------------------------------------------ who leaves


def highest(
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    share: float,
    within: str,
    chance: NDArray[np.float64] | None = None,
) -> NDArray[np.bool_]:
    """Which samples have the highest values: the share of every class, or of all. Values that are
    undefined are never among them; of equal ones those with the smaller ``chance`` (by place if
    there is none: the order of a file often means something); a class keeps at least one sample."""
    chosen = np.zeros(len(values), dtype=bool)
    ranked = np.where(np.isfinite(values), values, -np.inf)
    ties = np.arange(len(values), dtype=np.float64) if chance is None else chance
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    for rows in groups if within == "class" else [np.arange(len(values))]:
        defined = int(np.isfinite(values[rows]).sum())
        count = min(round(share * len(rows)), defined, len(rows) - 1)
        chosen[rows[np.lexsort((ties[rows], -ranked[rows]))[:count]]] = True
    if within == "all":
        for rows in groups:
            if chosen[rows].all():  # nobody can learn a class that is gone
                chosen[rows[np.argmin(ranked[rows])]] = False
    return chosen


def left_after(
    removal: Removal, parts: Parts, run_key: int, device: torch.device
) -> NDArray[np.bool_]:
    """Which training samples are left."""
    generator = np.random.default_rng([key(run_key, "removal") & (2**63 - 1)])
    labels = parts.train.labels
    drawn = np.ones(len(labels), dtype=bool)
    if removal.subsample < 1:
        first = generator.random(len(labels))
        # by what is not drawn: so that a class of one sample stays
        drawn = ~highest(first, labels, 1 - removal.subsample, "class")
    chance = generator.random(len(labels))
    if removal.fraction == 0:
        return drawn
    order = Order.parse(removal.by)
    values = chance if order.score == RANDOM else parts.score(order.score, device)
    rows = np.flatnonzero(drawn)
    own = -values[rows] if order.lowest else values[rows]
    gone = highest(own, labels[rows], removal.fraction, removal.within, chance[rows])
    left = drawn.copy()
    left[rows[gone]] = False
    return left


# ----------------------------------------------------------------------------------------- training


def train_without(
    removal: Removal,
    source: Source,
    task: Task,
    run_key: int,
    context: Context,
    tail_share: float = 0.1,
    name: str = "run",
) -> RemovalResult:
    """Train ``task.network`` on what is left of ``source`` and ask it."""
    parts = parts_of(source)
    left = left_after(removal, parts, run_key, context.device)
    tail, far = (
        highest(values, parts.test.labels, tail_share, "class")
        for values in parts.held_out(context.device)
    )
    if task.network == LOGISTIC:
        right, stopped = _logistic(parts, left), -1
        context.advance(task.recipe.epochs)
        context.say(f"{name}: test accuracy {100 * right.mean():.1f} %")
    elif parts.is_images:
        right, stopped = _network(task, left, 2 * tail + far, run_key, context, name)
    else:
        raise bad_value("network", task.network, f"needs images; for other data use {LOGISTIC}")
    classes = len(parts.train.classes)
    had, has = (
        np.bincount(parts.train.labels[rows], minlength=classes) for rows in (slice(None), left)
    )
    return RemovalResult(
        test=float(right.mean()),
        tail=_mean(right[tail]),
        far=_mean(right[far]),
        rest=_mean(right[~tail & ~far]),
        trained=int(left.sum()),
        smallest=float((has[had > 0] / had[had > 0]).min()),
        nonfinite_step=stopped,
    )


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _logistic(parts: Parts, left: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Right answers, one per test sample."""
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
    piece: NDArray[np.int64],
    run_key: int,
    context: Context,
    name: str,
) -> tuple[NDArray[np.float64], int]:
    """The same from a network; the accuracy of each ``piece`` of the test set stands for the single
    answers, of which only means over whole pieces are used."""
    data = on_device(task.data, context.device)
    rows = torch.from_numpy(np.flatnonzero(left))
    with own_random_state(run_key, context.device):
        training = new_training(task, PruningSpec(), data, data.train.take(rows), run_key, context)

        def watch(now: Training) -> None:
            loss = now.history.loss[-1]
            context.say(f"{name}: epoch {now.epoch}/{task.recipe.epochs}, loss {loss:.3f}")

        checkpoint = None
        if context.scratch is not None:
            named = key(run_key, task, data.fingerprint, identity(task.network), _digest(left))
            checkpoint = Checkpoint(context.scratch / f"{named & (2**64 - 1):016x}.pt")
        history = training.run(context, checkpoint, watch)
        network = final_network(training)
        scorer = Scorer(training, Scaling(data.mean, data.std), run_key, context)
        right = np.empty(len(piece))
        for one in np.unique(piece):
            asked = data.test.take(torch.from_numpy(piece == one))
            right[piece == one] = scorer(network, asked, 0.0).accuracy
        if checkpoint is not None:
            checkpoint.remove()
    if history.nonfinite_step >= 0:
        right[:] = np.nan
    return right, history.nonfinite_step


def _digest(left: NDArray[np.bool_]) -> str:
    from hashlib import blake2b

    return blake2b(np.packbits(left).tobytes(), digest_size=8).hexdigest()
