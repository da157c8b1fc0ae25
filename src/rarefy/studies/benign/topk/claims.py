"""Verdicts of ``benign-topk`` (Q2): what pruning does to networks that live on memorised noise.

Our own question. After training a filter of class k is mostly its special direction e_k, of
eigenvalue lambda, plus what it memorised of single samples. Fresh noise answers lambda |zeta| cos
against base, cos the cosine of filter and e_k. Where e_k is a coordinate, TopK keeps it and drops
the rest; where it is spread over all coordinates, K of d keep cos^2 of about the share that the K
largest of d normal coordinates have of their squared length, 0.14 for 2 %. So pruning is to cost
accuracy in the rotated basis, the paper's, and not in the aligned one; and samples far out in the
tail, whose |zeta| makes up for a small cosine, are to lose less.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.studies.benign.topk.experiment import TopKExperiment
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.reading import Naming

SPARED = 0.02
"""Accuracy that may be lost where nothing is to be lost: what a reader of a plot would not see."""
REVIVE = "revive"


def verdicts(study: TopKExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    gammas = [gamma for gamma in results["gamma"].values.tolist() if gamma > 1]
    if not gammas or results.sizes["keep"] < 2:
        return found
    ordered = results.sortby("keep").sel(gamma=gammas)
    for reading in texts(results, "reading"):
        primary = reading == REVIVE
        named = Naming(study, scale, "" if primary else f"{reading}: ")
        for basis in texts(results, "basis"):
            here = ordered.sel(basis=basis, reading=reading)
            means = here["accuracy"].mean("gamma", skipna=False)
            if basis == "rotated":
                loss = float(here["train_loss"].isel(keep=0).mean())
                found.append(_falls(means, loss, named, "Q2.1" if primary else "Q2"))
                found.append(_tail(means, named, "Q2.3" if primary else "Q2"))
            else:
                found.append(_spared(means, named, "Q2.2" if primary else "Q2"))
    return found


def _accuracy(accuracy: xr.DataArray, kind: str) -> np.ndarray:
    """(seed, keep), from the fewest kept to all."""
    return by_seed(accuracy.sel(kind=kind), "keep")


def _ends(accuracy: xr.DataArray, kind: str) -> str:
    means, keep = st.finite_mean(_accuracy(accuracy, kind)), accuracy["keep"].values
    return f"{kind}: {means[-1]:.3f} at keep {keep[-1]:g}, {means[0]:.3f} at {keep[0]:g}"


def _falls(accuracy: xr.DataArray, loss: float, named: Naming, claim: str) -> Verdict:
    return st.judge_trend(
        named(claim, "rotated: accuracy rises with the share that is kept, mean over Gamma > 1"),
        st.spearman_trend(accuracy["keep"].values, _accuracy(accuracy, "all"), within_rows=True),
        "increasing",
        note=f"{_ends(accuracy, 'all')}; training loss {loss:.2g} with the fewest kept",
    )


def _spared(accuracy: xr.DataArray, named: Naming, claim: str) -> Verdict:
    """Fewest kept against dense."""
    values = _accuracy(accuracy, "all")
    return st.judge_bound(
        named(claim, "aligned: accuracy with the fewest kept less that of dense networks"),
        values[:, 0] - values[:, -1],
        -SPARED,
        "at_least",
        note=_ends(accuracy, "all"),
    )


def _tail(accuracy: xr.DataArray, named: Naming, claim: str) -> Verdict:
    lost = {
        kind: values[:, -1] - values[:, 0]
        for kind in ("all", "long-tailed")
        for values in (_accuracy(accuracy, kind),)
    }
    return st.judge_difference(
        named(claim, "rotated: what all samples lose to pruning less what long-tailed ones lose"),
        lost["all"] - lost["long-tailed"],
        "positive",
        note=f"{_ends(accuracy, 'all')}; {_ends(accuracy, 'long-tailed')}",
    )
