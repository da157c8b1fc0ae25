"""The label check beside cleanlab: how many wrong labels each finds, balanced and long-tailed.

A share of the labels of each draw is replaced by another class, all alike. Both tools see the same
features and labels. cleanlab has what its users give it: five-fold probabilities of scikit-learn's
logistic regression on standardised features, then ``get_label_quality_scores`` and
``find_label_issues`` as they are. Ours is ``check_labels`` as it is. AUROC: chance that a wrong
label ranks above a right one. Recall: share of the wrong labels among as many as there are, ranked
first. flagged, right: labels called wrong, and how many of these are.

Long tails: class sizes n_max rho^(-i / (K - 1)), at least 4, classes in random order. Without
cleanlab (``pip install cleanlab``) its numbers stay out.

    python benchmarks/bench_label_check.py [--seeds 10] [--data wine cancer digits mnist cifar10]
"""

from __future__ import annotations

import importlib
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch
from harness import asked, keep, size

from rarefy.core.errors import RarefyError
from rarefy.core.rng import Draws, key
from rarefy.data.longtail.counts import exponential
from rarefy.tools.influence.class_probabilities import numbers_of
from rarefy.tools.influence.drawn_parts import drawn_order
from rarefy.tools.influence.injections import flips
from rarefy.tools.influence.label_check import check_labels
from rarefy.tools.samples.opening import as_samples, open_samples
from rarefy.tools.samples.samples import Samples

TABLES = {"wine": "load_wine", "cancer": "load_breast_cancer", "digits": "load_digits"}
RHOS, SHARES = size((1, 20, 100), (20,)), size((0.02, 0.05, 0.1), (0.1,))
OF_IMAGES = {1: 200, 20: 600, 100: 600}
"""Images of the largest class, by rho."""
LEAST = 4
CPU = torch.device("cpu")


@cache
def loaded(name: str) -> Samples:
    if name not in TABLES:
        return open_samples(name, split="train")
    sets = importlib.import_module("sklearn.datasets")
    return as_samples(*getattr(sets, TABLES[name])(return_X_y=True))


def drawn(name: str, rho: int, share: float, seed: int) -> tuple[Samples, np.ndarray]:
    """Samples with wrong labels among them, and which these are."""
    samples, draws = loaded(name), Draws([key("label check", name, rho, share, seed)])
    classes = len(samples.classes)
    if rho > 1 or name not in TABLES:
        head = int(samples.counts.min()) if name in TABLES else OF_IMAGES[rho]
        order, ranked = (
            drawn_order(draws, what, count)
            for what, count in (("samples", len(samples)), ("classes", classes))
        )
        rows = [
            order[samples.labels[order] == label][: max(LEAST, count)]
            for label, count in zip(ranked, exponential(head, rho, classes), strict=True)
        ]
        samples = samples.take(np.sort(np.concatenate(rows)))
    flipped = flips(samples.features, samples.labels, classes, share, draws)
    return replace(samples, labels=flipped.labels), flipped.positive


def cleanlab_found(samples: Samples) -> tuple[np.ndarray, np.ndarray] | None:
    """Its scores, low for what is in doubt, and what it calls wrong."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    try:
        rank = importlib.import_module("cleanlab.rank")
        judge = importlib.import_module("cleanlab.filter")
    except ModuleNotFoundError:
        return None
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes smaller than the number of folds
        chances = cross_val_predict(
            model, numbers_of(samples, CPU), samples.labels, cv=5, method="predict_proba"
        )
        scores = rank.get_label_quality_scores(samples.labels, chances)
        return scores, judge.find_label_issues(samples.labels, chances, n_jobs=1)


def compared(setting: tuple[str, int, float, int]) -> dict[str, Any]:
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    samples, wrong = drawn(*setting)
    with threadpool_limits(limits=1):
        checked = check_labels(samples, CPU)
        theirs = cleanlab_found(samples)
    found: dict[str, Any] = {"n": len(samples), "wrong": int(wrong.sum())}
    ours = np.nan_to_num(checked.given_probability), checked.issue
    for tool, pair in (("ours", ours), ("cleanlab", theirs)):
        if pair is not None:
            score, called = pair
            first = np.argsort(score, kind="stable")[: wrong.sum()]
            found[tool] = {
                "auroc": round(float(roc_auc_score(wrong, -score)), 4),
                "recall": round(float(wrong[first].mean()), 4),
                "flagged": int(called.sum()),
                "right": int((called & wrong).sum()),
            }
    return found


def main() -> None:
    data = [*TABLES, "mnist", "cifar10"]
    arguments = asked(__doc__ or "", data=size(data, ["wine"]), seeds=size(10, 1), processes=2)
    names = []
    for name in arguments.data:
        try:
            loaded(name)
            names.append(name)
        except RarefyError as error:
            print(f"{name}: left out ({error})")
    settings = [(name, rho, share) for name in names for rho in RHOS for share in SHARES]
    jobs = [(*setting, seed) for setting in settings for seed in range(arguments.seeds)]
    if arguments.tiny:
        found = [compared(job) for job in jobs]
    else:
        with ProcessPoolExecutor(arguments.processes) as pool:
            found = list(pool.map(compared, jobs))
    results = []
    for place, (name, rho, share) in enumerate(settings):
        mine = found[place * arguments.seeds : (place + 1) * arguments.seeds]
        row: dict[str, Any] = {"data": name, "rho": rho, "share": share}
        row |= {what: [one[what] for one in mine] for what in ("n", "wrong")}
        for tool in ("ours", "cleanlab"):
            if tool in mine[0]:
                row[tool] = {what: [one[tool][what] for one in mine] for what in mine[0][tool]}
        results.append(row)
        line = "; ".join(
            f"{tool}: {what} {np.mean(row[tool][what]):.3f}"
            for tool in ("ours", "cleanlab")
            if tool in row
            for what in ("auroc", "recall")
        )
        print(f"{name}, rho {rho}, {100 * share:g} %: {line}")
    versions = {}
    for package in ("cleanlab", "sklearn", "numpy"):
        try:
            versions[package] = str(importlib.import_module(package).__version__)
        except ModuleNotFoundError:
            versions[package] = "not installed"
    keep(arguments, "label-check", {"versions": versions, "results": results})


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
