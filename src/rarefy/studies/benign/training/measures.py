"""What ``benign-training`` gives out: its outputs, and those about the two stages of training."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Output
from rarefy.measure.training_stages import losses, stage_1, stage_2
from rarefy.studies.benign.setting import ClassNoiseExperiment
from rarefy.studies.benign.training.run import Watched
from rarefy.studies.benign.trial import Trial
from rarefy.theory.benign import first_loss_drop, stage_1_rate_order

SPREAD = ("least", "median", "most")
TIMES = 24
"""Steps at which curves are kept, evenly spaced in the logarithm."""

OUTPUTS: tuple[Output, ...] = (
    Output("lr", (), "learning rate"),
    Output("class_rate", ("class",), "fall of the log loss a step in stage 1, class mean"),
    Output("constant", ("spread",), "a sample's stage-1 rate over that of features alone"),
    Output("bend", (), "stage-1 rate, second half over first half of the fall, median"),
    Output("first_drop", (), "mean fall of the loss in the first step over its closed form"),
    Output("step_at", ("time",), "steps at which curves are kept", "updates"),
    Output("loss_at", ("time", "spread"), "losses of the training samples"),
    Output("kappa_at", ("time",), "largest over smallest residual 1 - logit_y", "log10"),
    Output("average_at", ("time",), "training loss averaged since T_0"),
    Output("bound_at", ("time",), "bound of Lemma 2 on that average"),
    Output("start", (), "T_0: first step with a training loss of at most log(K)/4", "updates"),
    Output("bound_worst", (), "largest quotient of average and bound over all steps"),
    Output("average_slope", (), "slope of log average loss against log(t - T_0), at the end"),
    Output("loss_slope", (), "the same of the loss itself"),
    Output("rank_share", (), "rank(W_j A_j)/m, least over classes"),
    Output("active_least", (), "least share of active filters on fresh noise"),
    Output("active_enough", (), "share of fresh samples that activate a tenth or more"),
    Output("memory_own", (), "mean response of filters to their own class's training noise"),
    Output("memory_other", (), "mean response to other classes' training noise"),
    Output("memory_worst", (), "least own over largest other response"),
    Output("memory_pairs", (), "share of pairs in which own is at least other"),
    Output("tail_own", ("quantile",), "own response over Lemma 6, long-tailed samples"),
    Output("tail_other", (), "mean response of other classes over Lemma 6"),
    Output("log_kappa", (), "largest over smallest residual, largest in training", "log10"),
    Output("updates", (), "updates until the run stopped", "updates"),
    Output("train_loss", (), "training loss at the end"),
)


def stage_1_measures(
    study: ClassNoiseExperiment, experiment: Trial, seen: Watched, lr: Tensor
) -> dict[str, Tensor]:
    """Lemma 1; ``study`` is the one at the case."""
    samples = experiment.samples
    runs, n = len(lr), len(samples)
    label = samples.labels.expand(runs, -1)
    one_hot = samples.one_hot().to(lr)
    norm = samples.strength.gather(1, label)  # |u_y|, (run, n)
    size = one_hot.sum(dim=1).expand(runs, -1).gather(1, label)
    found = stage_1(seen.odds)
    # the first step's share of log K that features alone take away: Lemma 1's order times a
    # constant in closed form
    order = stage_1_rate_order(
        size.double().cpu().numpy(),
        norm.double().cpu().numpy(),
        n,
        1.0,
        study.filters,
        study.scale,
    )
    constant = first_loss_drop(1.0, 1.0, 0.0, 1, study.classes, 1.0, 1, 1.0)
    unit = torch.as_tensor(order).to(lr) * lr[:, None] * float(constant) / math.log(study.classes)
    loss = losses(seen.odds[:, :2])
    drop = (loss[:, 0] - loss[:, 1]).mean(dim=1)
    energy = (size * norm**2 + samples.noise_norms()).mean(dim=1)
    gain = lr * study.filters * study.scale**2 / n
    wide = one_hot.expand(runs, -1, -1)
    means = torch.einsum("rn,rnk->rk", found.rate, wide) / wide.sum(dim=1)
    return {
        "step_at": _steps(seen),
        "loss_at": _at_times(_spread(losses(seen.odds))),
        "class_rate": means,
        "constant": _spread(found.rate / unit),
        "bend": found.bend.nanmedian(dim=1).values,
        "first_drop": drop / (gain * energy * float(constant)),
    }


def _spread(values: Tensor) -> Tensor:
    """Least, median and most over the samples: (run, ..., 3) from (run, ..., n)."""
    return torch.stack([values.amin(-1), values.median(-1).values, values.amax(-1)], dim=-1)


def _kept_times(steps: int) -> np.ndarray:
    """At most ``TIMES`` steps from 0 to ``steps``, evenly spaced in the logarithm."""
    return np.unique(np.r_[0, np.geomspace(1, steps, TIMES - 1).round()]).astype(int)


def _at_times(values: Tensor) -> Tensor:
    """(run, step, ...) at the kept steps, filled up with NaN: (run, time, ...)."""
    times = _kept_times(values.shape[1] - 1)
    found = values.new_full((len(values), TIMES, *values.shape[2:]), torch.nan)
    found[:, : len(times)] = values[:, torch.as_tensor(times, device=values.device)]
    return found


def _steps(seen: Watched) -> Tensor:
    runs, steps = seen.odds.shape[:2]
    when = torch.arange(steps, device=seen.odds.device, dtype=torch.float64)
    return _at_times(when.expand(runs, -1))


def stage_2_measures(seen: Watched, lr: Tensor, epsilon: float) -> dict[str, Tensor]:
    """Lemma 2, and how kappa of Lemma 7 goes on."""
    found = stage_2(seen.loss(), seen.start, seen.distance, lr, epsilon)
    return {
        "step_at": _steps(seen),
        "kappa_at": _at_times(seen.log_kappa()),
        "start": seen.start.to(torch.float64).masked_fill(seen.start < 0, torch.nan),
        "average_at": _at_times(found.average),
        "bound_at": _at_times(found.bound),
        "bound_worst": found.worst,
        "average_slope": found.average_slope,
        "loss_slope": found.loss_slope,
    }
