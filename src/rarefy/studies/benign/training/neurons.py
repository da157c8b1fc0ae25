"""What ``benign-training`` measures at the end of a training: Lemmas 3-7, decisions in parts."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rarefy.data.patches import PatchSamples
from rarefy.data.tail_noise import stratified
from rarefy.measure import noise_neurons as nn
from rarefy.measure.decisions import decisions
from rarefy.measure.generalisation import CHUNK
from rarefy.measure.statistics import BIG_O
from rarefy.studies.benign.conditions import initial_std
from rarefy.studies.benign.setting import ClassNoiseExperiment
from rarefy.studies.benign.training.run import Watched
from rarefy.studies.benign.trial import Trial
from rarefy.theory import benign

BINS = 10
"""Of the histogram of active shares."""
INDICES = 24
"""Places of the drawn spectrum, from the largest singular value to the smallest."""
QUANTILES = (0.05, 0.5, 0.95)
LONG_TAILED = 1.0
"""Smallest L of Definition 1 at which a fresh sample counts as long-tailed here."""
MIDDLE, TAIL = 1.0, 2.0
"""|zeta| along the special direction: typical below the first, long-tailed above the second."""
KINDS = ("typical", "long-tailed")
PARTS = ("start", "features", "own", "others")
"""Of a margin: initial weights, learnt features, training noise of the own and of other classes."""
SPECIAL_EDGES = tuple(-3.0 + 0.5 * i for i in range(13))
PER_KIND = 10
"""Test samples per class and kind whose decisions are split."""


def end_measures(
    study: ClassNoiseExperiment, experiment: Trial, seen: Watched
) -> dict[str, Tensor]:
    """``study`` is the one at the case: its classes, d and filters are those of the experiment."""
    found = _singular(study, experiment, seen)
    found |= _memory(experiment, seen)
    found |= _fresh(study, experiment, seen)
    made = seen.updates
    inside = torch.arange(seen.odds.shape[1], device=made.device)[None] <= made[:, None]
    found["log_kappa"] = torch.where(inside, seen.log_kappa(), -torch.inf).amax(dim=1)
    found["updates"] = made
    found["train_loss"] = seen.loss()[:, -1]
    return found


def _singular(study: ClassNoiseExperiment, experiment: Trial, seen: Watched) -> dict[str, Tensor]:
    table, n = experiment.data.eigenvalues, len(experiment.samples)
    before = nn.noise_spectrum(experiment.initial, table).expand(len(seen.filters), -1, -1)
    after = nn.noise_spectrum(seen.filters, table)
    m = study.filters
    rank = int(experiment.spectrum.rank().min())
    number = benign.rank_in_proof(m, study.d, rank, n)
    floor = benign.smallest_singular_floor(m, initial_std(study))
    order = math.sqrt(m) * torch.log(seen.updates.to(after))  # lambda_1(W_j A_j) = O(sqrt(m) log T)
    spots = torch.linspace(0, after.shape[2] - 1, INDICES).round().long()
    both = torch.stack([before[:, 0], after[:, 0]], dim=1)
    return {
        "rank_share": (nn.numerical_rank(after, table.shape[2]).amin(dim=1) / m).to(after),
        "largest_over_order": after[:, :, 0].amax(dim=1) / order,
        "numbered_over_floor": nn.singular_value(after, number).amin(dim=1) / floor,
        "smallest_over_floor": after[:, :, -1].amin(dim=1) / floor,
        "spectrum": both[:, :, spots.to(both.device)],
    }


def _memory(experiment: Trial, seen: Watched) -> dict[str, Tensor]:
    samples = experiment.samples
    response = nn.noise_response(seen.filters, samples)
    one_hot = samples.one_hot()
    plain, strong = nn.memorisation(response, one_hot), nn.memorisation(response, one_hot, BIG_O)
    start = nn.own_responses(experiment.initial, samples)
    return {
        "memory_own": plain.own.mean(dim=1),
        "memory_other": plain.other.mean(dim=1),
        "memory_worst": plain.worst.amin(dim=1),
        "memory_pairs": plain.pairs.mean(dim=1),
        "memory_pairs_strong": strong.pairs.mean(dim=1),
        "still_active": nn.still_active(start, nn.own_responses(seen.filters, samples)),
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
    at_start = nn.by_chunks(experiment.initial, experiment.fresh, count, nn.active_share)
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
        "active": torch.stack([_histogram(at_start), _histogram(active)], dim=1),
        "active_least": active.amin(dim=1),
        "active_mean": active.mean(dim=1),
        "active_enough": (active >= enough).to(active).mean(dim=1),
        "tail_share": tail.to(active).mean(dim=1),
        "tail_own": spread,
        "tail_other": others.sum(dim=2).mean(dim=1) / (study.classes - 1) / mean_size,
    }


def _fresh_labels(experiment: Trial, count: int) -> Tensor:
    """Labels of the fresh samples, (1, count): those of every chunk begin anew."""
    whole, rest = divmod(count, CHUNK)
    chunks = [experiment.test_labels(CHUNK)] * whole
    return torch.cat([*chunks, experiment.test_labels(rest)], dim=1)


def _histogram(share: Tensor) -> Tensor:
    """Share of the samples in each of ``BINS`` equal bins of [0, 1]: (run, bin)."""
    place = (share * BINS).floor().clamp(max=BINS - 1).long()
    counts = torch.zeros(len(share), BINS, dtype=share.dtype, device=share.device)
    counts.scatter_add_(1, place, torch.ones_like(share))
    return counts / share.shape[1]


def decision_measures(
    study: ClassNoiseExperiment, experiment: Trial, seen: Watched
) -> dict[str, Tensor]:
    """Margins of typical and long-tailed fresh samples in parts, and what a training sample of
    their class adds, by its own place along the special direction."""
    assert seen.coefficients is not None
    labels = experiment.test_labels(3 * PER_KIND * study.classes)
    fresh = stratified(experiment.data, experiment.draws, labels, (MIDDLE, TAIL), "decision")
    both, scale = (experiment.samples, fresh.samples), experiment.scale
    split = decisions(experiment.initial, seen.coefficients, *both, scale, seen.filters)
    margin = split.margin(fresh.samples.labels)
    runs = len(seen.filters)
    one_hot = experiment.samples.one_hot().to(margin.noise).expand(runs, -1, -1)
    index = labels.expand(runs, -1)
    stored = margin.by_class(one_hot)
    own = stored.gather(2, index[:, :, None])[:, :, 0]
    others = stored.sum(dim=2) - own
    parts = torch.stack([margin.start, margin.features, own, others], dim=2)  # (run, sample, part)
    right = (margin.total > 0).to(parts)
    kinds = [fresh.stratum.expand(runs, -1) == which for which in (0, 2)]
    return {
        "decision": torch.stack([_mean_where(parts, kind[:, :, None]) for kind in kinds], dim=1),
        "decision_right": torch.stack([_mean_where(right, kind) for kind in kinds], dim=1),
        "influence": _influence(experiment, margin.noise, fresh.special, kinds, index),
    }


def _influence(
    experiment: Trial, noise: Tensor, special: Tensor, kinds: list[Tensor], index: Tensor
) -> Tensor:
    """Mean part of a training sample of the same class by its zeta along the special direction,
    counted positive on the fresh sample's side: (run, kind, bin)."""
    runs = len(noise)
    data, samples = experiment.data, experiment.samples
    axis = data.special_axes().to(index.device)[samples.labels]  # (group, n)
    groups = len(samples.noise)
    along = samples.noise.gather(2, axis.expand(groups, -1)[:, :, None])[:, :, 0]
    table = data.eigenvalues.to(along)
    row = torch.arange(len(table), device=axis.device)[:, None]
    size = table[row, samples.labels.expand(len(table), -1), axis.expand(len(table), -1)]
    zeta = (along / size).expand(runs, -1)  # (run, n)
    side = torch.sign(special).expand(runs, -1)
    place = zeta[:, None, :] * side[:, :, None]  # (run, sample, n)
    same = index[:, :, None] == samples.labels.expand(runs, -1)[:, None, :]
    edges = torch.tensor(SPECIAL_EDGES, dtype=place.dtype, device=place.device)
    bins = (torch.bucketize(place.contiguous(), edges) - 1).clamp(0, len(SPECIAL_EDGES) - 2)
    found = [
        _mean_where(noise.flatten(1), (same & kind[:, :, None] & (bins == b)).flatten(1))
        for kind in kinds
        for b in range(len(SPECIAL_EDGES) - 1)
    ]
    return torch.stack(found, dim=1).unflatten(1, (len(kinds), -1))


def _mean_where(values: Tensor, there: Tensor) -> Tensor:
    """Mean over the second dimension of the values that are there; NaN where none is."""
    there = there.expand_as(values)
    return torch.where(there, values, 0.0).sum(dim=1) / there.sum(dim=1)
