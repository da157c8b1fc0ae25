"""Both stages of training (003 Lemmas 1 and 2), read off the odds of every sample in every step.

``odds``: (run, step, n), log((1 - logit_y)/logit_y) before the first update, after it, and so on.
A sample's loss is softplus(odds).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from rarefy.measure.statistics import OMEGA

TAIL_POINTS = 12
TAIL_FROM = 0.25
"""Slopes of stage 2 are fitted to so many points, from this share of its length on."""
LEAST_STAGE_2 = 10
"""A slope needs a stage 2 at least so many times as long as stage 1, and as many steps."""


def losses(odds: Tensor) -> Tensor:
    return softplus(odds, threshold=50.0)  # beyond, log(1 + e^x) is x to the last place


@dataclass(frozen=True)
class StageOne:
    """rate: log of the loss per step, (run, n), averaged while a sample's loss is above 1/4 of
    what it was (Theta(1)); bend: rate while the loss falls from a half to a quarter over that from
    the whole to a half, (run, n), 1 for a geometric fall, NaN for samples that did not come so
    far."""

    rate: Tensor
    bend: Tensor


def stage_1(odds: Tensor) -> StageOne:
    loss = losses(odds)
    log_fall = (loss[:, :1] / loss).log()
    end, left = _first(loss <= OMEGA * loss[:, :1])  # the first step in stage 2
    last = log_fall.gather(1, end[:, None])[:, 0]
    half, _ = _first(loss <= OMEGA**0.5 * loss[:, :1])
    middle = log_fall.gather(1, half[:, None])[:, 0]
    bend = (last - middle) * half / (middle * (end - half))
    return StageOne(last / end, torch.where(left & (end > half) & (half > 0), bend, torch.nan))


def _first(there: Tensor) -> tuple[Tensor, Tensor]:
    """First step at which it is so, the last step if none, and whether there is one: (run, n)."""
    some = there.any(dim=1)
    return torch.where(some, there.to(torch.int8).argmax(dim=1), there.shape[1] - 1), some


@dataclass(frozen=True)
class StageTwo:
    """average: mean loss since T_0 and bound: Lemma 2's, (run, step), NaN before T_0; worst:
    largest quotient of the two; slopes of the average and of the loss against the steps since T_0,
    logarithms both: (run,), NaN where stage 2 is too short."""

    average: Tensor
    bound: Tensor
    worst: Tensor
    average_slope: Tensor
    loss_slope: Tensor


def stage_2(loss: Tensor, start: Tensor, distance: Tensor, lr: Tensor, epsilon: float) -> StageTwo:
    """loss: (run, step); start: T_0, (run,), -1 where it never came; distance: |W(T_0) -
    W*|_F, (run,); lr: (run,). Lemma 2 (80): the mean loss of the steps since T_0 is at most
    |W(T_0) - W*|_F^2/(eta steps) + eps/2."""
    steps = torch.arange(loss.shape[1], device=loss.device)
    since = steps[None, :] - start[:, None] + 1
    inside = (since >= 1) & (start >= 0)[:, None]
    total = torch.where(inside, loss, 0.0).to(torch.float64).cumsum(dim=1)
    average = torch.where(inside, total / since, torch.nan)
    bound = distance.to(torch.float64)[:, None] ** 2 / (lr.to(torch.float64)[:, None] * since)
    bound = torch.where(inside, bound + epsilon / 2, torch.nan)
    quotient = torch.where(inside, average / bound, -torch.inf).amax(dim=1)
    worst = torch.where(start >= 0, quotient, torch.nan)
    length = loss.shape[1] - start
    enough = (start >= 0) & (length >= LEAST_STAGE_2 * torch.clamp(start, min=1))
    slopes = [
        torch.where(enough, _tail_slope(values.to(torch.float64), start), torch.nan)
        for values in (average, loss)
    ]
    return StageTwo(average, bound, worst, *slopes)


def _tail_slope(values: Tensor, start: Tensor) -> Tensor:
    """Slope of log values against log steps since T_0, over the last part of stage 2: (run,)."""
    first = torch.clamp(start, min=0).to(torch.float64)
    length = values.shape[1] - first
    share = torch.linspace(0, 1, TAIL_POINTS, dtype=torch.float64, device=values.device)
    since = length[:, None] * TAIL_FROM ** (1 - share)[None, :]  # evenly spaced in the logarithm
    place = (first[:, None] + since - 1).floor().long().clamp(min=0)
    x = (place - first[:, None] + 1).log()
    y = values.gather(1, place).log()
    x, y = x - x.mean(dim=1, keepdim=True), y - y.mean(dim=1, keepdim=True)
    return (x * y).sum(dim=1) / x.square().sum(dim=1)
