"""Features that a model sees: any callable or ``nn.Module`` instead of the samples' own numbers."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rarefy.core.errors import OutOfTime, UsageError, bad_value
from rarefy.core.progress import Progress
from rarefy.core.settings import resolve_device
from rarefy.data.images.ids import short_hash
from rarefy.nets.named import current_folder_importable, named_callable
from rarefy.tools.samples.messages import in_a_line, rows_text
from rarefy.tools.samples.row_store import RowStore
from rarefy.tools.samples.samples import Samples

Embedding = Callable[[Tensor], Any]
SAME = 1e-2
"""Of a row's length: what an earlier run stored and what the model gives now may differ by rounding
(TF32: 1e-3), but another model differs by as much as the row itself."""


def embed(
    samples: Samples,
    embedding: Embedding | nn.Module | str,
    *,
    batch: int = 256,
    device: str | None = None,
    folder: str | Path | None = None,
    limit: int | None = None,
    progress: bool = False,
    deadline: float | None = None,
) -> Samples:
    """The same samples, names and ids with the embedding's outputs as features, float32 (n, k).

    embedding: called without gradients on batches of float32: images (b, channels, height, width)
    in [0, 1], or rows (b, d); a module is put into ``eval`` mode for the time. As text,
    ``module:callable``: a function of such a batch, or one without arguments that makes a model.
    Whatever it returns is flattened to one row per sample.
    device: by default where the module is. limit: bytes of memory that the result may take.
    folder: the result goes there instead, and a run that was interrupted is gone on with.
    deadline: a time of ``time.monotonic``, after which ``OutOfTime`` is raised.
    """
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise bad_value("batch", batch, "must be a whole number, at least 1")
    called = embedding if isinstance(embedding, str) else _name_of(embedding)
    model = embedding_by_name(embedding) if isinstance(embedding, str) else embedding
    if not callable(model):
        raise bad_value("embedding", called, "must be callable, or a text module:callable")
    with _evaluating(model, device) as place:

        def rows_of(first: int, last: int) -> NDArray[np.float32]:
            inputs = _inputs(samples, first, last).to(place)
            try:
                outputs = model(inputs)
            except Exception as error:
                small = "; try a smaller batch" if "out of memory" in str(error) else ""
                found = f"given a batch {tuple(inputs.shape)} it raised {type(error).__name__}"
                raise bad_value(
                    "embedding", called, f"{found}: {in_a_line(error)}{small}"
                ) from error
            return _rows(outputs, called, first, last)

        features = _filled(samples, rows_of, batch, called, folder, limit, progress, deadline)
    return replace(
        samples,
        features=features,
        as_read=None,
        scale=1.0,
        image=None,
        channels_last=False,
        feature_names=None,
        notes=(*samples.notes, f"features: {called}, {features.shape[1]} numbers per sample"),
        # of the content, not of what a model makes of it: ids survive another model
        ids_from=lambda: samples.ids,
    )


def embedding_by_name(text: str) -> Embedding:
    """``module:callable``: a callable that needs an argument is the embedding itself, one that
    needs none (a class of modules, a function that loads one) is called to make it."""
    try:
        with current_folder_importable():
            found = named_callable(text)
            if not _needs_argument(found):
                made = found()
                if not callable(made):
                    kind = type(made).__name__
                    raise bad_value("network", text, f"must make something callable, not {kind}")
                return made
    except UsageError as error:
        # the same search finds networks to train, under that name
        raise UsageError(str(error).replace("network=", "embedding=", 1)) from error
    except (Exception, SystemExit) as error:
        raise bad_value("embedding", text, f"making it raised {in_a_line(error)}") from error
    return found


# ------------------------------------------------------------------------------------------- inside


def _filled(
    samples: Samples,
    rows_of: Callable[[int, int], NDArray[np.float32]],
    batch: int,
    called: str,
    folder: str | Path | None,
    limit: int | None,
    progress: bool,
    deadline: float | None,
) -> NDArray[Any]:
    count = len(samples)
    head = rows_of(0, min(batch, count))
    spec = {}
    if folder is not None:
        # the fingerprint is the same in any order, the rows of the file are not
        order = short_hash(samples.ids)
        spec = {"data": samples.fingerprint, "order of samples": order, "embedding": called}
    store = RowStore((count, head.shape[1]), np.float32, folder, spec, "features", limit)
    before = store.done
    if before:
        kept = np.asarray(store.rows[: min(len(head), store.done)])
        apart = np.linalg.norm(kept - head[: len(kept)], axis=1)
        if (apart > SAME * np.linalg.norm(head[: len(kept)], axis=1)).any():
            raise UsageError(
                f"{folder}: the features in it are not those that {called} gives now; choose "
                "another folder, or remove it"
            )
    else:
        store.rows[: len(head)] = head
        store.advance(len(head))
    shown = Progress("embedding", count, before) if progress else nullcontext()
    with shown as bar:
        if bar is not None:
            bar.advance(store.done - before)
        while store.done < count:
            if deadline is not None and time.monotonic() > deadline:
                store.flush()
                some = f"; {store.done} of {count} samples are kept" if folder is not None else ""
                raise OutOfTime(f"stopped while samples were embedded{some}")
            first, last = store.done, min(store.done + batch, count)
            rows = rows_of(first, last)
            if rows.shape[1] != head.shape[1]:
                found = (
                    f"{rows.shape[1]} numbers per sample from {first} on, {head.shape[1]} before"
                )
                raise bad_value("embedding", called, f"must always give as many: {found}")
            store.rows[first:last] = rows
            store.advance(last)
            if bar is not None:
                bar.advance(last - first)
    return store.finished()


def _inputs(samples: Samples, first: int, last: int) -> Tensor:
    rows = np.asarray(samples.features[first:last]).astype(np.float32)
    rows *= np.float32(samples.scale)
    inputs = torch.from_numpy(rows)
    if samples.image is None:
        return inputs
    channels, height, width = samples.image
    if samples.channels_last:
        return inputs.reshape(-1, height, width, channels).permute(0, 3, 1, 2).contiguous()
    return inputs.reshape(-1, channels, height, width)


def _rows(outputs: Any, called: str, first: int, last: int) -> NDArray[np.float32]:
    """(last - first, k), checked."""
    if isinstance(outputs, Tensor):
        outputs = outputs.detach().float().cpu().numpy()
    if not isinstance(outputs, np.ndarray) or outputs.dtype.kind not in "iufb":
        kind = type(outputs).__name__
        hint = "; choose one of its parts in a function around it"
        found = f"must return one tensor or array of numbers per batch, not {kind}{hint}"
        raise bad_value("embedding", called, found)
    count = last - first
    if outputs.ndim == 0 or len(outputs) != count:
        found = f"shape {outputs.shape} for {count} samples"
        raise bad_value("embedding", called, f"must return one row per sample, not {found}")
    with np.errstate(over="ignore"):
        rows = outputs.reshape(count, -1).astype(np.float32, copy=False)
    if not rows.shape[1]:
        raise bad_value("embedding", called, "returns rows without numbers")
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        where = rows_text(first + bad)
        raise bad_value("embedding", called, f"returns NaN or infinite numbers for {where}")
    return rows


@contextlib.contextmanager
def _evaluating(model: Embedding | nn.Module, device: str | None) -> Iterator[torch.device]:
    """Without gradients, a module in ``eval`` mode and on the device; afterwards as it was."""
    if not isinstance(model, nn.Module):
        with torch.no_grad():
            yield resolve_device(device or "cpu")
        return
    tensors = [*model.parameters(), *model.buffers()]
    home = tensors[0].device if tensors else torch.device("cpu")
    place = home if device is None else resolve_device(device)
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.to(place).eval()
        with torch.no_grad():
            yield place
    finally:
        model.to(home)
        for module, training in modes:
            module.training = training


def _needs_argument(found: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):  # some built-in functions hide theirs
        return True
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(each.default is each.empty and each.kind in kinds for each in parameters)


def _name_of(embedding: object) -> str:
    return str(getattr(embedding, "__name__", type(embedding).__name__))
