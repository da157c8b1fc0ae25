"""Write docs/longtail-table.md, 000 Table 2 with what was measured beside what was published, from
the committed results of the study longtail-table. Every number on it is computed; rows that nobody
has run yet say so."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from rarefy.core.contracts import Study
from rarefy.measure.statistics import Interval, mean_interval
from rarefy.studies.longtail._published import TABLE_2
from rarefy.studies.longtail._report import spoken
from rarefy.studies.longtail.longtail_table import EPOCHS, LongTailTable
from rarefy.sweep.results import find_results, read_results
from rarefy.tools.longtail.readings import BALANCED, LONG_TAIL, difference, readings
from rarefy.train.contrast.method import Method

DOCS = Path(__file__).parent
STUDY = LongTailTable.name
NOT_RUN = "not run yet"
BASELINE = "simclr"
FEWEST = 3
"""Orders of the classes from which a choice is recommended."""
WORTHWHILE = 1.0
"""Points: a gain that is certainly below this is nothing to change one's recipe for."""


class Found(NamedTuple):
    """Committed results of one scale."""

    study: Study
    scale: str
    results: xr.Dataset

    def methods(self, kind: str) -> list[str]:
        names = [str(name) for name in self.results["way"].values]
        return [name for name in names if Method.parse(name).kind == kind]

    def gain(self, method: str, name: str = "overall") -> Interval:
        told = readings(self.results, "linear")
        rho = float(self.results["rho"].values[-1])
        return difference(told, name, method, BASELINE, images=LONG_TAIL, rho=rho)

    def mean(self, method: str, name: str, images: str = LONG_TAIL) -> Interval:
        told = readings(self.results, "linear")[name].sel(images=images, way=method)
        return mean_interval(told.values.reshape(-1))


# ------------------------------------------------------------------------------------------- pieces


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown(found: Interval, signed: bool = False) -> str:
    """Mean, and its 95 % interval where there is one."""
    form = "+.2f" if signed else ".2f"
    ends = f" [{found.low:{form}}, {found.high:{form}}]" if found.n > 1 else ""
    return f"{found.mean:{form}}{ends}" if found.n else "-"


def main_table(found: dict[str, Found]) -> str:
    rows = []
    for row in TABLE_2:
        published = f"{row.plain:.2f} → {row.pruned:.2f} ({row.gain:+.2f})"
        name = f"{_set(row.data)}, rho {row.rho:g}"
        here = [
            (epochs, found[f"{row.data}-rho{row.rho:g}-{epochs}"])
            for epochs in EPOCHS
            if f"{row.data}-rho{row.rho:g}-{epochs}" in found
        ]
        if not here:
            rows.append([name, published, NOT_RUN, "", "", "", ""])
        for epochs, one in here:
            cells = [shown(one.mean(BASELINE, "overall"))]
            for kind in ("pruned", "branches"):
                best = one.methods(kind)
                cells.append(shown(one.gain(best[0]), True) if best else NOT_RUN)
            rows.append([name, published, str(epochs), *cells, str(one.results.sizes["seed"])])
    columns = ("set", "published", "epochs", "SimCLR", "Algorithm 1, gain", "two branches, gain")
    return table((*columns, "n"), rows)


def delta_table(found: dict[str, Found]) -> str:
    rows = []
    for row in TABLE_2:
        for epochs in EPOCHS:
            one = found.get(f"{row.data}-rho{row.rho:g}-{epochs}")
            if one is None:
                continue
            published = f"{row.plain_delta:.2f} → {row.pruned_delta:.2f}"
            cells = [shown(one.mean(BASELINE, "delta_20"))]
            for kind in ("pruned", "branches"):
                best = one.methods(kind)
                cells.append(shown(one.gain(best[0], "delta_20"), True) if best else NOT_RUN)
            control = found.get(f"{row.data}-control-500")
            cells.append(
                shown(control.mean(BASELINE, "delta_20", BALANCED)) if control else NOT_RUN
            )
            rows.append([f"{_set(row.data)}, rho {row.rho:g}", published, str(epochs), *cells])
    if not rows:
        return "No row has been run yet."
    columns = ("set", "published", "epochs", "SimCLR", "Algorithm 1 less SimCLR")
    return table((*columns, "two branches less SimCLR", "balanced control, SimCLR"), rows)


def keep_table(found: dict[str, Found]) -> str:
    rows = []
    for scale, one in found.items():
        if "-keep-" not in scale and "-curve-" not in scale:
            continue
        told, held_out = readings(one.results, "linear"), one.results["validation"]
        for method in map(str, one.results["way"].values):
            chosen = held_out.sel(protocol="linear", way=method, images=LONG_TAIL).values
            test = told["overall"].sel(way=method, images=LONG_TAIL).values
            rows.append(
                [
                    _set(one.study.parameters()["data"]),
                    str(one.study.parameters()["epochs"]),
                    spoken(method),
                    f"{100 * float(np.nanmean(chosen)):.2f}" if np.isfinite(chosen).any() else "-",
                    f"{float(np.nanmean(test)):.2f}" if np.isfinite(test).any() else "not finite",
                ]
            )
    if not rows:
        return "Not run yet."
    return table(("set", "epochs", "method", "held-out training images", "test images"), rows)


