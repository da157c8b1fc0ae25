"""The section of docs/scoreboard.md about wrong labels, beside cleanlab: from the committed records
of benchmarks/bench_label_check.py. Every number in it is computed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from pages.markdown import table
from rarefy.measure.estimates import Interval, mean_interval

NAMES = {"cancer": "breast cancer"}
KINDS = {"auroc": "AUROC", "recall": "Recall at the number of wrong labels"}
OURS, THEIRS = "ours", "cleanlab"
RECORDS = "label-check-*.json"

Row = dict[str, Any]


def difference(row: Row, what: str) -> Interval:
    """Ours less theirs, draw by draw."""
    return mean_interval(np.subtract(row[OURS][what], row[THEIRS][what]))


def outcome(found: Interval) -> int:
    """1: ours is higher, -1: lower, 0: the interval has 0 in it."""
    return int(found.low > 0) - int(found.high < 0)


def _cell(row: Row, what: str) -> str:
    found = difference(row, what)
    told = f"{found.mean:+.3f} ±{(found.high - found.low) / 2:.3f}"
    means = " / ".join(f"{np.mean(row[tool][what]):.3f}" for tool in (OURS, THEIRS))
    return f"{means}, {f'**{told}**' if outcome(found) else told}"


def _by_setting(results: list[Row], what: str) -> str:
    rhos = sorted({row["rho"] for row in results})
    rows: dict[tuple[str, float], list[str]] = {}
    for row in results:
        head = [str(NAMES.get(row["data"], row["data"])), f"{100 * row['share']:g} %"]
        rows.setdefault((row["data"], row["share"]), head).append(_cell(row, what))
    heads = ["balanced" if rho == 1 else f"rho {rho}" for rho in rhos]
    return table(["data", "wrong labels", *heads], [*rows.values()])


def _flagged(results: list[Row]) -> str:
    """What is called wrong, by how often that is right and how many it finds."""
    rows = []
    for rho in sorted({row["rho"] for row in results}):
        mine = [row for row in results if row["rho"] == rho]
        cells = ["balanced" if rho == 1 else f"rho {rho}"]
        for over in ("flagged", "wrong"):
            for tool in (OURS, THEIRS):
                shares = [
                    np.sum(row[tool]["right"])
                    / max(np.sum(row["wrong"] if over == "wrong" else row[tool]["flagged"]), 1)
                    for row in mine
                ]
                cells.append(f"{np.mean(shares):.2f}")
        rows.append(cells)
    heads = ["", "right of those flagged: ours", "cleanlab", "found of the wrong: ours", "cleanlab"]
    return table(heads, rows)


def _counted(results: list[Row]) -> str:
    parts = []
    for kind, mine in (
        ("balanced", [row for row in results if row["rho"] == 1]),
        ("long-tailed", [row for row in results if row["rho"] > 1]),
    ):
        told = []
        for what, name in (("auroc", "AUROC"), ("recall", "recall")):
            ends = [outcome(difference(row, what)) for row in mine]
            told.append(
                f"{name} higher in {ends.count(1)}, lower in {ends.count(-1)}, no difference told "
                f"in {ends.count(0)}"
            )
        parts.append(f"{kind} ({len(mine)} settings): {'; '.join(told)}")
    return ". ".join(part[0].upper() + part[1:] for part in parts) + "."


def section(folder: Path) -> str:
    """From the records in a folder, one per data set; nothing where there are none."""
    records = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob(RECORDS))]
    results: list[Row] = [row for record in records for row in record["results"] if THEIRS in row]
    if not results:
        return ""
    draws = min(len(row["n"]) for row in results)
    versions = ", ".join(f"{name} {version}" for name, version in records[0]["versions"].items())
    counts = {
        row["data"]: f"{NAMES.get(row['data'], row['data'])} {min(row['n']):,}"
        for row in results
        if row["rho"] == 1
    }
    made = max(record["provenance"]["date"][:10] for record in records)
    parts = [
        "## Beside cleanlab",
        "Wrong labels, any other class as likely as the next, found by the label check of `rarefy "
        "influence` (column `given_probability`, lowest first) and by cleanlab, on the same draws "
        "and the same features: columns of tables; of images, principal components of the pixels "
        "and histograms of edges. cleanlab has five-fold probabilities of a logistic regression on "
        "standardised features, and ranks and flags by its defaults. Long tails: rho is the "
        "largest class over the smallest, which has at least 4 samples before labels are changed.",
        f"**{_counted(results)}** A difference is told where the 95 % interval of paired "
        f"differences over n = {draws} draws is off 0. (Of so many settings one in forty would be "
        "told on either side by chance.) The ranking differs by the classifiers alone: cleanlab "
        "takes anybody's probabilities, and given ours would rank as we do. What is called wrong "
        "differs by the rule too.",
        *(
            f"{name}, ours / cleanlab, difference ± half its interval:\n\n"
            f"{_by_setting(results, what)}"
            for what, name in KINDS.items()
        ),
        f"What is called wrong without a number given, means over data and shares:\n\n"
        f"{_flagged(results)}",
        f"Made by `python benchmarks/bench_label_check.py` ({made}; {versions})."
        f" Samples in balanced draws: {', '.join(counts.values())}. Classifiers and lines were "
        "chosen on other data: iris, made-up tables, the test part of MNIST, parts of CIFAR-100.",
    ]
    return "\n\n".join(parts)
