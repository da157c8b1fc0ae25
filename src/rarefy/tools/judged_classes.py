"""Networks of ``rarefy train`` judged per class: reports, what they are compared with that costs
nothing, warnings, and the sentence at the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rarefy.measure.class_report import (
    COLUMNS,
    ENOUGH,
    ClassReport,
    balanced_accuracy,
    balanced_interval,
    class_report,
)
from rarefy.tools.decision import CANNOT_TELL, NONE, Decision, beats_trivial, decide

DENSE = "dense"
PIXELS = "a logistic regression on pixels"


class Judged(NamedTuple):
    """One network in all seeds, at one noise in training and one in the test."""

    noise: float
    test_noise: float
    keep: float
    confusion: NDArray[np.float64]
    """(seed, true class, answered class); NaN where a training is missing or failed."""
    report: ClassReport

    @property
    def name(self) -> str:
        return name_of(self.keep)


def name_of(keep: float) -> str:
    return DENSE if keep == 1 else f"keep {keep:g}"


def judged(results: xr.Dataset) -> Iterator[Judged]:
    """Every network that has finished in at least one seed: by noise, test noise and keep, dense
    first."""
    plain = results.isel(update=0, noise_resampling=0)
    for noise in plain["noise"].values:
        for place, level in enumerate(plain["test_noise"].values):
            for keep in sorted(plain["keep"].values, reverse=True):
                at = plain.sel(noise=noise, keep=keep)
                confusion = at["confusion"].isel(test_noise=place).transpose("seed", ...).values
                if np.isfinite(confusion).all(axis=(1, 2)).any():
                    report = class_report(confusion, *counts_of(results))
                    yield Judged(float(noise), float(level), float(keep), confusion, report)


def counts_of(results: xr.Dataset) -> tuple[list[int], list[str]]:
    """Training images of each class, and their names."""
    counts = _any_cell(results["train_images"], 1)
    return counts.astype(int).tolist(), results["true_class"].values.tolist()


def baselines(results: xr.Dataset) -> dict[str, dict[str, float]]:
    """What needs no network: its name, accuracy and balanced accuracy in per cent."""
    confusion = _any_cell(results["pixel_confusion"], 2)
    found = class_report(confusion, *counts_of(results)).summary
    return {
        f"always answering {found.majority_class!r}": {
            "accuracy": found.majority_accuracy,
            "balanced_accuracy": 100 / int((confusion.sum(axis=1) > 0).sum()),
        },
        PIXELS: {"accuracy": found.accuracy, "balanced_accuracy": found.balanced_accuracy},
    }


def class_frame(results: xr.Dataset) -> pd.DataFrame:
    """``COLUMNS`` of every network, one row per class, behind its noise, test noise and keep."""
    parts = []
    for one in judged(results):
        where = {"noise": one.noise, "test_noise": one.test_noise, "keep": one.keep}
        parts.append(one.report.table.assign(**where))
    columns = ["noise", "test_noise", "keep", *COLUMNS]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def first_level(results: xr.Dataset) -> list[Judged]:
    """The networks that tables and sentence are about: at the first noise in training and test."""
    every = list(judged(results))
    return [one for one in every if (one.noise, one.test_noise) == every[0][:2]]


def warnings_of(networks: list[Judged]) -> list[str]:
    """Each once, with the networks it is about where it is not about all."""
    said: dict[str, list[str]] = {}
    for one in networks:
        for words in one.report.warnings:
            said.setdefault(words, []).append(one.name)
    return [
        words if len(names) == len(networks) else f"{', '.join(names)}: {words}"
        for words, names in said.items()
    ]


def decision(results: xr.Dataset) -> Decision:
    """The sentence at the end, by balanced accuracy: first whether anything was learnt at all, then
    dense against each keep."""
    networks = first_level(results)
    if not networks or networks[0].name != DENSE:
        return Decision(CANNOT_TELL, None, "cannot tell: no dense training is finished yet")
    trivial = {name: one["balanced_accuracy"] for name, one in baselines(results).items()}
    images = int(networks[0].report.table["n"].sum())
    learnt = beats_trivial(
        {one.name: balanced_interval(one.confusion) for one in networks}, trivial, images
    )
    if learnt is not None and learnt.kind == NONE:
        return learnt
    scores = {one.name: balanced_per_seed(one.confusion) for one in networks}
    found = decide(scores, DENSE, cheapest_first=[one.name for one in networks[:0:-1]])
    rarest = networks[0].report.table.query("n > 0").sort_values("n").iloc[0]
    doubts = [] if learnt is None else [f"and {learnt.sentence}"]
    if rarest["n"] < ENOUGH:
        few = "1 test image" if rarest["n"] == 1 else f"{rarest['n']} test images"
        doubts.append(f"{rarest['class']!r} has {few}, other ones may say otherwise")
    return replace(found, sentence="; ".join([found.sentence, *doubts]))


def balanced_per_seed(confusion: NDArray[np.float64]) -> NDArray[np.float64]:
    """In per cent; NaN where a seed is missing."""
    found = np.full(len(confusion), np.nan)
    for seed, one in enumerate(confusion):
        if np.isfinite(one).all():
            found[seed] = balanced_accuracy(one)[0]
    return found


def _any_cell(values: xr.DataArray, own: int) -> NDArray[np.float64]:
    """Of the first finished cell: all have the same; ``own``: how many dimensions behind cells."""
    flat = values.values.reshape(-1, *values.shape[values.ndim - own :])
    done = np.isfinite(flat).reshape(len(flat), -1).all(axis=1)
    return np.asarray(flat[done.argmax()], dtype=np.float64)
