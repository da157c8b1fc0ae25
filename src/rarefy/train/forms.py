"""Unpruned full-batch training of the patch network in the form that suits it.

    primal  by weights, in d coordinates (``PatchClassifier``); the only form that can prune
    dual    by responses to the patches and coefficients of the patches (``GramClassifier``)
    auto    whichever takes less work

Both give the same numbers. A study that is asked for the dual form also draws no vectors, where the
laws allow it (``rarefy.data.gram_samples``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import bad_value
from rarefy.core.precision import matrix_products
from rarefy.data.patches import PatchSamples
from rarefy.train.descent import State, Tracker, Trajectory, descend
from rarefy.train.gram_classifier import GramClassifier, Unfolded, is_cheaper, start_of
from rarefy.train.optimisers import Rate, Sgd
from rarefy.train.patch_classifier import PatchClassifier

FORMS = ("auto", "primal", "dual")


def check_form(form: str) -> None:
    if form not in FORMS:
        raise bad_value("form", form, f"must be one of {', '.join(FORMS)}")


def by_responses(form: str, samples: PatchSamples) -> bool:
    """Whether training is dual."""
    check_form(form)
    return form == "dual" or (form == "auto" and is_cheaper(samples))


def train_unpruned(
    samples: PatchSamples,
    initial: Tensor,
    output_scale: float,
    lr: Rate,
    steps: int,
    context: Context,
    *,
    form: str = "auto",
    trackers: Mapping[str, Tracker] | None = None,
    record: Sequence[int] | None = None,
    after_update: Callable[[State], None] | None = None,
    coefficients: bool = False,
    precision: str | None = None,
) -> Trajectory:
    """Descent from ``initial`` filters, (run, classes, m, d). Trackers see ``filters`` in both
    forms, computed when asked for; ``coefficients`` too in the dual form, and on demand in the
    primal one. ``precision``: of the steps' matrix products (default: as it is set outside)."""
    by_gram = by_responses(form, samples)
    looks = dict(trackers or {})
    problem: GramClassifier | PatchClassifier
    if by_gram:
        problem = GramClassifier.of(samples, output_scale, context.compiled)
        parameters = start_of(initial, samples)
        looks = {name: _unfolding(look, initial, samples) for name, look in looks.items()}
    else:
        problem = PatchClassifier.of(samples, output_scale, context.compiled)
        parameters = {"filters": initial}
        if coefficients:
            patches = len(samples) + samples.classes
            parameters["coefficients"] = initial.new_zeros(*initial.shape[:3], patches)
    with products(precision, context):
        trajectory = descend(
            problem,
            parameters,
            lambda step: None,
            Sgd(lr),
            steps,
            trackers=looks,
            record=record,
            after_update=after_update,
            context=context,
            guard="loss",
        )
    if by_gram:
        trajectory.parameters = Unfolded(trajectory.parameters, initial, samples)
    return trajectory


def products(precision: str | None, context: Context) -> contextlib.AbstractContextManager[None]:
    """Matrix products of this precision inside the block; None: as it is set outside."""
    if precision is None:
        return contextlib.nullcontext()
    return matrix_products(precision, context.device)


def _unfolding(tracker: Tracker, initial: Tensor, samples: PatchSamples) -> Tracker:
    def look(state: State) -> Tensor:
        whole = Unfolded(state.parameters, initial, samples)
        return tracker(State(state.step, whole, state.loss))

    return look
