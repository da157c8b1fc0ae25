"""Methods in words, and which of them are compared."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from rarefy.tools.longtail.readings import baseline_of
from rarefy.train.simclr.method import Method

LINEAR = "linear"
NAMES = {
    "simclr": "SimCLR",
    "pruned": "Algorithm 1",
    "branches": "two branches",
    "sdclr": "two branches as in SDCLR",
    "pixels": "raw pixels",
    "untrained": "untrained network",
}
"""Kinds of methods, for people."""


def judged_by(protocols: Sequence[str]) -> str:
    """The protocol that verdicts and the first table are about."""
    return LINEAR if LINEAR in protocols else protocols[0]


def protocol_words(protocol: str) -> str:
    """A way to judge, for people."""
    return {
        "linear": "linear probe, all labels",
        "long-tail": "linear probe, long-tailed labels",
        "few": "few labels a class",
        "knn": "nearest neighbours",
    }[protocol]


def spoken(method: str) -> str:
    """A method for people."""
    first, *added = method.split("+")
    kind, _, share = first.partition(":")
    return " + ".join([f"{NAMES[kind]}, {share} kept" if share else NAMES[kind], *added])


def compared(results: xr.Dataset) -> tuple[str, list[str]]:
    """What is compared with, and all other methods that train."""
    methods = [str(name) for name in results["algorithm"].values]
    baseline = baseline_of(methods)
    return baseline, [name for name in methods if name != baseline and Method.parse(name).trained]


def others(results: xr.Dataset) -> tuple[str, list[str]]:
    """What is compared with, and the methods with masks."""
    methods = [str(name) for name in results["algorithm"].values]
    return baseline_of(methods), [name for name in methods if Method.parse(name).masked]
