"""Tables of S8: accuracies and losses over the keep ratio, and what chance could have done."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.measure.estimates import Interval, mean_interval
from rarefy.studies.sparse.advice import advice_table
from rarefy.studies.sparse.pairs import FEWEST, LEVEL, NONE, asked_at, is_apart, number, said
from rarefy.studies.sparse.readings import (
    AXES,
    POINTS,
    Paired,
    at_test_noise,
    readings,
    without_noise,
)
from rarefy.tools.sparse_experiment import SparseTraining


def tables(experiment: SparseTraining, results: xr.Dataset) -> list[Table]:
    return [_accuracies(experiment, results), *advice_table(results, with_noise=False)]


def _accuracies(experiment: SparseTraining, results: xr.Dataset) -> Table:
    named = len(list(readings(results, AXES))) > 1
    asked = results["test_noise"].values.astype(np.float64)
    noisy = float(asked.max())  # with noise in the test, if that was asked at all
    rows, judged = [], []
    for words, part in readings(results, AXES):
        clean, hard = without_noise(part), at_test_noise(part, noisy)
        for place, keep in enumerate(clean.keeps):
            row: list[object] = [words] if named else []
            row += [f"{keep:g}", _train(part, keep, "epoch_accuracy", POINTS, ".2f")]
            row.append(_train(part, keep, "epoch_loss", 1.0, ".4f"))
            for paired in (clean, hard) if len(asked) > 1 else (clean,):
                difference = mean_interval(paired.difference(keep)[:, 0])
                thinned = not np.isclose(keep, 1)
                row.append(_accuracy(paired, place))
                row.append(said(difference) if thinned else NONE)
                if thinned:
                    judged.append(difference)
            row.append(int(np.isfinite(clean.accuracy[:, 0, place]).sum()))
            rows.append(row)
    first = float(asked[np.abs(asked).argmin()])
    tests = [asked_at(first)] + ([asked_at(noisy)] if len(asked) > 1 else [])
    columns = ["reading"] if named else []
    columns += ["keep", "training accuracy, %", "training loss"]
    for words in tests:
        columns += [f"test accuracy {words}, %", f"less dense {words}"]
    caption = (
        "Means over n seeds; training accuracy and loss over the last epoch, with the noise as it "
        "was shown. Differences from dense in points, taken seed by seed, with their 95 % "
        f"interval; {_by_chance(judged)}. All on the same test images: another set of images "
        "would move all of a column."
    )
    return Table(
        "kept", f"Accuracy over the share of weights kept, {experiment.data}", caption,
        [*columns, "n"], rows,
    )  # fmt: skip


def _accuracy(paired: Paired, place: int) -> str:
    samples = paired.accuracy[:, 0, place]
    return number(mean_interval(samples).mean) + ("†" if np.isfinite(samples).sum() == 1 else "")


def _train(part: xr.Dataset, keep: float, name: str, unit: float, form: str) -> str:
    last = part[name].isel(epoch=-1).sel(keep=keep)
    return number(mean_interval(unit * last.values).mean, form)


def _by_chance(differences: list[Interval]) -> str:
    """How many intervals exclude 0, and how many would if nothing made a difference."""
    known = [each for each in differences if each.n >= FEWEST]
    apart = sum(is_apart(each) for each in known)
    text = (
        f"a star: 0 is outside, as in {apart} of {len(known)}, where chance alone would give "
        f"{(1 - LEVEL) * len(known):.1f}"
    )
    alone = any(each.n == 1 for each in differences)
    return text + ("; a dagger: one seed, no interval" if alone else "")
