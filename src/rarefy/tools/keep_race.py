"""``keep="auto"``: which share of the weights to keep, by a short race on held-out training images.

In the committed runs it lost less than advice from gradients and than always keeping half; always
dense is about as good (``docs/keep.md``), and may win the race. Test images are never looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import torch

from rarefy.core.contracts import Context
from rarefy.core.errors import bad_value
from rarefy.core.rng import key
from rarefy.data.images.ids import choose_by_content, digest_of
from rarefy.data.images.image_set import ImageData, ImageSet
from rarefy.measure.class_report import balanced_accuracy
from rarefy.nets.builder import identity
from rarefy.sweep.cached import cached_npz, hash_of
from rarefy.tools.image_data import on_device, some_of
from rarefy.tools.network_evaluation import Scorer, final_network
from rarefy.tools.sparse_experiment import SparseTraining
from rarefy.tools.sparse_training import Task, new_training, own_random_state
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.image_batches import Scaling
from rarefy.train.pruning_spec import PruningSpec

AUTO = "auto"
KEEPS = (1.0, 0.8, 0.5, 0.3, 0.1)
SEEDS = 2
HELD_OUT = 0.2
"""Share of the training images of each class."""
SHORT = 0.25
"""Share of the epochs that the race takes."""
LEAST_UPDATES = 200
"""Or more of them, up to all, for so many updates: with fewer even the dense network guesses."""


@dataclass(frozen=True)
class Race:
    """``scores``: balanced accuracy in per cent of each keep, means over seeds (NaN: it failed)."""

    scores: dict[float, float]
    epochs: int
    images: int

    @property
    def chosen(self) -> float:
        """The best, dense or pruned; of equals the one that keeps most."""
        return self._best(self.scores)

    @property
    def beside(self) -> float:
        """The best of the pruned: it is trained beside the dense network in any case."""
        return self._best([keep for keep in self.scores if keep < 1])

    def _best(self, keeps: Iterable[float]) -> float:
        return max(keeps, key=lambda keep: (np.nan_to_num(self.scores[keep], nan=-1.0), keep))

    @property
    def sentence(self) -> str:
        others = ", ".join(
            f"{_name(keep)} {score:.1f}"
            for keep, score in self.scores.items()
            if keep != self.chosen
        )
        words = (
            f"{_name(self.chosen)} is chosen: best after {self.epochs} epochs on {self.images} "
            f"held-out training images, {self.scores[self.chosen]:.1f} % of balanced accuracy "
            f"({others})"
        )
        return words if self.chosen < 1 else f"{words}; {_name(self.beside)} is trained beside it"


def _name(keep: float) -> str:
    return "dense" if keep == 1 else f"keep {keep:g}"


def race(experiment: SparseTraining, context: Context) -> Race:
    """Train every one of ``KEEPS`` for a short while on most of the training images, and ask it for
    the rest of them."""
    data = on_device(experiment.data, context.device)
    train = some_of(data.train, experiment.samples)
    contents = [digest_of(one) for one in train.ids]
    out = torch.tensor(choose_by_content(contents, train.labels.tolist(), HELD_OUT, "race"))
    if not out.any():
        raise bad_value(
            "keep", AUTO, "needs a class with two different training images; name shares, e.g. 0.3"
        )
    rest, held = train.take(~out), train.take(out)
    task = experiment.task(experiment.noise[0], experiment.noise_resampling[0])
    task = replace(task, batch=min(task.batch, max(len(rest), 2)))
    enough = math.ceil(LEAST_UPDATES / max(len(rest) // task.batch, 1))
    epochs = min(max(math.ceil(SHORT * task.recipe.epochs), enough), task.recipe.epochs)
    task = replace(task, recipe=replace(task.recipe, epochs=epochs))
    scores: dict[float, float] = {}
    for keep in KEEPS:
        spec = PruningSpec()
        if keep < 1:
            rule = experiment.update[0]
            spec = PruningSpec.parse(rule, keep, experiment.granularity, experiment.every)
        found = []
        for seed in range(SEEDS):
            context.say(f"choosing a keep: {keep:g}, seed {seed}")
            run_key = key(experiment.name, "race", seed)
            found.append(_score(task, spec, data, (rest, held), run_key, context))
        scores[keep] = float(np.mean(found))
    return Race(scores, epochs, len(held))


def _score(
    task: Task,
    spec: PruningSpec,
    data: ImageData,
    parts: tuple[ImageSet, ImageSet],
    run_key: int,
    context: Context,
) -> float:
    """Balanced accuracy of one short training on the second part. With a folder for it, a race that
    was stopped goes on where it was."""
    rest, held = parts

    def trained(checkpoint: Checkpoint | None) -> float:
        with own_random_state(run_key, context.device):
            training = new_training(task, spec, data, rest, run_key, context)
            history = training.run(context, checkpoint)
            network = final_network(training)
            scorer = Scorer(training, Scaling(data.mean, data.std), run_key, context)
            confusion = scorer.confusion(network, held, task.test_noise[0])
        if checkpoint is not None:
            checkpoint.remove()
        return math.nan if history.nonfinite_step >= 0 else float(balanced_accuracy(confusion)[0])

    if context.scratch is None:
        return trained(None)
    name = hash_of("race", run_key, task, spec, data.fingerprint, identity(task.network))
    path = context.scratch / f"{name}.npz"
    kept = cached_npz(
        path,
        lambda: {"score": np.asarray(trained(Checkpoint(path.with_suffix(".pt"))))},
        context.advance,
        0,
    )
    return float(kept["score"])
