"""docs/speed.md and docs/images/growth.png: how fast it is and how cost grows, from the committed
records of benchmarks/."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from pages.goals import COMPILED, EAGER, goals, in_minutes, record
from pages.markdown import table
from rarefy.core.picture import Curve, Lines, Picture
from rarefy.report.static import as_png, draw_picture

PLAIN = "plain, one run at a time, one thread"
D = "dimensions d"
SOURCES = (
    *(
        "commands-epyc",
        "commands-xeon",
        "contrast-cpu",
        "topk-cpu",
        "dual-cpu",
        "multi-view-cpu",
        "influence-cpu",
    ),
    *("influence-memory", "load-gallery", "commands-gpu", "topk-gpu", "contrast-gpu"),
    *("pruner-gpu", "training-gpu"),
)
"""Records that are told where they were made."""


def files(results: Path) -> dict[str, str | bytes]:
    return {"speed.md": page(), "images/growth.png": as_png(draw_picture(_growth()), 110)}


# ------------------------------------------------------------------------------------------- growth


def _growth() -> Picture:
    card = record("topk-gpu")
    cells = card["microseconds per cell-step by cells"]
    runs = record("contrast-cpu")["seconds_per_run_step_by_runs"]
    by_d = {
        float(name.rpartition("= ")[2]): seconds
        for name, seconds in record("dual-cpu")["median"]["core"].items()
        if name.startswith("dual, d = ")
    }
    store = record("load-cells")["results"]
    more = {
        row["cells"]: median(row["study"]["core"]) - median(row["plain"]["core"]) for row in store
    }
    by_runs = {key: core for key, (_, core) in runs.items()}
    panels = [
        _panel(cells, 1e-3, True, "settings", "ms per step, all", "TopK map, one H200"),
        _panel(by_runs, 1e3, True, "runs", "ms of a core per step, all", "Contrastive laboratory"),
        _panel(by_d, 1e3, False, D, "ms of a core per step", "Without vectors"),
        _panel(more, 1.0, False, "cells", "s of a core", "Store and runner, beside computing"),
    ]
    return Picture("growth", "How cost grows", "", panels)


def _panel(seen: dict[Any, float], unit: float, each: bool, x: str, y: str, title: str) -> Lines:
    """``each``: what is seen is the cost of one of them; drawn is that of all, beside the line
    through the last that is proportional to their number."""
    at = np.array([float(key) for key in seen])
    cost = unit * np.array(list(seen.values())) * (at if each else 1.0)
    words, line = "proportional", cost[-1] * at / at[-1]
    if x == D:
        plain = record("dual-cpu")["median"]["core"]["plain, unpruned, one thread"]
        words, line = "plain loop, d = 200", np.full_like(cost, unit * plain)
    curves = [
        Curve("measured", at, cost, role="measured"),
        Curve(words, at, line, role="theory", style="dotted"),
    ]
    return Lines(curves, x, y, title, x_log=x != "cells", y_log=each)


# --------------------------------------------------------------------------------------------- page


def page() -> str:
    return "\n\n".join(_sections()) + "\n"


def _made(name: str) -> str:
    found = record(name)
    made, load = found["provenance"], found.get("load_average_before")
    busy = "" if load is None else f", load average {load:.1f} before"
    rounds = found.get("rounds", found.get("n"))
    n = "" if rounds is None else f", n = {rounds}"
    return f"{made['machine']}, torch {made['torch']}, {made['date'][:10]}{n}{busy}"


def _text(words: str) -> str:
    return " ".join(words.split())


def _sections() -> list[str]:
    heads = ["job", "before", "goal", "now", "met"]
    return [
        "<!-- made by docs/make.py speed from benchmarks/results; do not edit -->",
        "# How fast is it",
        """```
make bench                    # every benchmark, beside a plain loop that trains one network
python benchmarks/goals.py    # those of a CPU, and this table
```""",
        table(heads, goals()),
        _text("""Two cores, or one NVIDIA H200; the last table says which, when and how often. Of
            two times the first is of an AMD EPYC, the second of a slower Intel Xeon. Times beside a
            plain loop are ratios of medians in one run, where the plain loop has the faster of one
            and two threads; per core: the same by processor time. Many cells, rows and workers:
            [load](load.md)."""),
        "![Cost against settings, runs, dimensions and cells](images/growth.png)",
        "## What stands in the way",
        "\n".join(f"- {_text(each)}" for each in _limits()),
        "## Contrastive laboratory",
        *_contrastive(),
        "## TopK laboratory",
        *_topk(),
        "## Any dimension",
        _dual(),
        "## Label granularity",
        *_granularity(),
        "## Benign overfitting",
        _text(f"""The maps of Fig. 3 and 4 of Xu & Chen (1,800 networks of 500 filters at d = 1000,
            trained both ways and tested) take 46 s on the H200, all eight studies (4,936 networks)
            138 s ({_made("benign-gpu")})."""),
        "## Tools",
        _text("""What `Pruner` adds to a step: [pruning](pruning.md#what-it-costs). Pre-training
            without labels: [longtail](longtail.md#speed). Influence scores:
            [influence](influence.md#speed)."""),
        "## Where the numbers are from",
        table(["record", "made"], [[f"`{name}`", _made(name)] for name in SOURCES]),
    ]


def _limits() -> list[str]:
    bare = record("commands-gpu")["without bytecode"]
    without = [median(bare[name]["warm"]) for name in ("topk-phase", "contrast-alignment")]
    training = record("training-gpu")
    before, ends = (
        training["resnet18"],
        [run["end"] for run in training["time_to_accuracy"]["runs"]],
    )
    accuracy = " to ".join(f"{100 * end(e['accuracy'] for e in ends):.1f}" for end in (min, max))
    shorter = before["recipes_of_24_epochs"]
    best = " to ".join(
        f"{100 * end(run['test_accuracy'] for run in shorter['test']):.1f}" for end in (min, max)
    )
    took = median(run["reached"]["seconds"] for run in before["time_to_accuracy"]["runs"])
    way = training["throughput"]["ways"]["ours, compiled, graphs"]
    memory = record("influence-memory")["megabytes"]
    suite = record("suite")
    parts = suite["processor seconds"]
    of_tests = parts["tests"] + parts["programs they start"]
    slow = record("commands-xeon")["seconds"]["make test"]
    runs = [" and ".join(map(in_minutes, times)) for times in suite["seconds"].values()]
    return [
        f"""**`make test` and `make demo`** depend on the machine: the plain TopK loop, one thread,
            took 2.28 ms per step on 2026-11-15, and on 2026-11-18 3.86 ms on the EPYC and 4.08 ms
            on the Xeon, where all of the interface takes half as long again. The suite has
            {suite["tests"]:,} tests (7,271 when the goal was set), few longer than a second. Of its
            processor time on the EPYC (n = 1) {of_tests:.0f} s are the tests,
            {parts["collecting"]:.0f} collecting them in two workers,
            {parts["handing them out"]:.0f} handing them out: with both cores busy all the time
            {in_minutes(sum(parts.values()) / 2)}. A third worker gains nothing. First in a fresh
            clone it took {runs[0]}, later {runs[1]}; on the Xeon {in_minutes(slow["end"])}, with
            both cores busy all the time {in_minutes(slow["processor"] / 2)}.""",
        f"""**The two commands on the card** are for a Python that keeps bytecode, as it does by
            default; told not to, they take {without[0]:.0f} and {without[1]:.0f} s. A step of the
            map as two fused Triton kernels in place of torch's products took 17.5 ms where it takes
            9.2: not kept.""",
        f"""**94 % on CIFAR-10** is reached by another network: a ResNet-9, which `rarefy train` now
            takes for many photographs on a GPU. Network and recipe were chosen among
            {len(training["recipes"]["held_out"])} by held-out training images; all {len(ends)}
            seeds then end at {accuracy} % of the test images. The time is that of training;
            compiling is apart. A ResNet-18 takes {took:.0f} s, and the best of
            {len(shorter["held_out"])} recipes of 24 epochs ends at {best} %. It passes images at
            {100 * way["share_of_bf16_limit"]:.0f} % of what the card's bf16 products allow.""",
        """**Ratios beside a plain loop** differ by a fifth from run to run: what else the machine
            does slows the plain loop and ours unlike.""",
        f"""**Influence in half the memory:** images are kept as bytes, few scatter matrices are
            made at a time and factored in place, and rows become float64 in one place per thread.
            Beside the code of before (medians of {len(memory["cifar10"]["now"])} runs each, in
            turn, free memory given back first) CIFAR-10 takes {_share(memory["cifar10"])} of the
            memory, MNIST {_share(memory["mnist"])}, at the same processor time.""",
    ]


def _share(megabytes: dict[str, list[float]]) -> str:
    return f"{100 * median(megabytes['now']) / median(megabytes['before']):.0f} %"


def _contrastive() -> list[str]:
    found = record("contrast-cpu")
    ms = {name: 1e3 * seconds for name, seconds in found["median"]["core"].items()}
    parts = {k: 1e3 * v for k, v in found["core_seconds_per_run_step_of_parts"].items()}
    noise, all_draws = parts["noise, compiled"], parts["all draws and tokens, compiled"]
    products = parts["products with the weights, compiled"]
    together = parts["loss and gradient, products and all, with the noise, compiled"]
    compiled = "rarefy, compiled (needs a C++ compiler; the default for long runs)"
    return [
        "The sizes of Fig. 2 and 3 of Liao et al.: 500 dimensions, 24 neurons, 64 pairs per batch.",
        table(
            ["ms of a core per run and step", ""],
            [
                ["plain loop: one run at a time, autograd", f"{ms[PLAIN]:.2f}"],
                [compiled, f"{ms[COMPILED]:.2f}"],
                ["rarefy, not compiled", f"{ms[EAGER]:.2f}"],
            ],
        ),
        _text(f"""Batches of runs take a core each; the plain loop gains nothing from a second one.
            Compiled, C++ shows each token's noise to the neurons as it is drawn, and the second
            view is never kept: with loss and gradient {together:.2f} ms of a core, where drawing
            alone takes {noise:.2f}, latents {all_draws - noise:.2f}, and torch's products of
            weights and tokens {products:.2f}. (Parts were timed one by one, the whole by two
            threads.) If all but the random numbers were free, it would be {ms[PLAIN] / noise:.0f}
            times the plain loop per core. Without a compiler numpy draws the same numbers, bit for
            bit, in {parts["noise, eager"]:.2f} ms."""),
        _text("""On the H200 the 3,000 runs of Fig. 2 and 3 take 0.6 s to the step of the figure and
            7.6 s for all 1,600 steps. Of a step of 4.7 ms, 1.6 are random numbers, 1.3 latents and
            tokens, 1.4 products, 0.5 attention, activations and softmax."""),
    ]


def _topk() -> list[str]:
    card = record("topk-gpu")
    rows = []
    for precision in ("tf32", "float32"):
        seen = card["published grid"][f"revive, {precision}"]
        memory, arithmetic = (
            f"{100 * seen[f'share of {kind} limit']:.0f} %" for kind in ("memory", "arithmetic")
        )
        rows.append(
            [
                *(f"{precision} products", f"{seen['ms per step']:.1f}"),
                f"{seen['seconds for 5,000 steps']:.0f} s",
                f"{memory} of memory bandwidth, {arithmetic} of arithmetic",
            ]
        )
    plain = card["plain loop on this GPU"]["ms per cell-step"] * card["cells"]
    rows.append(["plain autograd loop", f"{plain:,.0f}", f"{plain * 5 / 3600:.0f} hours", ""])
    cpu = {k: 1e3 * v for k, v in record("topk-cpu")["median"]["wall"].items()}
    heads = ["all 19,900 settings", "ms per step", "5,000 steps, extrapolated"]
    return [
        _text("""The published size: 199 values of K by 100 noise levels, 5,000 updates, pruned
            after each; n = d = 200, 200 filters; one H200. tf32 ends as float32 in 400 of 400
            settings."""),
        table([*heads, "of the card's limit"], rows),
        _text(f"""On two cores one setting takes
            {cpu["library, pruned every step, compiled"]:.2f} ms per step pruned after every update,
            {cpu["library, support fixed, compiled"]:.2f} with a fixed support,
            {cpu["library, dense, compiled"]:.2f} unpruned by the Gram matrix."""),
    ]


def _dual() -> str:
    found = record("dual-cpu")
    ms = {name: 1e3 * seconds for name, seconds in found["median"]["core"].items()}
    step, plain = ms["dual, own noise per cell"], ms["plain, unpruned, one thread"]
    grown = found["d = 10^6 over d = 10^3"]
    return _text(f"""Without vectors (n = 200, 10 classes, 200 filters) a step takes {step:.2f} ms
        of a core, the plain loop at d = 200 {plain:.2f} ms. By C++ it is one pass per run, product
        and all, that stays in a core's cache; the product alone takes torch
        {ms["product alone"]:.2f} ms. d = 10^6 takes {grown:.2f} times what d = 10^3 does.
        `regimes-at-scale` (7,680 boundaries, 95,600 trainings) took 262 s on the H200.""")


def _granularity() -> list[str]:
    found = record("multi-view-cpu")["median"]["core"]
    kinds = {"4": "k=4", "8": "k=8", "16": "k=16", "8, `granularity-detectors`": "k=8 quiet"}
    rows = []
    for words, kind in kinds.items():
        ways = (
            f"plain, {kind}, one thread",
            f"library, {kind}, compiled",
            f"library, {kind}, eager",
        )
        rows.append([words, *(f"{1e3 * found[way]:.1f}" for way in ways)])
    heads = ["subclasses per side", "plain loop, ms", "compiled, ms", "not compiled, ms"]
    return [
        "d = 100, 100 neurons per output; core time per step of a coarse and a fine network:",
        table(heads, rows),
        _text("""By C++ a neuron is shown only patches within its reach, and none of them is copied.
            The five studies at paper scale took 240 to 560 s each on the H200, two or three side by
            side."""),
    ]
