"""The 3,000 runs of C10 (10 eps_min x 3 sigma x 100 seeds) on one GPU, and where the time goes.

    python benchmarks/bench_contrast_gpu.py [--runs 3000] [--out benchmarks/results]

Sampling, gradient, random numbers and matrix products are timed alone with device events; the other
parts are differences, so that all add up to a step.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from pathlib import Path

import numpy as np
import torch
from gpu_timing import milliseconds

from rarefy.core.contracts import Cells, Context
from rarefy.core.provenance import provenance
from rarefy.nets.brelu_transformer import preactivations
from rarefy.studies.contrastive.alignment.study import ContrastAlignment
from rarefy.sweep.grid import grid_of


def all_cells(study: ContrastAlignment, runs: int) -> Cells:
    grid = grid_of(study)
    return grid.cells(np.arange(min(runs, len(grid))))


def parts(
    study: ContrastAlignment, cells: Cells, context: Context, step: float
) -> dict[str, float]:
    """Milliseconds a step of ``step`` milliseconds, by part."""
    experiment = study.setup(cells, context)
    data, draws, problem = experiment.data, experiment.draws, experiment.problem
    parameters = {"weights": experiment.weights}
    shape = (2, study.batch, study.tokens, study.d1)
    pairs = data.sample(draws, study.batch, 0)
    both = pairs.tokens.flatten(1, 2)
    mixing = problem.attention.weights(both)
    coefficients = torch.randn(
        len(cells), study.neurons, study.batch * study.tokens, device=context.device
    )
    x = pairs.x.reshape(len(cells), -1, study.d1)
    sampling = milliseconds(lambda: data.sample(draws, study.batch, 0))
    gradient = milliseconds(lambda: problem.gradients(parameters, pairs))
    random = milliseconds(lambda: draws.normal("noise", shape, 0, data.sigma))
    products = milliseconds(lambda: preactivations(experiment.weights, mixing, both))
    products += milliseconds(lambda: torch.bmm(coefficients, x))
    return {
        "random numbers": random,
        "latents and tokens": sampling - random,
        "products": products,
        "attention, activations, softmax": gradient - products,
        "bias, update, checks, reads": step - sampling - gradient,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device here: nothing measured")
        return
    study = ContrastAlignment.at("paper", bias_scale=(1.0,))
    short = dataclasses.replace(study, steps=100, reads=(100,), figure_read=100)
    cells = all_cells(study, arguments.runs)
    record: dict[str, object] = {"runs": len(cells), "steps": study.steps}
    for compiled in (False, True):
        context = Context(device=torch.device("cuda"), compiled=compiled)
        name = "compiled" if compiled else "eager"
        warm = dataclasses.replace(study, steps=3, reads=(3,), figure_read=3)
        start = time.perf_counter()
        warm.simulate(cells, context)
        first = time.perf_counter() - start
        start = time.perf_counter()
        short.simulate(cells, context)
        to_figure = time.perf_counter() - start
        start = time.perf_counter()
        study.simulate(cells, context)
        seconds = time.perf_counter() - start
        step = seconds / study.steps * 1e3
        record[name] = {
            "seconds_to_step_100": to_figure,
            "seconds_all_steps": seconds,
            "seconds_first_call": first,
            "ms_a_step": step,
            "ms_by_part": parts(study, cells, context, step),
            "run_steps_per_second": len(cells) * study.steps / seconds,
        }
        print(name, json.dumps(record[name], indent=1))
    record["provenance"] = provenance(torch.device("cuda"), "float32", 0.0)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "contrast-gpu.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
