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
from rarefy.measure.statistics import Interval, mean_interval, spearman_trend
from rarefy.studies.longtail._published import TABLE_2
from rarefy.studies.longtail._words import spoken
from rarefy.studies.longtail.longtail_table import ALGORITHM_1, EPOCHS, LongTailTable
from rarefy.sweep.results import find_results, read_results
from rarefy.tools.longtail.readings import BALANCED, LONG_TAIL, difference, readings
from rarefy.train.contrast.method import Method

DOCS = Path(__file__).parent
STUDY = LongTailTable.name
NOT_RUN = "not run yet"
BASELINE = "simclr"
NAMES = {"pruned": "Algorithm 1 (one masked branch)", "branches": "Two branches (SDCLR)"}
FEWEST = 3
"""Orders of the classes from which a choice is recommended."""


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

    def masked_gain(self, method: str) -> Interval:
        """Of the masked network over the dense baseline."""
        kept = readings(self.results, "linear", "masked_accuracy")["overall"]
        plain = readings(self.results, "linear")["overall"]
        both = kept.sel(images=LONG_TAIL, way=method) - plain.sel(images=LONG_TAIL, way=BASELINE)
        return mean_interval(both.values.reshape(-1))

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
        published = f"{row.shown()} ({row.gain:+.2f})"
        name = f"{_set(row.data)}, rho {row.rho:g}"
        here = [
            (epochs, found[f"{row.data}-rho{row.rho:g}-{epochs}"])
            for epochs in EPOCHS
            if f"{row.data}-rho{row.rho:g}-{epochs}" in found
        ]
        if not here:
            rows.append([name, published, NOT_RUN, "", "", "", "", ""])
        for epochs, one in here:
            cells, n = [shown(one.mean(BASELINE, "overall"))], one.results.sizes["seed"]
            for kind in ("pruned", "branches"):
                for method in one.methods(kind)[:1]:
                    gain = one.gain(method)
                    cells.append(shown(gain, True))
                    n = min(n, gain.n)
                    if kind == "pruned":
                        cells.append(shown(one.masked_gain(method), True))
            rows.append([name, published, str(epochs), *cells, str(n)])
    columns = ("set", "published", "epochs", "SimCLR", "Algorithm 1, gain", "its masked network")
    return table((*columns, "two branches, gain", "n"), rows)


def delta_table(found: dict[str, Found]) -> str:
    rows = []
    for row in TABLE_2:
        for epochs in EPOCHS:
            one = found.get(f"{row.data}-rho{row.rho:g}-{epochs}")
            if one is None:
                continue
            published = row.shown(delta=True)
            cells = [shown(one.mean(BASELINE, "delta_20"))]
            for kind in ("pruned", "branches"):
                best = one.methods(kind)
                cells.append(shown(one.gain(best[0], "delta_20"), True) if best else NOT_RUN)
            # (as many images, as many epochs)
            control = (
                found.get(f"{row.data}-control-500") if (row.rho, epochs) == (100, 500) else None
            )
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
    return f"- **{NAMES[kind]}**: {words}."


def advice(found: dict[str, Found]) -> str:
    """What a user should choose today: a method that helps in some row and hurts in none."""
    rows = [one for one in found.values() if "-rho" in one.scale]
    if not rows:
        return (
            "No row of the table has been run with this code yet, so nothing is recommended on its "
            "account: start with `simclr`, and put `branches:0.1` beside it with "
            "`rarefy pretrain DATA --method simclr,branches:0.1 --seeds 4`, which tells on your "
            "own data whether it pays."
        )
    for kind in ("branches", "pruned"):
        gains = {
            one.scale: (method, one.gain(method))
            for one in rows
            for method in one.methods(kind)[:1]
            if one.gain(method).n >= FEWEST
        }
        helps = {scale: pair for scale, pair in gains.items() if pair[1].low > 0}
        hurts = [scale for scale, (_, gain) in gains.items() if gain.high < 0]
        if helps and not hurts:
            method = next(iter(helps.values()))[0]
            where = ", ".join(f"`{scale}` {gain.mean:+.2f}" for scale, (_, gain) in helps.items())
            return (
                f"`{method}` ({spoken(method)}): over SimCLR at the same number of epochs it gains "
                f"more than luck in {len(helps)} of {len(gains)} rows ({where} points) and loses "
                "more than luck in none. Check on your own data with "
                f"`rarefy pretrain DATA --method simclr,{method} --seeds 4`."
            )
    return (
        "Plain `simclr`: no pruned method does better than luck in some row without doing worse in "
        "another. Put `branches:0.1` beside it on your own data before you believe either."
    )


