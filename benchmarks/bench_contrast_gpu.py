"""The 3,000 runs of C10 (10 eps_min x 3 sigma x 100 seeds) on one GPU, and where the time goes.

    python benchmarks/bench_contrast_gpu.py [--runs 3000]

Sampling, gradient, random numbers and matrix products are timed alone with device events; the other
parts are differences, so that all add up to a step.
"""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from typing import Any

import numpy as np
import torch
from harness import DEVICE, asked, keep, milliseconds, size, timed

from rarefy.core.contracts import Cells, Context
from rarefy.nets.brelu_transformer import preactivations
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of


def parts(study: Any, cells: Cells, context: Context, step: float) -> dict[str, float]:
    """Milliseconds per step of ``step`` milliseconds, by part."""
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
    arguments = asked(__doc__, gpu=True, runs=size(3000, 2))
    study = get_study("contrast-alignment").at("paper", bias_scale=(1.0,))
    warm, short, whole = (
        dataclasses.replace(study, steps=steps, reads=(steps,), figure_read=steps)
        for steps in size((3, 100, study.steps), (1, 1, 1))
    )
    grid = grid_of(study)
    cells = grid.cells(np.arange(min(arguments.runs, len(grid))))
    record: dict[str, object] = {"runs": len(cells), "steps": whole.steps}
    for compiled in (False, True):
        context = Context(device=DEVICE, compiled=compiled)
        name = "compiled" if compiled else "eager"
        first, to_figure, seconds = (
            timed(partial(each.simulate, cells, context)).wall for each in (warm, short, whole)
        )
        step = seconds / whole.steps * 1e3
        record[name] = {
            "seconds_to_step_100": to_figure,
            "seconds_all_steps": seconds,
            "seconds_first_call": first,
            "ms_per_step": step,
            "ms_by_part": parts(study, cells, context, step),
            "run_steps_per_second": len(cells) * whole.steps / seconds,
        }
        print(name, json.dumps(record[name], indent=1))
    keep(arguments, "contrast-gpu", record)


if __name__ == "__main__":
    main()
