"""Methods in words, and which of them are compared."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from rarefy.tools.longtail.readings import baseline_of
from rarefy.train.simclr.method import Method

LINEAR = "linear"


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
    found = Method.parse(method)
    if found.kind == "pruned":
        return f"Algorithm 1, {method.removeprefix('pruned:')} kept"
    if method.startswith("sdclr"):
        rest = method.removeprefix("sdclr")
        words = f", {rest[1:]} kept" if rest.startswith(":") else rest
        return f"two branches as in SDCLR{words}"
    if found.kind == "branches":
        share, *further = method.removeprefix("branches:").split("+")
        return ", ".join(["two branches", f"{share} kept", *further])
    if not found.trained:
        return {"pixels": "raw pixels", "untrained": "untrained network"}[found.kind]
    return method.replace("simclr", "SimCLR")


def compared(results: xr.Dataset) -> tuple[str, list[str]]:
    """What is compared with, and all other methods that train."""
    methods = [str(name) for name in results["algorithm"].values]
    baseline = baseline_of(methods)
    return baseline, [name for name in methods if name != baseline and Method.parse(name).trained]


def others(results: xr.Dataset) -> tuple[str, list[str]]:
    """What is compared with, and the methods with masks."""
    methods = [str(name) for name in results["algorithm"].values]
    return baseline_of(methods), [name for name in methods if Method.parse(name).masked]
