"""Where pruning helps: its benefit over start time and share, for three update rules."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import xarray as xr

from rarefy.core.contracts import Study, Verdict
from rarefy.core.picture import Picture, Table
from rarefy.measure.statistics import judge_difference
from rarefy.studies.contrastive.pruned_pairs import RESTLESS
from rarefy.studies.contrastive.pruning_map.experiment import (
    CLAIMS,
    QUANTITIES,
    PruningMapExperiment,
    gains,
)
from rarefy.studies.contrastive.setting import GROUPS
from rarefy.studies.contrastive.words import bias_name


class ContrastPruningMap(PruningMapExperiment, Study):
    """Every share and start beside the same run without pruning, from random weights."""

    name: ClassVar[str] = "contrast-pruning-map"
    title: ClassVar[str] = "A map of when, and how much, to prune"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Thm 3.2(c), Remark 3; Thm 3.2 end"
    claims: ClassVar[tuple[str, ...]] = ("P2", "P3")
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "000 proves its gain for pruning that begins at T4 and leaves out no more neurons than "
        "the rare feature has (Theorem 3.2), while Algorithm 1 prunes from the first step and its "
        "experiments do too. The map covers both and what lies between, for Algorithm 1 (dense) "
        "and two other ways to treat what is left out: not updated (masked), set to zero "
        "(project)."
    )

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        """The best place of the map is chosen on one half of the seeds, judged on the other; among
        shares the theorem allows, and places at which the runs of the first half come to rest."""
        found = []
        energy = results["energy"].sel(group="majority", drop=True)
        calm = energy <= RESTLESS * energy.sel(alpha=0.0, drop=True)  # False for a lost run
        calm = calm.isel(seed=slice(0, None, 2))
        for bias in results["bias_scale"].values:
            for rule in results["update"].values:
                for quantity, what in QUANTITIES.items():
                    gain = gains(results, quantity).sel(bias_scale=bias, update=rule)
                    allowed = gain["alpha"] * self.d <= self.minority * (1 + 1e-9)
                    rests = calm.sel(bias_scale=bias, update=rule).mean("seed") >= 0.95
                    first = gain.isel(seed=slice(0, None, 2)).mean("seed")
                    chosen = first.where(allowed & rests.sel(alpha=gain["alpha"]))
                    judged = gain.isel(seed=slice(1, None, 2)).isel(
                        chosen.fillna(-np.inf).argmax(...)
                    )
                    if not bool(chosen.notnull().any()):
                        judged = judged * np.nan  # no place may be chosen
                    setting = f"{what}, {rule}, {bias_name(bias)}, {self.setting}"
                    found.append(
                        judge_difference(
                            (CLAIMS[quantity], self.name, scale, f"best of the map: {setting}"),
                            judged.values,
                            "positive",
                            note=f"pruned minus not, at alpha={float(judged['alpha']):g}, "
                            f"start {int(judged['start'])}, chosen on the other half of the "
                            "seeds among alpha up to the rare features' share where training "
                            "comes to rest",
                        )
                    )
        return found

    def picture(self, results: xr.Dataset) -> list[Picture]:
        return [
            self._map(results, quantity, float(bias))
            for quantity in QUANTITIES
            for bias in results["bias_scale"].values
        ]

    def tables(self, results: xr.Dataset) -> list[Table]:
        table: list[list[object]] = []
        for bias in results["bias_scale"].values:
            for rule in results["update"].values:
                at = results.sel(bias_scale=bias, update=rule).isel(start=0).mean("seed")
                for alpha in results["alpha"].values:
                    here = at.sel(alpha=alpha)
                    numbers = [
                        f"{float(here[name].sel(group=group)):.3g}"
                        for name in ("energy", "best", "pure")
                        for group in GROUPS
                    ]
                    table.append([bias_name(bias), str(rule), f"{float(alpha):g}", *numbers])
        heads = [f"{name}, {group}" for name in ("energy", "best", "pure") for group in GROUPS]
        return [
            Table(
                "values",
                f"The quantities themselves, pruning from step {int(results['start'][0])}",
                f"Mean over {results.sizes['seed']} runs at step {self.steps}. Energies that "
                "rise far above the unpruned ones mean that training does not come to rest.",
                ["bias", "update", "alpha", *heads],
                table,
            )
        ]
