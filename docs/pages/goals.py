"""The jobs that are to be fast, what each took, what it should take, and what it takes: from the
committed records of benchmarks/."""

from __future__ import annotations

import json
from collections.abc import Iterator
from statistics import median
from typing import Any

from pages import ROOT

Row = dict[str, Any]
MACHINES = {"epyc": "AMD EPYC", "xeon": "Intel Xeon"}
COMPILED, EAGER = "library, compiled", "library, eager"


def record(name: str) -> Row:
    """One of the committed records."""
    found: Row = json.loads((ROOT / "benchmarks/results" / f"{name}.json").read_text("utf-8"))
    return found


def _times(name: str, way: str, clock: str = "wall") -> float:
    """How many times as fast as the plain loop."""
    return float(record(name)["ratio_to_best_plain"][clock][way])


def goals() -> list[list[str]]:
    """Job, what it took before, the goal, what it takes, whether that is the goal."""
    return [[*words, now, "yes" if met else "no"] for *words, now, met in _goals()]


def _goals() -> Iterator[tuple[str, str, str, str, bool]]:
    machines = {name: record(f"commands-{name}")["seconds"] for name in MACHINES}
    first = {name: verbs["studies"]["first line"] for name, verbs in machines.items()}
    shown = "; ".join(f"{seconds:.2f} s" for seconds in first.values())
    yield "`rarefy studies`, first line", "4 to 7 s", "0.5 s", shown, max(first.values()) <= 0.5
    for job, was, goal in (("make demo", 410, 180), ("make test", 624, 360)):
        ends = [verbs[job]["end"] for verbs in machines.values()]
        shown, name = "; ".join(map(in_minutes, ends)), f"`{job}`, environment there"
        yield name, in_minutes(was), in_minutes(goal), shown, max(ends) <= goal
    yield from _laboratories()
    yield from _on_the_card()
    memory = record("influence-memory")["megabytes"]
    spent = record("influence-cpu")["results"]
    sets = ("mnist", "cifar10")
    before = [median(memory[name]["before"]) for name in sets]
    now = [median(memory[name]["now"]) for name in sets]
    took = [spent[name]["best_seconds"] for name in sets]
    yield (
        *("influence scores of MNIST; CIFAR-10", f"{before[0]:.0f}; {before[1]:.0f} MB"),
        *("half, as fast", f"{now[0]:.0f}; {now[1]:.0f} MB, {took[0]:.1f}; {took[1]:.0f} s"),
        all(after <= first / 2 for first, after in zip(before, now, strict=True)),
    )
    gallery = record("load-gallery")["results"][0]
    wait, most = median(gallery["wall"]), gallery["process_memory_bytes"] / 1e9
    words = f"{wait:.0f} s, {most:.1f} GB"
    yield "gallery of 60,000 images", "-", "60 s, 1.5 GB", words, wait <= 60 and most <= 1.5


def _laboratories() -> Iterator[tuple[str, str, str, str, bool]]:
    pruned = "library, pruned every step, compiled"
    for job, name, way, before, goal in (
        ("contrastive laboratory, compiled", "contrast-cpu", COMPILED, "4.5", 7.0),
        ("the same without a C++ compiler", "contrast-cpu", EAGER, "0.7", 1.5),
        ("TopK after every update", "topk-cpu", pruned, "3.8", 5.0),
        ("any dimension, d = 200", "dual-cpu", "dual, own noise per cell", "3.9 to 5.5", 8.0),
        ("16 subclasses per side", "multi-view-cpu", "library, k=16, compiled", "3.4", 5.0),
    ):
        wall, core = (_times(name, way, clock) for clock in ("wall", "core"))
        now = f"{wall:.1f} times ({core:.1f} per core)"
        yield f"{job}, beside a plain loop", f"{before} times", f"{goal:g} times", now, wall >= goal


def _on_the_card() -> Iterator[tuple[str, str, str, str, bool]]:
    commands = record("commands-gpu")["seconds"]
    for job, name, before, goal in (
        ("TopK map, 19,900 settings, H200, to the prompt", "topk-phase", 138, 75),
        ("Fig. 2 and 3, 3,000 runs, H200, to the prompt", "contrast-alignment", 60, 25),
    ):
        warm, cold = (commands[name][kind] for kind in ("warm", "cold"))
        took = median(warm)
        now = f"{took:.0f} s (n = {len(warm)}); {cold[0]:.0f} s if nothing is compiled"
        yield job, f"{before} s", f"{goal} s", now, took <= goal
    every = record("pruner-gpu")["results"]["eager, batch 512"]["ratio_to_dense"]
    seldom, often = (every[f"filter, dense, every {updates}"] for updates in (10, 1))
    spread = f"quartiles {seldom['lower quartile']:.2f} to {seldom['upper quartile']:.2f}"
    yield (
        *("`Pruner`, ResNet-18, H200, masks every 10 / every update", "1.17 / 1.56"),
        *("1.05 / 1.25", f"{seldom['median']:.2f} ({spread}) / {often['median']:.2f}"),
        seldom["median"] <= 1.05 and often["median"] <= 1.25,
    )
    ends = [run["end"] for run in record("training-gpu")["time_to_accuracy"]["runs"]]
    took, worst = median(end["seconds"] for end in ends), min(end["accuracy"] for end in ends)
    now = f"{took:.0f} s, ResNet-9 (n = {len(ends)})"
    yield "CIFAR-10 to 94 %, H200", "32.5 s, ResNet-18", "15 s", now, took <= 15 and worst >= 0.94


def in_minutes(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 100 else f"{whole // 60} min {whole % 60} s"
