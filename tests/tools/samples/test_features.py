"""Embeddings: what a model is given, what it may return, and going on after an interruption."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rarefy.core.errors import UsageError
from rarefy.data.images import load_images
from rarefy.tools.samples.arrays import from_arrays
from rarefy.tools.samples.features import embed, embedding_by_name
from rarefy.tools.samples.images import from_images
from rarefy.tools.samples.samples import Samples

ROWS = np.random.default_rng(0).standard_normal((10, 4)).astype(np.float32)


def _samples() -> Samples:
    return from_arrays(ROWS, np.arange(10) % 2, names=list("abcdefghij"))


def test_rows_through_a_function() -> None:
    samples = _samples()
    twice = embed(samples, lambda rows: 2 * rows, batch=3)
    np.testing.assert_allclose(twice.features, 2 * ROWS)
    assert twice.features.dtype == np.float32
    assert (twice.ids, twice.files) == (samples.ids, samples.files)
    assert twice.notes == ("features: <lambda>, 4 numbers per sample",)
    # whatever the batch, type and rank of what comes back
    for function in (
        lambda rows: rows.reshape(-1, 2, 2).double() * 2,
        lambda rows: (2 * rows).numpy(),
    ):
        np.testing.assert_allclose(embed(samples, function, batch=10).features, twice.features)
    assert embed(samples, lambda rows: rows.sum(dim=1)).features.shape == (10, 1)


def test_images_are_given_as_trainings_have_them() -> None:
    samples, data = from_images("digits"), load_images("digits")
    seen: list[Tensor] = []

    def keep(images: Tensor) -> Tensor:
        seen.append(images)
        return images.flatten(1)

    embedded = embed(samples, keep, batch=1000)
    assert torch.allclose(torch.cat(seen), data.train.images / 255)
    assert embedded.images is not None and samples.images is not None
    assert (embedded.images(4) == samples.images(4)).all()
    assert embedded.image is None and embedded.scale == 1.0


@pytest.mark.parametrize("last", [False, True])
def test_channels_come_first(last: bool) -> None:
    images = np.random.default_rng(0).integers(0, 256, (6, 3, 5, 7), dtype=np.uint8)
    given = np.ascontiguousarray(images.transpose(0, 2, 3, 1)) if last else images
    seen = embed(from_arrays(given, [0, 1] * 3), lambda some: some.flatten(1)).features
    np.testing.assert_allclose(seen, (images / 255).reshape(6, -1), atol=1e-6)


def test_modules_are_evaluated_and_left_as_they_were() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    model[1].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = [embed(_samples(), model, batch=batch).features for batch in (2, 10)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
    assert [module.training for module in model] == [True, False, True]
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    assert embed(_samples(), model, device="cpu").features.shape == (10, 3)
    if not torch.cuda.is_available():
        with pytest.raises(UsageError, match="no CUDA device here"):
            embed(_samples(), model, device="cuda")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda rows: rows[:2],
            r"must return one row per sample, not shape \(2, 4\) for 4 samples",
        ),
        (lambda rows: rows.sum(), r"must return one row per sample, not shape \(\) for 4"),
        (lambda rows: rows / 0, "returns NaN or infinite numbers for rows 0, 1, 2, 3"),
        (lambda rows: rows.double() * 1e300, "returns NaN or infinite numbers"),
        (
            lambda rows: {"a": rows},
            "must return one tensor or array of numbers per batch, not dict",
        ),
        (lambda rows: rows[:, :0], "returns rows without numbers"),
        (
            lambda rows: rows[:, : len(rows)],
            "must always give as many: 2 numbers per sample from 8 on, 4",
        ),
        (
            lambda rows: rows @ rows,
            r"given a batch \(4, 4\) it raised|given a batch \(2, 4\) it raised",
        ),
        (
            lambda rows: 1 / 0,
            r"given a batch \(4, 4\) it raised ZeroDivisionError: division by zero",
        ),
        (7, "embedding='int': must be callable, or a text module:callable"),
    ],
)
def test_bad_embeddings_are_told(function: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        embed(_samples(), function, batch=4)


def test_nan_of_a_later_batch_has_its_own_row() -> None:
    def late(rows: Tensor) -> Tensor:
        return torch.where(rows == float(ROWS[7, 0]), torch.nan, rows)

    with pytest.raises(UsageError, match="infinite numbers for row 7"):
        embed(_samples(), late, batch=4)


@pytest.mark.parametrize("batch", [0, -1, 2.0, True])
def test_bad_batches(batch: Any) -> None:
    with pytest.raises(UsageError, match="batch=.*: must be a whole number, at least 1"):
        embed(_samples(), nn.Identity(), batch=batch)


# --------------------------------------------------------------------------------------- on disk


class Counting:
    """Doubles rows, and fails when it was called so many times."""

    def __init__(self, factor: float = 2.0, calls: int = 100) -> None:
        self.factor, self.calls, self.rows = factor, calls, 0

    def __call__(self, rows: Tensor) -> Tensor:
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        self.rows += len(rows)
        return self.factor * rows


def test_an_interrupted_embedding_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rarefy.tools.samples.row_store.SAVE_EVERY_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        embed(_samples(), Counting(calls=3), batch=2, folder=tmp_path)
    rest = Counting()
    found = embed(_samples(), rest, batch=2, folder=tmp_path)
    assert rest.rows == 6  # the four that were left, and the first two again, to compare
    assert isinstance(found.features, np.memmap)
    assert not found.features.flags.writeable
    np.testing.assert_allclose(found.features, 2 * ROWS)
    again = Counting()
    embed(_samples(), again, batch=4, folder=tmp_path)
    assert again.rows == 4


def test_another_model_or_other_data_are_refused(tmp_path: Path) -> None:
    embed(_samples(), Counting(), folder=tmp_path)
    embed(_samples(), Counting(2.0001), folder=tmp_path)  # as if rounded elsewhere
    with pytest.raises(
        UsageError, match="not those that Counting gives now; choose another folder"
    ):
        embed(_samples(), Counting(2.1), folder=tmp_path)
    other = from_arrays(ROWS + 1, np.arange(10) % 2)
    with pytest.raises(UsageError, match="features.npy: was made from another data"):
        embed(other, Counting(), folder=tmp_path)
    with pytest.raises(UsageError, match="was made from another embedding"):
        embed(_samples(), nn.Identity(), folder=tmp_path)


def test_another_order_is_refused_even_behind_the_first_batch(tmp_path: Path) -> None:
    embed(_samples(), Counting(), batch=2, folder=tmp_path)
    turned = _samples().take([0, 1, *range(9, 1, -1)])
    assert turned.fingerprint == _samples().fingerprint
    with pytest.raises(UsageError, match="features.npy: was made from another order of samples"):
        embed(turned, Counting(), batch=2, folder=tmp_path)


def test_too_large_for_memory() -> None:
    with pytest.raises(
        UsageError, match="features of 10 samples would take 160 bytes of memory, 100"
    ):
        embed(_samples(), nn.Identity(), limit=100)


def test_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    embed(_samples(), nn.Identity(), batch=2, progress=True)
    assert "embedding" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------- by name


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    monkeypatch.chdir(tmp_path)

    def write(name: str) -> None:
        (tmp_path / f"{name}.py").write_text(
            "import torch\n"
            "def double(rows): return 2 * rows\n"
            "def made(): return double\n"
            "def model(width=3): return torch.nn.Linear(4, width)\n"
            "def number(): return 7\n"
            "def broken(): raise OSError('no weights')\n"
            "ready = torch.nn.Identity()\n"
        )

    return write


def test_embeddings_by_name(mine: Callable[[str], None]) -> None:
    mine("mine_a")
    for text in ("mine_a:double", "mine_a:made"):
        np.testing.assert_allclose(embed(_samples(), text).features, 2 * ROWS)
    assert embed(_samples(), "mine_a:model").features.shape == (10, 3)
    assert isinstance(embedding_by_name("torch.nn:Flatten"), nn.Flatten)
    assert embed(_samples(), "torch:tanh").features.shape == (10, 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mine_b:duoble", "embedding='mine_b:duoble': there is no 'duoble'.*did you mean 'double'"),
        ("nowhere:double", "embedding='nowhere:double': no module 'nowhere'"),
        ("double", "embedding='double': must be module:callable"),
        ("mine_b:number", "embedding='mine_b:number': must make something callable, not int"),
        ("mine_b:broken", "embedding='mine_b:broken': making it raised no weights"),
        ("mine_b:ready", "embedding='mine_b:ready': is a network; name the class or function"),
    ],
)
def test_bad_names(mine: Callable[[str], None], text: str, message: str) -> None:
    mine("mine_b")
    with pytest.raises(UsageError, match=message):
        embedding_by_name(text)