def growth(found: dict[str, Found]) -> str:
    """P8 over the rows that were run: does the gain grow with rho?"""
    said = []
    for data in ("cifar10", "cifar100"):
        for epochs in EPOCHS:
            here = {
                float(one.results["rho"].values[-1]): one
                for one in found.values()
                if one.scale.startswith(f"{data}-rho") and one.scale.endswith(f"-{epochs}")
            }
            for kind in ("pruned", "branches"):
                series = {
                    rho: (told.sel(way=method) - told.sel(way=BASELINE)).values.reshape(-1)
                    for rho, one in sorted(here.items())
                    for method in one.methods(kind)[:1]
                    for told in (readings(one.results, "linear")["overall"].sel(images=LONG_TAIL),)
                }
                if len(series) < 2:
                    continue
                seeds = min(map(len, series.values()))
                values = np.stack([gains[:seeds] for gains in series.values()], axis=1)
                trend = spearman_trend(np.array(list(series)), values, within_rows=True)
                levels = ", ".join(f"{rho:g}" for rho in series)
                said.append(
                    f"- {_set(data)}, {epochs} epochs, {NAMES[kind]}: Spearman {trend.rho:+.2f} "
                    f"(p {trend.p_value:.2g}, {seeds} orders, rho {levels})"
                )
    return (
        "\n".join(said)
        if said
        else "Two imbalances at one number of epochs are needed: " + NOT_RUN + "."
    )


def chosen_share(found: dict[str, Found]) -> str:
    """Whether the rows keep what held-out images say."""
    said = []
    for data, method in ALGORITHM_1.items():
        one = found.get(f"{data}-keep-100")
        if one is None:
            said.append(f"{_set(data)}: {NOT_RUN}; the rows have {method}.")
            continue
        tried = one.methods("pruned")
        held_out = one.results["validation"].sel(protocol="linear", images=LONG_TAIL)
        best = max(
            tried, key=lambda name: float(np.nanmax([-1, *held_out.sel(way=name).values.flat]))
        )
        words = "as the rows have it" if best == method else f"but the rows have {method}"
        said.append(f"{_set(data)}: {best}, {words}.")
    return " ".join(said)


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
        "Algorithm 1 (both views through the masked network, everything updated; here weights, "
        "and whole filters where the share kept is chosen), or two branches as in the code whose "
        "setup it follows (Jiang et al. 2021). Both are run here beside SimCLR with the same head, "
        "temperature, weight decay, epochs, first weights and views.",
        "## What to choose today",
        advice(found),
        "## Accuracy",
        "Linear probe, per cent; [ ]: 95 % interval over n orders of the classes; gains are over "
        "SimCLR, order by order. Orders come in mirrored pairs, which the intervals do not know "
        "of. Published spreads come without their n. Of Algorithm 1 the dense network is judged, "
        "which never saw an image (its statistics are measured anew), and the masked one. Head "
        "5,000 (500 on CIFAR100-LT) images, ResNet-18. ImageNet-LT is out of reach of this "
        "project's machines and stays as published.",
        main_table(found),
        "Verdicts, each reading of the method for itself:",
        "\n".join(verdict_of(found, kind) for kind in ("pruned", "branches")),
        "## Delta_20",
        "Accuracy of the fifth of the classes with most images less that of the fifth with fewest, "
        "in points. With one order of the classes it mostly says which classes are easy; the last "
        "column is the same number where every class has as many images, for the same orders.",
        delta_table(found),
        "## The share that is kept",
        "One order of the classes, rho 100. What Algorithm 1 keeps is chosen by held-out training "
        "images that no pre-training saw, never by test images. Best there: " + chosen_share(found),
        keep_table(found),
        "## Does the gain grow with rho?",
        growth(found),
        "## How to run what is missing",
        "`rarefy queue queues/longtail.queue --results results` goes through the rows in order of "
        "importance, skips what is done, stops after `--max-seconds` and goes on where it was; "
        "`--list` shows where it stands. Then `python docs/make_longtail_table.py`.",
        "## Where the numbers come from",
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
