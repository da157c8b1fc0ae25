"""Tables of S8: accuracies and losses over the keep ratio, and what chance could have done."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.measure.estimates import mean_interval
from rarefy.studies.sparse.pairs import NONE, asked_at, number, said
from rarefy.studies.sparse.readings import (
    AXES,
    POINTS,
    at_test_noise,
    readings,
    without_noise,
)
from rarefy.tools.sparse_experiment import SparseTraining


def tables(experiment: SparseTraining, results: xr.Dataset) -> list[Table]:
    named = len(list(readings(results, AXES))) > 1
    asked = results["test_noise"].values.astype(np.float64)
    noisy = float(asked.max())  # with noise in the test, if that was asked at all
    rows = []
    for words, part in readings(results, AXES):
        clean, hard = without_noise(part), at_test_noise(part, noisy)
        for place, keep in enumerate(clean.keeps):
            row: list[object] = [words] if named else []
            row += [f"{keep:g}", _train(part, keep, "epoch_accuracy", POINTS, ".2f")]
            row.append(_train(part, keep, "epoch_loss", 1.0, ".4f"))
            for paired in (clean, hard) if len(asked) > 1 else (clean,):
                difference = mean_interval(paired.difference(keep)[:, 0])
                row.append(number(mean_interval(paired.accuracy[:, 0, place]).mean))
                row.append(NONE if np.isclose(keep, 1) else said(difference))
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
        "interval (a star: 0 is outside, as in one of twenty by chance; a dagger: one seed)."
    )
    title = f"Accuracy over the share of weights kept, {experiment.data}"
    return [Table("kept", title, caption, [*columns, "n"], rows)]


def _train(part: xr.Dataset, keep: float, name: str, unit: float, form: str) -> str:
    last = part[name].isel(epoch=-1).sel(keep=keep)
    return number(mean_interval(unit * last.values).mean, form)
