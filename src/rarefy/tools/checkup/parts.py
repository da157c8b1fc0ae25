"""The parts of a check-up. Each calls a tool and turns what it gives into a section; none judges
(``ranking`` does)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rarefy.core.errors import OutOfTime
from rarefy.core.settings import resolve_device
from rarefy.data.hierarchy.clusters import comparable, k_means
from rarefy.data.hierarchy.levels import CLASS
from rarefy.data.images import ImageData
from rarefy.data.images.checking import examine
from rarefy.data.images.ids import digest_of
from rarefy.measure.class_report import ENOUGH
from rarefy.tools.checkup.ranking import Commands
from rarefy.tools.checkup.sections import SKIPPED, Rows, Section
from rarefy.tools.influence.scoring import ScoreSettings, score_samples
from rarefy.tools.influence.triage import RARE, doubts_in
from rarefy.tools.longtail.pretrain_images import pretrain_images
from rarefy.tools.samples.samples import Samples
from rarefy.tools.train_images import train

SHOWN = 12
"""Lines of a table."""
LEARNT_FROM, PRETRAINED_ON = 2_000, 5_000
"""Images of a quick network (as many to test it), and at most of a short pre-training, on a CPU."""
PRETRAIN_SEEDS = 2
GROUPED = 400
"""Samples of a class whose groups are looked for."""


@dataclass(frozen=True)
class Subject:
    """What is checked. ``text`` is what tools take, ``images`` None for tables and arrays."""

    text: str
    commands: Commands
    """What a person would type."""
    samples: Samples
    images: ImageData | None
    device: str
    folder: Path
    key: str
    """Stands for data and options: of what was found before."""
    overwrite: bool = False
    deadline: float | None = None

    def seconds_left(self) -> float | None:
        if self.deadline is None:
            return None
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime("time is over")
        return left

    @property
    def on_cpu(self) -> bool:
        return resolve_device(self.device).type == "cpu"


def the_set(of: Subject) -> Section:
    """What the set is: classes, imbalance, copies, broken files, what train and test share."""
    samples = of.samples
    counts, names = samples.counts, samples.classes
    order = [int(one) for one in np.argsort(counts, kind="stable") if counts[one]]
    numbers: dict[str, Any] = {
        "samples": len(samples),
        "classes": len(order),
        "largest": int(counts.max()),
        "smallest": int(counts[order[0]]),
        "copies": len(samples) - len({digest_of(one) for one in samples.ids}),
        "broken": len(samples.left_out),
        "first_broken": samples.left_out[0] if samples.left_out else "",
    }
    notes = [*samples.notes]
    if of.images is not None:
        found = examine(of.images)
        numbers |= {"shared": found.shared, "test": found.test.images}
        numbers["broken"] = len(found.bad_files)
        numbers["first_broken"] = found.bad_files[0] if found.bad_files else ""
    ratio = numbers["largest"] / numbers["smallest"]
    words = f"{len(samples):,} samples of {len(order)} classes"
    if ratio > 1:
        rarest = names[order[0]]
        words += f", {numbers['smallest']:,} ({rarest!r}) to {numbers['largest']:,} per class"
    rows = [
        (names[one], f"{counts[one]:,}", f"{100 * counts[one] / len(samples):.2f} %")
        for one in order
    ]
    table = Rows("Rarest classes", ("class", "samples", "share"), tuple(rows[:SHOWN]))
    return Section(
        "set", "What it is", words, tables=(table,), notes=tuple(notes), numbers=numbers,
        command=of.commands("data check") if of.images is not None else "",
    )  # fmt: skip


def the_samples(of: Subject) -> Section:
    """Most atypical samples (influence), and labels in doubt."""
    settings = ScoreSettings(device=of.device)
    scored = score_samples(of.samples, settings, deadline=of.deadline)
    table = scored.table
    issues = doubts_in(table)
    odd = table[~table["label_issue"]].sort_values("percentile", ascending=False)
    numbers: dict[str, Any] = {
        "samples": len(table),
        "issues": len(issues),
        "conflicts": int(table["conflict"].sum()),
        "rare": int((table["triage"] == RARE).sum()),
        "label_accuracy": table.attrs["label_accuracy"],
        "pixels": of.samples.image is not None,
    }
    if len(issues):
        per_class = issues["label"].value_counts()
        numbers |= {
            "issue_class": str(per_class.index[0]),
            "issue_class_count": int(per_class.iloc[0]),
            "issue_class_size": int((table["label"] == per_class.index[0]).sum()),
        }
    shown, far = issues.head(SHOWN), odd.groupby("label", sort=False).head(1).head(SHOWN)
    doubted = Rows(
        "Labels in doubt, least likely first",
        ("sample", "label", "its probability", "suggested"),
        tuple(
            (_named(row), str(row.label), _probability(row), str(row.suggested_label))
            for row in shown.itertuples()
        ),
        tuple(int(one) for one in shown["index"]),
    )
    atypical = Rows(
        "Most atypical of their class",
        ("sample", "label", "what it may be"),
        tuple((_named(row), str(row.label), str(row.triage) or "-") for row in far.itertuples()),
        tuple(int(one) for one in far["index"]),
    )
    words = f"{len(issues):,} of {len(table):,} labels are in doubt"
    return Section(
        "samples", "Odd samples and labels", words,
        tables=((doubted,) if len(shown) else ()) + (atypical,),
        notes=tuple(table.attrs["notes"]), numbers=numbers,
        command=of.commands("influence", "--open"),
    )  # fmt: skip


def the_learning(of: Subject) -> Section:
    """What a quick network learns per class, with and without pruning."""
    title = "What a quick network learns"
    if of.images is None:
        return _skipped("learning", title, "rarefy train takes images; this is a table or an array")
    if len(of.images.classes) < 2:
        return _skipped("learning", title, "there is one class")
    parts = (of.images.train, of.images.test)
    some, asked_of = (LEARNT_FROM if of.on_cpu and len(one) > LEARNT_FROM else 0 for one in parts)
    found = train(
        of.text, samples=some, test_samples=asked_of, device=of.device, jobs=None,
        out=of.folder / f"train-{of.key}", overwrite=of.overwrite, max_seconds=of.seconds_left(),
    )  # fmt: skip
    if not found.finished:
        raise OutOfTime(found.note)
    frame = found.classes
    told = found.described()
    dense = frame[frame["keep"] == 1.0]
    pruned = frame[frame["keep"] != 1.0]
    rows = told["rows"]
    asked = dense[dense["n"] > 0].sort_values("recall", kind="stable")
    small = asked[asked["n"] < ENOUGH].sort_values("n")
    groups = {name: _mean(dense[dense["group"] == name]["recall"]) for name in ("head", "tail")}
    trivial = max(found.described()["baselines"].items(), key=lambda it: it[1]["balanced_accuracy"])
    balanced = float(rows[0]["balanced_accuracy"])
    decision = found.decision
    gains = [row["difference"] or 0.0 for row in rows]
    numbers: dict[str, Any] = {
        **groups,
        "balanced": balanced,
        "classes": len(dense),
        "no_better_than": "" if balanced > trivial[1]["balanced_accuracy"] else trivial[0],
        "worst_class": str(asked["class"].iloc[0]),
        "worst_recall": float(asked["recall"].iloc[0]),
        "worst_train": int(asked["train"].iloc[0]),
        "untold": len(small),
        "untold_class": str(small["class"].iloc[0]) if len(small) else "",
        "untold_images": int(small["n"].iloc[0]) if len(small) else 0,
        "enough": ENOUGH,
        "decision": decision.kind,
        "sentence": decision.sentence,
        "gain": max(gains),
    }
    with_pruning = dict(zip(pruned["class"], pruned["recall"], strict=True))
    lines = tuple(
        (
            str(row["class"]), f"{row['train']:,}", f"{row['n']:,}",
            f"{row['recall']:.0f} [{row['recall_low']:.0f}, {row['recall_high']:.0f}]",
            f"{with_pruning.get(row['class'], float('nan')):.0f}", f"{row['precision']:.0f}",
        )
        for _, row in asked.head(SHOWN).iterrows()
    )  # fmt: skip
    keep = pruned["keep"].iloc[0] if len(pruned) else 1.0
    columns = ("class", "training", "test", "recall, %", f"at keep {keep:g}", "precision, %")
    return Section(
        "learning", title, decision.sentence, tables=(Rows("Worst classes first", columns, lines),),
        notes=tuple(found.warnings) + ((f"trained on {some:,} of its images",) if some else ()),
        numbers=numbers, command=of.commands("train", "--keep auto"),
    )  # fmt: skip


def the_features(of: Subject) -> Section:
    """Head and tail of features that a short pre-training learns without labels."""
    title = "What features know without labels"
    command = of.commands("pretrain")
    if of.images is None:
        return _skipped("features", title, "rarefy pretrain takes images", command)
    images = len(of.images.train)
    if of.on_cpu and images > PRETRAINED_ON:
        reason = f"{images:,} images take hours without a GPU"
        return _skipped("features", title, reason, command)
    found = pretrain_images(
        of.text, ("simclr", "pixels"), seeds=PRETRAIN_SEEDS, device=of.device, jobs=None,
        out=of.folder / f"pretrain-{of.key}", overwrite=of.overwrite,
        max_seconds=of.seconds_left(),
    )  # fmt: skip
    assert found is not None
    if not found.finished:
        raise OutOfTime(found.note)
    rows = {row["method"]: row for row in found.rows}
    learnt, pixels = rows["simclr"], rows["pixels"]
    tails = (learnt["tail"], pixels["tail"])
    gain = None if None in tails else float(tails[0] - tails[1])
    lines = tuple(
        (
            name,
            *(_number(row[one]) for one in ("balanced_accuracy", "head", "tail", "delta_20")),
            str(row["n"]),
        )
        for name, row in rows.items()
    )
    columns = ("features", "all classes, %", "common, %", "rare, %", "head less tail", "n")
    words = (
        f"a linear probe is right on {learnt['balanced_accuracy']:.1f} % of each class on average"
    )
    words += f", of raw pixels on {pixels['balanced_accuracy']:.1f} %"
    return Section(
        "features", title, words, tables=(Rows("Linear probes", columns, lines),),
        numbers={"tail_gain": gain, "n": learnt["n"]}, command=command,
    )  # fmt: skip


def the_finer(of: Subject) -> Section:
    """Whether finer labels might help: levels that are there, or clear groups inside classes."""
    title, command = "Would finer labels help?", of.commands("granularity")
    if of.images is None:
        return _skipped("finer", title, "rarefy granularity takes images")
    others = [name for name in examine(of.images).hierarchy if name != CLASS]
    if others:
        words = f"it has levels beside its classes: {', '.join(others)}"
        numbers: dict[str, Any] = {"levels": others}
        return Section("finer", title, words, numbers=numbers, command=command)
    command = of.commands("influence", "--open")
    found = [
        (name, _separation(of.samples, label)) for label, name in enumerate(of.samples.classes)
    ]
    told = sorted((one for one in found if np.isfinite(one[1])), key=lambda one: -one[1])
    if not told:
        return _skipped("finer", title, "no class has enough samples to look for groups", command)
    lines = tuple((name, f"{value:.2f}") for name, value in told[:SHOWN])
    table = Rows("Two groups inside a class", ("class", "silhouette"), lines)
    words = f"the clearest groups are in {told[0][0]!r} (silhouette {told[0][1]:.2f}, of at most 1)"
    numbers = {"silhouette": told[0][1], "clear_class": told[0][0]}
    return Section("finer", title, words, tables=(table,), numbers=numbers, command=command)


def _separation(samples: Samples, label: int, least: int = 20) -> float:
    """Silhouette of the two groups that k-means finds inside a class; NaN where it is too small."""
    from sklearn.metrics import silhouette_score

    mine = np.flatnonzero(samples.labels == label)
    if len(mine) < least:
        return float("nan")
    chosen = mine[np.linspace(0, len(mine) - 1, min(len(mine), GROUPED)).astype(int)]
    rows = comparable(np.asarray(samples.features[chosen], dtype=np.float32) * samples.scale)
    groups = k_means(rows, 2, 0)
    if len(np.unique(groups)) < 2:
        return float("nan")
    return float(silhouette_score(rows, groups))


def _skipped(part: str, title: str, reason: str, command: str = "") -> Section:
    return Section(part, title, f"skipped: {reason}", SKIPPED, command=command)


def _named(row: Any) -> str:
    return str(row.name) if getattr(row, "name", "") else f"row {row.index}"


def _probability(row: Any) -> str:
    return "-" if np.isnan(row.given_probability) else f"{row.given_probability:.3f}"


def _mean(values: Any) -> float | None:
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) else None


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


PARTS: dict[str, Callable[[Subject], Section]] = {
    "set": the_set,
    "samples": the_samples,
    "learning": the_learning,
    "features": the_features,
    "finer": the_finer,
}
"""By name, in the order in which they run: what is cheap and spoils the rest comes first."""


def timed(part: str, of: Subject) -> Section:
    began = time.monotonic()
    with torch.random.fork_rng(devices=[]):
        found = PARTS[part](of)
    return replace(found, seconds=round(time.monotonic() - began, 1))
