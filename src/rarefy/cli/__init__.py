"""The command line: ``frame`` holds the app, the other files its verbs."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

VERBS = {
    "check": "checking",
    "checkup": "checkup",
    "claims": "claiming",
    "clean": "cleaning",
    "explore": "exploring",
    "granularity": "granularity",
    "data": "images",
    "influence": "influence",
    "studies": "listing",
    "pretrain": "pretraining",
    "probe": "probing",
    "run": "running",
    "demo": "showing",
    "report": "showing",
    "train": "training",
    "verify": "verifying",
}
"""Where each is. A program that is asked for one imports no other: a fifth of a second."""


def __getattr__(name: str) -> Any:
    """``app`` and ``main``, which know all verbs."""
    if name not in ("app", "main"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _import(*VERBS.values())
    return getattr(import_module("rarefy.cli.frame"), name)


def run() -> int:
    """What ``rarefy`` does in a terminal: its exit code."""
    from rarefy.cli.frame import main

    asked = VERBS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    _import(*([asked] if asked else VERBS.values()))
    return main()


def _import(*modules: str) -> None:
    for module in modules:
        import_module(f"rarefy.cli.{module}")
