"""Would anything rescue generalisation where dense training fails? Rival minus TopK, by seed,
both at the knob that the validation set prefers, at the loudest noise.

002 compares with dense training only, and Theorem 4.4 does not speak here (SNR is 14/n): the others
are what a remedy that knows nothing of signals would score.
"""

from __future__ import annotations

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming
from rarefy.studies.topk.baselines.arms import NAMES
from rarefy.studies.topk.baselines.choice import choices
from rarefy.studies.topk.baselines.experiment import BaselinesExperiment
from rarefy.studies.topk.phase.experiment import PRIMARY
from rarefy.theory.topk import noise_threshold_order, snr

RIVALS = {"dense": "S4", "random": "", "decay": "", "early": ""}
"""What TopK is compared with, and the claim it belongs to."""


def verdicts(experiment: BaselinesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    chosen = choices(experiment, results)
    loudest = int(results["sigma"].values.argmax())
    sigma = float(results["sigma"].values[loudest])
    times = snr(experiment.mu, sigma, experiment.d) / noise_threshold_order(experiment.samples)
    named = Naming(experiment, scale, after=f", sigma_p={sigma:g}, {experiment.setting}")
    found = []
    for rival, claim in RIVALS.items():
        if rival not in chosen or PRIMARY not in chosen:
            continue
        losses = [chosen[each].loss[:, loudest] for each in (rival, PRIMARY)]
        note = "test loss {:.3g} and {:.3g}".format(*(st.finite_mean(loss) for loss in losses))
        name = named(claim, f"{NAMES[rival]}: test loss minus TopK's")
        verdict = st.judge_difference(name, losses[0] - losses[1], "positive", note=note)
        unmet = f"SNR is {times:.2g}/n" if claim and times > 1 else ""
        found.append(undecided(verdict, unmet))
    return found
