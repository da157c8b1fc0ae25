"""All numbers that studies give at scale tiny, and that verbs say with ``--json``, as committed.

A change of code must not change them by itself. ``python tests/golden/pinned.py simulations`` (or
``verbs``) prints what differs, of all or of those named; ``--write`` keeps the new numbers, and
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
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import compare
import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

SIMULATIONS = Path(__file__).with_name("simulations.json")
VERBS = Path(__file__).with_name("verbs")
ELSEWHERE = 1e-3
"""On a machine of another kind: how far a number may move, or a mean and a standard deviation in
units of |mean| + standard deviation. Kernels of AVX2 or SSE in torch, MKL, oneDNN and OpenBLAS add
up in another order, which moved those of studies by 1.5e-6 at most and those of verbs by 3.2e-5."""
UNSTABLE = ("longtail-overtraining", "longtail-table", "pretrain-images")
"""Contrastive trainings choose neighbours and masks by comparing: there the last bit of a number
makes another choice. It moved means by 0.3, which are asked to 0.5."""
TRAININGS = ("granularity", "pretrain", "probe", "train")
"""Of their answers only the form is compared elsewhere: one image more is right."""
TRAINED = "--jobs 1 --device cpu --network lenet --seeds 2"
PRETRAIN = f"pretrain digits --rho 8 --head 24 --epochs 2 --batch 32 --protocols knn {TRAINED}"
NETWORKS = [f"networks/digits-lenet-simclr-long-tail-rho-8-seed-{seed}.pt" for seed in (0, 1)]
WINE = "influence wine.csv --label kind"
COMMANDS = {
    "checkup-digits": ["checkup digits --only set,samples"],
    "checkup-wine": ["checkup wine.csv --label kind"],
    "claims": ["claims"],
    "clean": [WINE, "clean wine.csv --picks picks.json --out cleaned"],
    "granularity": [f"granularity digits --epochs 12 --samples 300 {TRAINED}"],
    "influence-digits": ["influence digits"],
    "influence-wine": [WINE],
    "pretrain": [f"{PRETRAIN} --method simclr,branches:0.3"],
    "probe": [
        f"{PRETRAIN} --method simclr --save networks",
        f"probe {' '.join(NETWORKS)} --protocols knn,few --device cpu",
    ],
    "train": [f"train digits --epochs 25 --samples 300 {TRAINED}"],
}
"""Of the last of them the answer is kept."""
CLAIMED = ("claim", "answer", "value", "low", "high", "n", "agree", "others")
"""Of a claim; its words are in the ledger and on the pages."""
PICKS = {"format": "rarefy picks 1", "data": "wine.csv", "read": {"label": "kind"}}
LEFT_OUT = ("seconds", "store", "written", "page", "path", "log")
"""Times and places."""


class Compared(NamedTuple):
    """What differs, a line each, and how many were compared in which way."""

    changes: list[str]
    ways: dict[str, int]

    def demand_none(self, record: Callable[[str, int], None]) -> None:
        """``record``, the fixture record_property: pytest's last lines say which way it was."""
        for way, number in self.ways.items():
            record(f"golden {way} of {kind_of_machine()}", number)
        hint = "meant? python tests/golden/pinned.py simulations (or verbs) --write"
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


def answer_of(name: str, folder: Path) -> Any:
    """What the last of the commands says in an empty folder, without times and places, numbers to
    six digits."""
    from planted import wine_with_five

    from rarefy import cli
    from rarefy.core.threads import exactly

    answer: Any = None
    with pytest.MonkeyPatch.context() as patched, exactly(1):
        patched.chdir(folder)
        patched.setenv("RAREFY_DATA", str(folder / "sets"))
        patched.setenv("RAREFY_COMPILE", "0")
        patched.setattr("rarefy.sweep.estimate.PROBE_SECONDS", 0.0)
        features, labels, *_ = wine_with_five()
        table = pd.DataFrame(features).rename(columns="feature {}".format).assign(kind=labels)
        table.to_csv("wine.csv", index=False)
        for command in COMMANDS[name]:
            with redirect_stdout(StringIO()) as said, redirect_stderr(StringIO()) as errors:
                code = cli.main([*command.split(), "--json"])
            assert code == 0, f"rarefy {command}: exit code {code}: {errors.getvalue()}"
            answer = json.loads(
                said.getvalue(),
                object_pairs_hook=lambda pairs: {k: v for k, v in pairs if k not in LEFT_OUT},
                parse_float=lambda number: float(f"{float(number):.6g}"),
            )
            if "doubts" in answer:  # (whoever looks at them believes what is suggested)
                new = {doubt["id"]: doubt["suggested_label"] for doubt in answer["doubts"]}
                picks = [{"id": i, "decision": "relabel", "new_label": new[i]} for i in new]
                Path("picks.json").write_text(json.dumps({**PICKS, "picks": picks}))
    if name == "claims":
        answer = [{field: claim[field] for field in CLAIMED} for claim in answer]
    return answer


def form_of(answer: Any) -> Any:
    """Names without their values; of a list what is in its first entry."""
    if isinstance(answer, dict):
        return {name: form_of(part) for name, part in answer.items()}
    return [form_of(part) for part in answer[:1]] if isinstance(answer, list) else "value"


def compared_answer(name: str, answer: Any) -> Compared:
    path = VERBS / f"{name}.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    before, way, relative = kept.get("answer"), "answers to a tolerance, none are", ELSEWHERE
    if kept.get("kind") == kind_of_machine():
        way, relative = "answers to five digits, with those", compare.RELATIVE
    elif name in TRAININGS:
        before, answer, way = form_of(before), form_of(answer), "answers by their form, none are"
    with patch.object(compare, "RELATIVE", relative):
        changes = [f"{name}{change}" for change in compare.differences(before, answer)]
    return Compared(changes, {way: 1})


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


def verbs(asked: argparse.Namespace) -> Iterator[str]:
    for name in asked.names or COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            answer = answer_of(name, Path(folder))
        yield from compared_answer(name, answer).changes
        if asked.write:
            kept = {"kind": kind_of_machine(), "answer": answer}
            text = json.dumps(kept, indent=1, ensure_ascii=False)
            (VERBS / f"{name}.json").write_text(text + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("simulations", "verbs"))
    parser.add_argument("names", nargs="*", help="of studies or of answers; all if none")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--add-kind", action="store_true")
    asked = parser.parse_args()
    sys.path.insert(0, str(VERBS.parents[1]))  # what tests share
    changes = [*(verbs if asked.what == "verbs" else simulations)(asked)]
    print(*changes, f"{len(changes)} differences", sep="\n")
    return int(bool(changes) and not asked.write)


if __name__ == "__main__":
    sys.exit(main())