def verdict_of(found: dict[str, Found], kind: str) -> str:
    """One reading of the method, in words."""
    names = {"pruned": "Algorithm 1 (one masked branch)", "branches": "Two branches (SDCLR)"}
    said = []
    for one in found.values():
        for method in one.methods(kind)[:1] if "-rho" in one.scale else ():
            gain = one.gain(method)
            word = "open"
            if gain.n > 1:
                word = "helps" if gain.low > 0 else "hurts" if gain.high < 0 else "open"
            data = _set(one.study.parameters()["data"])
            rho, epochs = one.results["rho"].values[-1], one.study.parameters()["epochs"]
            said.append(f"{data} rho {rho:g}, {epochs} epochs: {word}, {shown(gain, True)} points")
    words = "; ".join(said) if said else NOT_RUN
    return f"- **{names[kind]}**: {words}."


def advice(found: dict[str, Found]) -> str:
    """What a user should choose today."""
    best: list[tuple[float, str]] = []
    for one in found.values():
        if "-rho" not in one.scale or one.results.sizes["seed"] < FEWEST:
            continue
        for kind in ("pruned", "branches"):
            for method in one.methods(kind)[:1]:
                gain = one.gain(method)
                if gain.n >= FEWEST and gain.low > 0:
                    best.append((gain.mean, method))
    if not any("-rho" in one.scale for one in found.values()):
        return (
            "No row of the table has been run with this code yet, so nothing is recommended on its "
            "account: start with `simclr`, and put `branches:0.1` beside it with "
            "`rarefy pretrain DATA --method simclr,branches:0.1 --seeds 3`, which tells on your "
            "own data whether it pays."
        )
    if not best:
        return (
            "Plain `simclr`: in no row that was run does a pruned method do better than luck. "
            "Put `branches:0.1` beside it on your own data before you believe either."
        )
    gain, method = max(best)
    little = "" if gain >= WORTHWHILE else " The gain is small."
    return (
        f"`{method}` ({spoken(method)}): the largest gain that is not luck, {gain:+.2f} points "
        f"over SimCLR at the same number of epochs.{little} It costs about a third more time. "
        "Check on your own data with `rarefy pretrain DATA --method simclr,"
        f"{method} --seeds 3`."
    )


def _set(data: str) -> str:
    return {"cifar10": "CIFAR10-LT", "cifar100": "CIFAR100-LT", "imagenet": "ImageNet-LT"}[data]


def _made(found: dict[str, Found]) -> str:
    lines = []
    for scale, one in found.items():
        made = json.loads(one.results.attrs["provenance"])
        where = made.get("gpu") or made.get("machine") or made.get("device", "")
        lines.append(f"- `{scale}`: {str(made.get('date', ''))[:10]}, {where}")
    return "\n".join(lines) if lines else "Nothing yet."


# --------------------------------------------------------------------------------------------- page


def page(found: dict[str, Found]) -> str:
    parts = [
        "<!-- made by docs/make_longtail_table.py from results/; do not edit -->",
        "# Pruning and long-tailed contrastive learning: Table 2",
        "000 Table 2 reports the accuracy of a linear probe on features learnt without labels from "
        "long-tailed images, without pruning and with. It does not say how many epochs, which "
        "share is kept, or how often it was repeated, and its method can be read in two ways: "
        "Algorithm 1 as printed (both views through the masked network, all weights updated), or "
        "two branches as in the code whose setup it follows (Jiang et al. 2021). Both are run here "
        "beside SimCLR with the same head, temperature, weight decay, epochs, first weights and "
        "views.",
        "## What to choose today",
        advice(found),
        "## Accuracy",
        "Linear probe, per cent; [ ]: 95 % interval over n orders of the classes; gains are over "
        "SimCLR, order by order. Head 5,000 (500 on CIFAR100-LT) images, ResNet-18. ImageNet-LT is "
        "out of reach of this project's machines and stays as published.",
        main_table(found),
        "Verdicts, each reading of the method for itself:",
        "\n".join(verdict_of(found, kind) for kind in ("pruned", "branches")),
        "## Delta_20",
        "Accuracy of the fifth of the classes with most images less that of the fifth with fewest, "
        "in points. With one order of the classes it mostly says which classes are easy; the last "
        "column is the same number where every class has as many images, for the same orders.",
        delta_table(found),
        "## The share that is kept",
        "One order of the classes, rho 100. The ratio for Algorithm 1 is chosen by held-out "
        "training images, never by test images.",
        keep_table(found),
        "## How to run what is missing",
        "`rarefy queue queues/longtail.queue --results results` goes through the rows in order of "
        "importance, skips what is done, stops after `--max-seconds` and goes on where it was; "
        "`--list` shows where it stands. Then `python docs/make_longtail_table.py`.",
        _made(found),
    ]
    return "\n\n".join(parts) + "\n"


def committed(folder: Path) -> dict[str, Found]:
    """Results of the study by scale."""
    found = {}
    for path in find_results(folder):
        if path.stem.startswith(f"{STUDY}-cifar"):
            study, scale, results = read_results(path)
            found[scale] = Found(study, scale, results)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--results", type=Path, default=DOCS.parent / "results")
    reader.add_argument("--out", type=Path, default=DOCS / "longtail-table.md")
    given = reader.parse_args(arguments)
    given.out.write_text(page(committed(given.results)), encoding="utf-8")
    print(given.out)


if __name__ == "__main__":
    main()
