"""What heavy tests gave last is kept: ``make test-heavy`` writes it to last.json.

A test in this folder is heavy. What it measured it gives to pytest's ``record_property(name,
value)``: seconds, megabytes, how many kills.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from rarefy.core.provenance import provenance

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("heavy")


class Keeper:
    """Writes after every test, so that a stopped hour is not lost."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" or HERE.name not in Path(report.fspath).parts:
            return
        known: dict[str, Any] = json.loads(self.path.read_text()) if self.path.exists() else {}
        machine = provenance(torch.device("cpu"), "float32", report.duration)
        known[f"{Path(report.fspath).stem}::{report.location[2]}"] = {
            "outcome": report.outcome,
            "measured": dict(report.user_properties),
            **{name: machine[name] for name in ("date", "machine", "cores", "python", "torch")},
            "seconds": round(report.duration, 1),
        }
        self.path.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    if path := config.getoption("--record", None):
        config.pluginmanager.register(Keeper(Path(path).absolute()))  # (tests change folders)
