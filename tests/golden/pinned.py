"""All numbers that studies give at scale tiny, as committed.

A change of code must not change them by itself. ``python tests/golden/pinned.py simulations``
prints what differs, of all or of those named; ``--write`` keeps the new numbers, and
``--add-kind`` only adds the bits of another kind of machine to simulations.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import xarray as xr

SIMULATIONS = Path(__file__).with_name("simulations.json")
ELSEWHERE = 1e-3
"""On a machine of another kind: how far a number may move, or a mean and a standard deviation in
units of |mean| + standard deviation. Kernels of AVX2 or SSE in torch, MKL, oneDNN and OpenBLAS add
up in another order, which moved those of studies by 1.5e-6 at most."""
UNSTABLE = ("longtail-overtraining", "longtail-table", "pretrain-images")
"""Contrastive trainings choose neighbours and masks by comparing: there the last bit of a number
makes another choice. It moved means by 0.3, which are asked to 0.5."""


class Compared(NamedTuple):
    """What differs, a line each, and how many were compared in which way."""

    changes: list[str]
    ways: dict[str, int]

    def demand_none(self, record: Callable[[str, int], None]) -> None:
        """``record``, the fixture record_property: pytest's last lines say which way it was."""
        for way, number in self.ways.items():
            record(f"golden {way} of {kind_of_machine()}", number)
        hint = "meant? python tests/golden/pinned.py simulations --write"
        assert not self.changes, "\n".join([*self.changes, hint])


@cache
def kind_of_machine() -> str:
    """What decides last bits: the processor, by which libraries choose kernels, and versions."""
    cores = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    fields = re.findall(r"^(?:vendor_id|cpu family|model)\s*: (.*)$", cores, re.MULTILINE)[:3]
    processor = [*(fields or [platform.processor()]), torch.backends.cpu.get_cpu_capability()]
    python = "python " + ".".join(platform.python_version_tuple()[:2])
    packages = [f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn")]
    return ", ".join([" ".join(processor), python, f"torch {torch.__version__}", *packages])


def summary(values: np.ndarray) -> dict[str, Any]:
    """One line of the file; ``bits`` is a hash of all values."""
    finite = values[np.isfinite(values)].astype(np.float64)
    mean, std = (finite.mean(), finite.std()) if finite.size else (0.0, 0.0)
    form = {"dtype": values.dtype.str, "shape": list(values.shape), "finite": finite.size}
    bits = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:12]
    return {**form, "mean": float(f"{mean:.9g}"), "std": float(f"{std:.9g}"), "bits": bits}


class Simulations:
    """The committed file: a summary per output, with the bits of several kinds of machine."""

    def __init__(self) -> None:
        kept = json.loads(SIMULATIONS.read_text()) if SIMULATIONS.exists() else {}
        self.kinds: dict[str, str] = kept.pop("kinds", {})
        self.lines: dict[str, dict[str, Any]] = kept
        self.label = hashlib.sha256(kind_of_machine().encode()).hexdigest()[:6]

    def compared(self, study: str, results: xr.Dataset) -> Compared:
        after = {f"{study} {name}": summary(part.values) for name, part in results.items()}
        before = {
            name: {**line, "bits": line["bits"].get(self.label)}
            for name, line in self.lines.items()
            if name.split()[0] == study
        }
        changes = [
            f"{name}: {before.get(name, 'nothing')} became {after.get(name, 'nothing')}"
            for name in dict.fromkeys([*before, *after])
            if not self._same(study, before.get(name), after.get(name))
        ]
        exact = sum(line["bits"] is not None for line in before.values())
        ways = {"outputs bit for bit, with those": exact}
        return Compared(changes, ways | {"outputs to a tolerance, none are": len(before) - exact})

    def _same(self, study: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> bool:
        if not old or not new or old["bits"]:
            return old == new
        near = (0.5 if study in UNSTABLE else ELSEWHERE) * (abs(old["mean"]) + old["std"]) + 1e-12
        form = all(old[name] == new[name] for name in ("dtype", "shape", "finite"))
        return form and all(abs(old[name] - new[name]) <= near for name in ("mean", "std"))

    def keep(self, study: str, results: xr.Dataset, adding: bool) -> None:
        """Where nothing has changed, this kind's bits stand beside those of others, and alone where
        something has; ``adding`` leaves that as it was."""
        changed = {change.partition(":")[0] for change in self.compared(study, results).changes}
        for name in () if adding else changed:
            self.lines.pop(name, None)
        for output, values in results.items():
            new, name = summary(values.values), f"{study} {output}"
            if not (adding and name in changed):
                self.lines.setdefault(name, {**new, "bits": {}})["bits"][self.label] = new["bits"]
        self.kinds[self.label] = kind_of_machine()

    def save(self, beginnings: list[str]) -> None:
        parts = {"kinds": self.kinds, **dict(sorted(self.lines.items()))}
        there = {name: part for name, part in parts.items() if name.split()[0] in beginnings}
        rows = [f"{json.dumps(name)}: {json.dumps(part)}" for name, part in there.items()]
        SIMULATIONS.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def simulations(asked: argparse.Namespace) -> Iterator[str]:
    from registered_studies import STUDIES, tiny

    os.environ["RAREFY_COMPILE"] = "0"
    kept = Simulations()
    for name in asked.names or STUDIES:
        _, results = tiny(STUDIES[name])
        yield from kept.compared(name, results).changes
        kept.keep(name, results, asked.add_kind)
    if asked.write or asked.add_kind:
        kept.save(["kinds", *STUDIES])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["simulations"])
    parser.add_argument("names", nargs="*", help="all if none")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--add-kind", action="store_true")
    asked = parser.parse_args()
    sys.path.insert(0, str(SIMULATIONS.parents[1]))  # what tests share
    changes = [*simulations(asked)]
    print(*changes, f"{len(changes)} differences", sep="\n")
    return int(bool(changes) and not asked.write)


if __name__ == "__main__":
    sys.exit(main())
