"""Looks at every step of a run and keeps what the stage claims need."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rarefy.measure.alignment import growth_factor, outside, projections
from rarefy.measure.neurons import dominant, lucky, ordinary
from rarefy.studies.contrastive.setting import Trial, group_means
from rarefy.theory.contrastive import lucky_floor
from rarefy.train.descent import State

GAMMA = 0.001


class StageWatch:
    """Called after every update. Snapshots are taken run by run, at each run's own T1 and T2."""

    def __init__(self, trial: Trial, eps_min: Tensor, majority: int, stage_1_steps: int) -> None:
        self.trial, self.atoms = trial, trial.data.dictionary
        self.majority, self.stage_1_steps = majority, stage_1_steps
        weights = trial.weights
        self.start = projections(weights, self.atoms)
        self.start_outside = outside(weights, self.atoms)
        self.member = ordinary(self.start, eps_min, GAMMA)
        self.lucky = lucky(self.start, eps_min, GAMMA)
        nan = torch.full_like(self.start, torch.nan)
        self.along_t1, self.along_t2 = nan, nan.clone()
        self.norm_t1 = torch.full_like(self.start[:, :, 0], torch.nan)
        self.norm_t2, self.peak_t1, self.bias_t2 = (self.norm_t1.clone() for _ in range(3))
        self.factor = torch.full_like(trial.data.eps, torch.nan)
        self.outside_factor = torch.full_like(eps_min, torch.nan)
        self.outside_energy = self.outside_factor.clone()

    def __call__(self, state: State) -> None:
        weights, bias = state.parameters["weights"], self.trial.bias
        if state.step == self.stage_1_steps:
            self._measure_growth(weights)
        at_t1, at_t2 = bias.t1 == state.step, bias.t2 == state.step
        if bool(at_t1.any() | at_t2.any()):
            self._snapshot(weights, at_t1, at_t2)

    def _measure_growth(self, weights: Tensor) -> None:
        self.factor = growth_factor(self.start, projections(weights, self.atoms), dim=1)
        now = outside(weights, self.atoms)
        self.outside_factor = growth_factor(self.start_outside, now, dim=(1, 2))
        energy = self.start_outside.square().sum(dim=(1, 2))
        self.outside_energy = now.square().sum(dim=(1, 2)) / energy

    def _snapshot(self, weights: Tensor, at_t1: Tensor, at_t2: Tensor) -> None:
        along, norm = projections(weights, self.atoms), weights.norm(dim=2)
        self.along_t1 = torch.where(at_t1[:, None, None], along, self.along_t1)
        self.along_t2 = torch.where(at_t2[:, None, None], along, self.along_t2)
        self.norm_t1 = torch.where(at_t1[:, None], norm, self.norm_t1)
        self.norm_t2 = torch.where(at_t2[:, None], norm, self.norm_t2)
        self.bias_t2 = torch.where(at_t2[:, None], self.trial.bias.value, self.bias_t2)
        # M is generic, so the ambient coordinates are as good a basis of the complement as any
        peak = outside(weights, self.atoms).abs().amax(dim=2)
        self.peak_t1 = torch.where(at_t1[:, None], peak, self.peak_t1)

    def at_stages(self) -> dict[str, Tensor]:
        """The numbers behind Theorems C.1 and D.1, one set per run."""
        d, d1 = self.start.shape[2], self.atoms.shape[1]
        bias, eps = self.trial.bias, self.trial.data.eps
        t1_seen, t2_seen = bias.t1 >= 0, bias.t2 >= 0
        relative = self.along_t1.abs() / self.norm_t1[:, :, None]
        threshold = math.sqrt(2 * math.log(d) / d)
        high = relative >= math.sqrt(1 + GAMMA) * threshold  # (36)
        weaker = relative >= math.sqrt(1 + GAMMA) * threshold / math.sqrt(2)  # as proved, (46)
        low = relative <= math.sqrt(1 - GAMMA) * threshold  # (37)
        many = (relative >= math.log(d) ** 0.25 / math.sqrt(d)).sum(dim=2)  # (38)
        floor = lucky_floor(eps)[:, None, :] * self.norm_t1[:, :, None].square()  # eps_max = 1
        reached = self.along_t2.square() >= floor
        cosines = (self.along_t2 / self.norm_t2[:, :, None]).square()
        pure = dominant(cosines.nan_to_num(0.0))
        weight = self.along_t2.abs()
        top_ordinary = torch.where(self.member, weight, 0.0).amax(dim=1)
        top_lucky = torch.where(self.lucky, weight, torch.nan).nan_to_num(-1.0).amax(dim=1)
        spread = torch.where(top_lucky > 0, top_ordinary / top_lucky, torch.nan)
        bound = d / (2 * math.sqrt(math.log(d)))
        return {
            "stage_1_factor": group_means(self.factor, self.majority),
            "outside_factor": self.outside_factor,
            "outside_energy": self.outside_energy,
            "t1": bias.t1,
            "t2": bias.t2,
            "lucky_at_t1": _tally(self.lucky, high, weaker, t1_seen),
            "others_at_t1": _tally(~self.member, low, low, t1_seen),
            "many_at_t1": torch.where(t1_seen, (many > bound).to(eps.dtype).mean(dim=1), torch.nan),
            "peak_at_t1": (self.peak_t1 / (math.sqrt(math.log(d) / d1) * self.norm_t1)).mean(dim=1),
            "lucky_at_t2": _tally(self.lucky, reached, reached, t2_seen),
            "pure_at_t2": _tally(pure, reached, reached, t2_seen),
            "ordinary_over_lucky": spread.nanmean(dim=1),
            "bias_at_t2": (self.bias_t2 * math.sqrt(d) / self.norm_t2).amin(dim=1),
        }


def _tally(cases: Tensor, passed: Tensor, weaker: Tensor, seen: Tensor) -> Tensor:
    """Number of cases, of passes and of passes of the weaker test: (run, 3); 0 before the stage."""
    counts = [cases, cases & passed, cases & weaker]
    total = torch.stack([c.sum(dim=(1, 2)) for c in counts], dim=1)
    return torch.where(seen[:, None], total, 0).to(torch.float32)
