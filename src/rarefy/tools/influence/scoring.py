"""Score every sample of a labelled set, and check its labels: one table (003 Eq. (10))."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from rarefy.core.errors import UsageError, bad_value
from rarefy.core.provenance import provenance
from rarefy.core.settings import free_memory, resolve_device
from rarefy.core.text import printable
from rarefy.data.images.ids import short_hash
from rarefy.data.images.listing import spell_bytes
from rarefy.measure.influence.passes import ClassScores, score_classes
from rarefy.tools.influence.label_check import CheckedLabels, check_labels, why_unchecked
from rarefy.tools.influence.neighbours import NeighbourLabels, neighbour_labels, references_of
from rarefy.tools.influence.percentiles import percentiles
from rarefy.tools.influence.scored_samples import ScoredSamples
from rarefy.tools.influence.triage import Rules, add_triage, silent_neighbours
from rarefy.tools.samples.opening import as_samples
from rarefy.tools.samples.row_ids import copies_of
from rarefy.tools.samples.samples import Samples
from rarefy.tools.samples.standardizing import standardized

MEMORY = 1 << 30
NEIGHBOURS = 10
SHARES = {"scores": 1.0, "neighbours": 1.0, "labels": 3.0}
"""Of the progress bar, to each other; a rough guess."""
LEFT_OUT = "ids, copies, neighbours, the label check, triage and the page"
"""What needs all samples in memory."""
ROW_BYTES = 700
"""Of memory that the table takes for each sample until it is whole (620 were measured)."""
COLUMNS = (
    *("id", "index", "name", "label", "influence", "percentile", "own", "shared", "shrinking"),
    *("distance", "mahalanobis", "norm", "disagreement", "neighbour_label", "copies", "conflict"),
    *("given_probability", "suggested_label", "suggested_probability", "label_issue"),
    *("triage", "rule"),
)


@dataclass(frozen=True)
class ScoreSettings:
    """How samples are scored."""

    ddof: int = 1
    """0 or 1: covariance divided by n or by n - 1"""
    neighbours: int = NEIGHBOURS
    """Nearest samples that are asked for their label; 0: none, a large part of the time saved."""
    check_labels: bool = True
    """Whether classifiers that have not seen a sample are asked for its label; most of the time."""
    memory: int = MEMORY
    """Bytes that scoring may use besides the features."""
    device: str = "auto"
    rules: Rules = field(default_factory=Rules)

    def __post_init__(self) -> None:
        if self.ddof not in (0, 1):
            raise bad_value("ddof", self.ddof, "must be 0 or 1")
        if self.neighbours < 0:
            raise bad_value("neighbours", self.neighbours, "must be at least 0 (none)")
        if self.memory < 1 << 24:
            raise bad_value("memory", self.memory, "must be at least 16 MiB")


def influence(
    data: object,
    labels: object = None,
    *,
    ddof: int = 1,
    neighbours: int = NEIGHBOURS,
    check_labels: bool = True,
    embedding: Any = None,
    memory: int = MEMORY,
    device: str = "auto",
    **options: Any,
) -> pd.DataFrame:
    """Which samples of a labelled set are atypical, and which labels are in doubt.

    Tables and arrays are standardised (``standardize=False``: left in their units), pixels never;
    what an embedding gives is with ``standardize=True``.

    Arguments:
        data: an array or tensor (any rank, rows are flattened) with its ``labels``; a DataFrame
            with the name of its label column; a PyTorch data set of pairs; a Hugging Face data set;
            or a text: the name of an image set (``digits``, ``mnist`` ...), a folder of class
            folders, a table, an array file.
        labels: one per sample, or the name of the column.
        ddof: covariances are divided by n - ddof, 0 or 1.
        neighbours: nearest samples that are asked for their label; 0 saves time.
        check_labels: whether classifiers that have not seen a sample are asked for its label;
            False saves time.
        embedding: a callable or module whose outputs are scored instead of the data as they are.
        memory: bytes that scoring may use besides the features.
        device: auto, cpu or cuda.
        options: how the data are read: those of ``rarefy.tools.samples``.

    Returns:
        A DataFrame with one row per sample, in the order of the data. ``influence`` is what a
        class's squared covariance norm loses without the sample; compare samples of different
        classes by ``percentile``. ``label_issue`` says whether a label is in doubt,
        ``given_probability`` how likely it is (lowest first to look at), ``suggested_label`` what
        it might be instead. ``docs/influence.md`` says what each column is good for.

    Example:
        >>> X, y = load_wine(return_X_y=True)
        >>> y[0] = 2  # a wrong label
        >>> table = rarefy.influence(X, y)
        >>> table.loc[table["label_issue"], ["label", "suggested_label"]].to_dict("index")
        {0: {'label': '2', 'suggested_label': '0'}}
    """
    from rarefy.tools.samples.features import embed

    wanted = options.get("standardize")
    if embedding is not None and wanted in (None, True, False):  # (else it is refused below)
        options["standardize"] = False
    samples = as_samples(data, labels, **options)
    settings = ScoreSettings(ddof, neighbours, check_labels, memory, device)
    if embedding is not None:
        samples = embed(samples, embedding, device=str(resolve_device(device)))
        samples = standardized(samples, True) if wanted else samples
    return score_samples(samples, settings).table


def score_samples(
    samples: Samples,
    settings: ScoreSettings | None = None,
    *,
    state: Path | None = None,
    progress: Callable[[float], None] | None = None,
    deadline: float | None = None,
) -> ScoredSamples:
    """The same for samples at hand. ``state``: a folder in which an interrupted scoring goes on.
    ``progress`` is told shares of the work as they are done; ``deadline`` is a time of
    ``time.monotonic``, after which ``OutOfTime`` is raised."""
    settings = settings or ScoreSettings()
    device = resolve_device(settings.device)
    began = time.monotonic()
    _need_room(samples)

    def late() -> bool:
        return deadline is not None and time.monotonic() > deadline

    asked = references_of(samples) if settings.neighbours else 0
    checked = settings.check_labels and not why_unchecked(samples)
    parts = {"scores"} | ({"neighbours"} if asked else set()) | ({"labels"} if checked else set())
    whole = sum(SHARES[part] for part in parts)

    def done(part: str) -> Callable[[float], None]:
        return lambda share: progress and progress(share * SHARES[part] / whole)

    try:
        scores = score_classes(
            samples.features,
            samples.labels,
            len(samples.classes),
            scale=samples.scale,
            ddof=settings.ddof,
            memory=settings.memory,
            device=device,
            state=state,
            content="" if state is None else short_hash(samples.ids),
            progress=done("scores"),
            deadline=late,
        )
    except UsageError as error:
        if str(error).startswith("features:"):  # by whose rows it was
            raise UsageError(f"{samples.name}: {error}") from None
        raise
    near = None
    if asked:
        near = neighbour_labels(
            samples,
            settings.neighbours,
            device,
            progress=done("neighbours"),
            deadline=late,
        )
    found = None
    if checked:
        found = check_labels(samples, device, progress=done("labels"), deadline=late)
    table = add_triage(_table(samples, scores, near, found), settings.rules)[list(COLUMNS)]
    notes = [*samples.notes, *_silent(samples, settings, near, found)]
    notes += silent_neighbours(table, settings.rules)
    table.attrs = _facts(samples, settings, scores, near, device, time.monotonic() - began)
    table.attrs["notes"] = notes
    table.attrs["label_accuracy"] = None if found is None else found.accuracy
    return ScoredSamples(samples, table, scores, settings.memory, device)


def _need_room(samples: Samples) -> None:
    need, free = len(samples) * ROW_BYTES, free_memory(torch.device("cpu"))
    if need > free:
        raise UsageError(
            f"{samples.name}: {LEFT_OUT} of {len(samples):,} samples take about "
            f"{spell_bytes(need)} of memory, {spell_bytes(free)} are free; --stream "
            "(rarefy.stream_influence) scores in pieces, without them"
        )


def influence_of(samples: Samples, device: torch.device, ddof: int = 1) -> ClassScores:
    """The numbers alone."""
    return score_classes(
        samples.features,
        samples.labels,
        len(samples.classes),
        scale=samples.scale,
        ddof=ddof,
        device=device,
    )


def _table(
    samples: Samples,
    scores: ClassScores,
    near: NeighbourLabels | None,
    found: CheckedLabels | None,
) -> pd.DataFrame:
    names = np.array([printable(name) for name in samples.classes], dtype=object)
    copied = copies_of(samples.ids, samples.labels)
    count = len(samples)
    return pd.DataFrame(
        {
            "id": samples.ids,
            "index": np.arange(count),
            # as objects: names of files may hold bytes that are no text
            "name": pd.Series(samples.files or [""] * count, dtype=object),
            "label": pd.Series(names[samples.labels], dtype=object),
            "influence": scores.influence,
            "percentile": percentiles(scores.influence, samples.labels),
            "own": scores.own,
            "shared": scores.shared,
            "shrinking": scores.shrinking,
            "distance": scores.distance,
            "mahalanobis": scores.mahalanobis,
            "norm": scores.norm,
            "disagreement": np.nan if near is None else near.disagreement,
            "neighbour_label": pd.Series(
                [""] * count if near is None else names[near.label], dtype=object
            ),
            "copies": copied.copies,
            "conflict": copied.conflict,
            "given_probability": np.nan if found is None else found.given_probability,
            "suggested_label": pd.Series(
                names[samples.labels if found is None else found.suggested], dtype=object
            ),
            "suggested_probability": np.nan if found is None else found.suggested_probability,
            "label_issue": False if found is None else found.issue,
            "likeliest": True if found is None else found.likeliest,
        }
    )


def _silent(
    samples: Samples,
    settings: ScoreSettings,
    near: NeighbourLabels | None,
    found: CheckedLabels | None,
) -> list[str]:
    """What was asked for and could not be said, and why."""
    notes = []
    if settings.neighbours and near is None:
        notes.append(f"{len(samples.classes):,} classes are too many to ask neighbours for labels")
    if settings.check_labels:
        notes += [why_unchecked(samples)] if found is None else found.notes
    return notes


class _Shared(list[Any]):
    """A list that copies of a table share: pandas copies its ``attrs`` at every step, item by item,
    which for 100,000 classes takes longer than scoring them."""

    def __deepcopy__(self, memo: object) -> _Shared:
        return self


def _facts(
    samples: Samples,
    settings: ScoreSettings,
    scores: ClassScores,
    near: NeighbourLabels | None,
    device: torch.device,
    seconds: float,
) -> dict[str, Any]:
    made = provenance(device, "float64", seconds)
    routes = pd.Series(scores.routes).value_counts()
    return {
        "data": samples.name,
        "source": Path(samples.source).name if samples.source else "",
        "split": samples.split,
        "fingerprint": samples.fingerprint,
        "samples": len(samples),
        "features": int(samples.features.shape[1]),
        "classes": _Shared(printable(name) for name in samples.classes),
        "counts": _Shared(samples.counts.tolist()),
        "ddof": settings.ddof,
        "neighbours": 0 if near is None else settings.neighbours,
        "neighbours_among": 0 if near is None else near.among,
        "neighbours_width": 0 if near is None else near.width,
        "routes": {str(route): int(count) for route, count in routes.items() if route},
        "memory": int(scores.memory),
        "seconds": round(seconds, 2),
        "left_out": list(samples.left_out),
        **{name: made[name] for name in ("torch", "numpy", "machine", "date")},
    }
