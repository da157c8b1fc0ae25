"""Pre-training with some labels, then fine-tuning on the coarse question (004 Sec. 6): how it is
run, and the errors before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
import xarray as xr
from torch import Tensor

from rarefy.core.contracts import NONFINITE_STEP, Cells, Context
from rarefy.core.picture import Table
from rarefy.data.granularity_labels import Labels
from rarefy.studies.granularity.common import MAIN_MEASURES, SMALL, learnt, named, tests
from rarefy.studies.granularity.experiment import GranularityExperiment
from rarefy.studies.granularity.setting import setting_table

TUNED = {
    "tuned_easy_error": "share of fresh easy samples on the wrong side, after fine-tuning",
    "tuned_hard_error": "share of fresh hard samples on the wrong side, after fine-tuning",
}
COUNTS = SMALL
"""A gain or a loss of error counts from this on, one test sample in twenty. The same rule for all
comparisons of labels: paired by seed, differences too small to matter would be certain as well."""
STAGES = ("before", "after")
"""Of fine-tuning; the paper compares networks after it."""


def learn_and_tune(
    study: GranularityExperiment,
    cells: Cells,
    context: Context,
    labels: Labels,
    samples: int,
    reads: Sequence[int],
    tune_steps: int,
) -> dict[str, Tensor]:
    """``MAIN_MEASURES`` (run, read) of training with these labels, ``TUNED`` (run,) of training
    on with clean coarse ones, and the update at which a run was lost (run,).

    Fine-tuning has ``study.batch`` fresh samples an update whatever the stored set is: all networks
    of a seed are tuned with the same samples.
    """
    experiment = study.setup(cells, context, labels, samples)
    before = learnt(study, experiment, context, reads)
    after = experiment.fine_tune(
        before.trajectory.parameters,
        context,
        tune_steps,
        {"tests": tests(experiment, study.test_each)},
        size=study.batch,
    )
    seen = named(after.records["tests"])
    tuned = {name: seen[name.removeprefix("tuned_")][:, -1] for name in TUNED}
    found = before.outputs(MAIN_MEASURES) | tuned
    lost, later = found[NONFINITE_STEP.name], after.nonfinite_step
    later = torch.where(later >= 0, later + study.steps, later)
    return found | {NONFINITE_STEP.name: torch.where(lost >= 0, lost, later)}


def error_of(results: xr.Dataset, kind: str, stage: str) -> xr.DataArray:
    """Error on "easy", "hard" or "mixed" samples at the end of a stage.

    Mixed: a test set of which half is hard. On hard samples alone a coin would do better than a
    network that the traces of the other side mislead; where hard samples are rarer than half, finer
    labels gain less.
    """
    if kind == "mixed":
        return (error_of(results, "easy", stage) + error_of(results, "hard", stage)) / 2
    if stage == "after":
        return results[f"tuned_{kind}_error"]
    return results[f"{kind}_error"].isel(read=-1)


def tuned_setting(study: GranularityExperiment, tune_steps: int) -> Table:
    """The table of the setting, with fine-tuning."""
    table = setting_table(study)
    row = ("tune_steps", "updates of fine-tuning, with fresh easy samples", str(tune_steps))
    return replace(table, rows=[*table.rows, row])
