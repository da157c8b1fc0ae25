"""docs/keep.md: what four ways to choose a keep would have lost, from the committed runs of the
sparse studies, and from earlier ones of them in which the keep advisor was still asked."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import xarray as xr

from pages import ROOT
from pages.markdown import table
from rarefy.sweep.fitting import fit_rows

EARLIER = {
    "sparse-mnist-paper": "7ec2dab",
    "sparse-cifar10-paper": "363069f",
    "sparse-cifar100-noise-paper": "363069f",
    "sparse-vit-mnist-paper": "363069f",
}
"""Commits whose results hold advised ranges."""
EARLY = 0.2
"""Share of the epochs after which the race is read, or the first look after that."""
WAYS = ("middle of the advised range", "always 0.5", "always dense", "race (`--keep auto`)")
TEXT = """# Should I prune, and how much?

```
rarefy train my_photos --keep auto
```

**For accuracy alone, rarely: a dense network is hard to beat.** On average it lost at most a tenth
of a point to the best share of weights where images are asked with the noise of training, and much
only where noise is large and the test is without it. The command tries it on your images: several
shares race for a quarter of the epochs, the best is trained beside a dense network, and the last
sentence compares the two. This page says what that would have lost in the committed runs.

Regret: how far the chosen keep's test accuracy lies below that of the best keep, in points. The
best keep is found on one half of the test images (means over the other seeds) and everything is
judged on the other half, so that luck helps nobody; both ways round, for every seed. A *setting* is
one set, network and noise level; images are asked without noise where nothing else is said.

- **Race**: the keep, or dense, that is best on one seed after about a fifth of the epochs, judged
  in the other seeds (the tool takes a quarter of them and two seeds). It reads the accuracy of test
  images that the runs stored on the way, always without noise, since held-out training images were
  not stored; `rarefy train --keep auto` itself looks at held-out training images, with the noise of
  the test, and never at test images.
- **Always 0.5**: or the nearest keep that was run.
- **Middle of the advised range**: an earlier rule, from gradients before training, which was
  removed because the race lost less; no range counts as dense.

Made by `python docs/make.py regret`.

## The committed runs

{now}

## Earlier runs with an advised range

More keeps and noise levels, three seeds; results of the commits {commits}. Where a run was looked
at only at its end (CIFAR-100, the transformer), the race is one of full length.

{before}
"""


def files(results: Path) -> dict[str, str]:
    before = [
        (name, _stored(commit, name, "json").decode(), _stored(commit, name, "parquet"))
        for name, commit in EARLIER.items()
    ]
    commits = " and ".join(sorted(set(EARLIER.values())))
    text = TEXT.format(now=now(results), before=summed_up(before), commits=commits)
    return {"keep.md": text}


def now(results: Path) -> str:
    """Of the runs in a folder."""
    return summed_up(
        [
            (path.stem, path.read_text("utf-8"), path.with_suffix(".parquet").read_bytes())
            for path in sorted(results.glob("sparse-*.json"))
        ]
    )


def _stored(commit: str, name: str, kind: str) -> bytes:
    asked = ["git", "show", f"{commit}:results/{name}.{kind}"]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, check=True).stdout


def summed_up(runs: list[tuple[str, str, bytes]]) -> str:
    """One row per study, means over its settings; then over all settings."""
    rows, every, noisy = [], [], []
    for name, described, content in runs:
        results = fit_rows(json.loads(described), pq.read_table(io.BytesIO(content)))
        found = [regrets(one, 0.0) for one in settings(results)]
        rows.append([f"{name}, {results.sizes['seed']} seeds", len(found), *_means(found)])
        every += found
        for one in settings(results):
            if float(one["noise"]) in one["test_noise"].values:
                noisy.append(regrets(one, float(one["noise"])))
    rows.append(["**all settings**", len(every), *_means(every)])
    worst = [max(one) if np.isfinite(one).all() else np.nan for one in np.transpose(every)]
    rows.append(["worst setting", "", *map(_number, worst)])
    rows.append(["all, asked with the noise of training", len(noisy), *_means(noisy)])
    shown = [place for place in range(len(WAYS)) if any(row[2 + place] != "-" for row in rows)]
    columns = ["runs", "settings", *(WAYS[place] for place in shown)]
    return table(columns, [[*row[:2], *(row[2 + place] for place in shown)] for row in rows])


def settings(results: xr.Dataset) -> Iterator[xr.Dataset]:
    plain = results.isel(
        {name: 0 for name in ("update", "noise_resampling", "drawn") if name in results.dims}
    )
    for noise in plain["noise"].values:
        yield plain.sel(noise=noise).transpose("keep", "seed", ...)


def regrets(at: xr.Dataset, asked: float) -> list[float]:
    """Of each of ``WAYS`` at a noise in the test, means over seeds and halves; NaN where it cannot
    be said."""
    keeps, seeds = at["keep"].values, at.sizes["seed"]
    halves = 100 * at["half_accuracy"].sel(test_noise=asked).values  # (keep, seed, half)
    watched = "watched_epoch" if "watched_epoch" in at.dims else "watched"
    epochs = at[watched].values
    early = at["watched_accuracy"].isel({watched: int((epochs < EARLY * epochs[-1]).sum())}).values
    dense = int(np.flatnonzero(keeps == 1)[0])
    half = int(np.abs(keeps - 0.5).argmin())
    found = []
    for seed in range(seeds):
        others = [other for other in range(seeds) if other != seed]
        for side in (0, 1):
            judged = halves[:, others, 1 - side].mean(axis=1)
            best = judged[halves[:, others, side].mean(axis=1).argmax()]
            chosen = [_advised(at, seed), half, dense, int(early[:, seed].argmax())]
            found.append([np.nan if one is None else best - judged[one] for one in chosen])
    return [float(np.mean(one)) for one in np.transpose(found)]


def _advised(at: xr.Dataset, seed: int) -> int | None:
    if "advised_low" not in at:
        return None
    keeps, dense = at["keep"].values, at.sel(keep=1.0).isel(seed=seed)
    low, high = float(dense["advised_low"]), float(dense["advised_high"])
    return int(np.abs(keeps - ((low + high) / 2 if low <= high else 1.0)).argmin())


def _means(found: list[list[float]]) -> list[str]:
    known = np.array(found)
    return [
        _number(one[np.isfinite(one)].mean() if np.isfinite(one).any() else np.nan)
        for one in known.T
    ]


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}"
