"""What ``benign-training`` measures at the end of a training: Lemmas 3-7."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rarefy.data.patches import PatchSamples
from rarefy.measure import noise_neurons as nn
from rarefy.measure.generalisation import CHUNK
from rarefy.studies.benign.setting import ClassNoiseExperiment
from rarefy.studies.benign.training.run import Watched
from rarefy.studies.benign.trial import Trial
from rarefy.theory import benign

QUANTILES = (0.05, 0.5, 0.95)
LONG_TAILED = 1.0
"""Smallest L of Definition 1 at which a fresh sample counts as long-tailed here."""


def end_measures(
    study: ClassNoiseExperiment, experiment: Trial, seen: Watched
) -> dict[str, Tensor]:
    """``study`` is the one at the case: its classes, d and filters are those of the experiment."""
    table = experiment.data.eigenvalues
    spectrum = nn.noise_spectrum(seen.filters, table)
    rank = nn.numerical_rank(spectrum, table.shape[2]).amin(dim=1)
    made = seen.updates
    inside = torch.arange(seen.odds.shape[1], device=made.device)[None] <= made[:, None]
    return {
        "rank_share": (rank / study.filters).to(spectrum),
        **_memory(experiment, seen),
        **_fresh(study, experiment, seen),
        "log_kappa": torch.where(inside, seen.log_kappa(), -torch.inf).amax(dim=1),
        "updates": made,
        "train_loss": seen.loss()[:, -1],
    }


def _memory(experiment: Trial, seen: Watched) -> dict[str, Tensor]:
    response = nn.noise_response(seen.filters, experiment.samples)
    found = nn.memorisation(response, experiment.samples.one_hot())
    return {
        "memory_own": found.own.mean(dim=1),
        "memory_other": found.other.mean(dim=1),
        "memory_worst": found.worst.amin(dim=1),
        "memory_pairs": found.pairs.mean(dim=1),
    }


def _fresh(study: ClassNoiseExperiment, experiment: Trial, seen: Watched) -> dict[str, Tensor]:
    """Active filters and responses on fresh noise."""
    table = experiment.data.eigenvalues
    count = study.test_samples

    def measure(filters: Tensor, samples: PatchSamples) -> Tensor:
        response = nn.noise_response(filters, samples)
        active = nn.active_share(filters, samples)
        length = nn.equivalent_length(filters, samples, table)
        return torch.cat([torch.stack([active, length], dim=1), response], dim=1)

    measured = nn.by_chunks(seen.filters, experiment.fresh, count, measure)
    active, length, response = measured[:, 0], measured[:, 1], measured[:, 2:]
    labels = _fresh_labels(experiment, count)
    runs = len(seen.filters)
    index = labels.expand(runs, -1)
    own = response.gather(1, index[:, None])[:, 0]
    n = len(experiment.samples)
    # Lemma 6 for length 1, (run, y, j): eta is inside ``stored``
    order = benign.tail_response_order(
        experiment.spectrum.gram().cpu(), seen.stored.cpu(), 1.0, n, 1.0, study.filters, study.scale
    )
    unit = torch.as_tensor(order).to(response)
    mine = torch.diagonal(unit, dim1=1, dim2=2).gather(1, index)
    ratio = torch.where(length > 0, own / length, 0.0)  # L of Definition 1
    tail = ratio >= LONG_TAILED
    level = torch.where(tail, length / mine, torch.nan)
    wanted = torch.tensor(QUANTILES, dtype=level.dtype, device=level.device)
    spread = torch.nanquantile(level, wanted, dim=1).transpose(0, 1)
    by_label = unit[torch.arange(runs, device=index.device)[:, None], index]  # (run, n, j)
    others = (response.transpose(1, 2) / by_label).scatter(2, index[:, :, None], 0.0)
    mean_size = math.sqrt(2 / math.pi)  # E|zeta_1| of a Gaussian
    enough = benign.active_floor(study.filters) / study.filters
    return {
        "active_least": active.amin(dim=1),
        "active_enough": (active >= enough).to(active).mean(dim=1),
        "tail_own": spread,
        "tail_other": others.sum(dim=2).mean(dim=1) / (study.classes - 1) / mean_size,
    }


def _fresh_labels(experiment: Trial, count: int) -> Tensor:
    """Labels of the fresh samples, (1, count): those of every chunk begin anew."""
    whole, rest = divmod(count, CHUNK)
    chunks = [experiment.test_labels(CHUNK)] * whole
    return torch.cat([*chunks, experiment.test_labels(rest)], dim=1)
