"""Whatever a person has, by text or as an object, and the nearest names for what nobody knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from rarefy.core.errors import UsageError
from rarefy.tools.samples.opening import as_samples, open_samples

X = np.arange(12.0).reshape(4, 3) ** 2
Y = np.array([0, 1, 1, 0])


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with everything in it, from which paths are short."""
    monkeypatch.chdir(tmp_path)
    np.save("features.npy", X)
    np.save("labels.npy", Y)
    np.savez("set.npz", X=X, y=Y)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=Y)
    frame.to_csv("table.csv", index=False)
    frame.to_parquet("table.parquet")
    Path("notes.txt").write_text("nothing")
    for name in ("cat", "dog"):
        Path("pets", name).mkdir(parents=True)
        for number in range(3):
            pixels = np.full((4, 4), 10 * number + len(name) + ord(name[0]), dtype=np.uint8)
            Image.fromarray(pixels).save(Path("pets", name, f"{number}.png"))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "options", "shape"),
    [
        ("digits", {}, (1438, 64)),
        ("digits", {"split": "test"}, (359, 64)),
        ("pets", {}, (6, 16)),
        ("pets?size=2", {}, (6, 4)),
        (Path("pets"), {"size": 2, "skip_bad": True}, (6, 4)),
        ("features.npy", {}, (4, 3)),
        ("features.npy", {"labels": "labels.npy"}, (4, 3)),
        ("set.npz", {}, (4, 3)),
        ("table.csv", {"label": "kind"}, (4, 3)),
        ("table.parquet", {"label": "kind", "columns": ["a"], "standardize": True}, (4, 1)),
    ],
)
def test_by_what_the_text_is(
    files: Path, text: str | Path, options: dict[str, Any], shape: tuple[int, int]
) -> None:
    assert open_samples(text, **options).features.shape == shape


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "diigts",
            {},
            "unknown data set 'diigts'; did you mean 'digits'.*nor is there a file or fo",
        ),
        (
            "pets/none",
            {},
            "unknown data set 'pets/none'.*nor is there a file or folder of that name",
        ),
        ("", {}, "unknown data set ''"),
        (
            "notes.txt",
            {},
            "notes.txt: is no kind of file that is read here .they end in .npy, .npz",
        ),
        ("none.csv", {"label": "kind"}, "there is no file none.csv"),
        ("none.csv", {}, "there is no file none.csv"),
        ("none.npy", {}, "there is no file none.npy"),
        ("table.csv", {}, "label=None: table.csv: name the column that has the classes"),
        ("table.csv", {"label": "knid"}, "label='knid': no such column.*did you mean 'kind'"),
        (
            "table.csv",
            {"label": "kind", "split": "test"},
            "split='test': does not fit tables, which",
        ),
        (
            "features.npy",
            {"label": "kind"},
            "label='kind': does not fit .npy files, which take lab",
        ),
        ("set.npz", {"size": 3}, "size=3: does not fit .npz files"),
        ("digits", {"label": "kind"}, "label='kind': does not fit images, which take split, size"),
        ("digits", {"standardize": True}, "standardize=True: does not fit images, whose pixels"),
        ("pets?sise=2", {}, "unknown option of a folder 'sise'; did you mean 'size'"),
    ],
)
def test_nearest_names_and_options_that_do_not_fit(
    files: Path, text: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        open_samples(text, **options)


def test_labels_of_an_array_must_be_found(files: Path) -> None:
    Path("labels.npy").unlink()
    with pytest.raises(UsageError, match="labels=None: name the .npy file with the labels of feat"):
        open_samples("features.npy")


def test_hugging_face_sets_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stand:
        column_names = ["x", "label"]

        def __len__(self) -> int:
            return 3

        def __getitem__(self, rows: slice) -> dict[str, list[float]]:
            return {"x": [1.0, 2.0, 3.0][rows], "label": [0, 1, 1][rows]}

    asked = []
    monkeypatch.setattr(
        "rarefy.tools.samples.opening.load_hugging_face",
        lambda text, split: asked.append((text, split)) or Stand(),
    )
    samples = open_samples("hf:owner/set", split="valid", label="label")
    assert asked == [("hf:owner/set", "valid")]
    assert samples.name == "owner/set"
    assert as_samples(Stand()).as_read.tolist() == [[1], [2], [3]]
    assert as_samples(Stand(), "label").labels.tolist() == [0, 1, 1]


def test_objects(files: Path) -> None:
    samples = as_samples(X, Y)
    assert as_samples(samples) is samples
    assert as_samples("table.csv", label="kind").as_read.tolist() == X.tolist()
    assert as_samples(X.tolist(), Y.tolist(), names=list("abcd")).files == tuple("abcd")
    assert as_samples(torch.tensor(X), torch.tensor(Y)).as_read.tolist() == X.tolist()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert as_samples(frame, Y).feature_names == ("a", "b", "c")
    assert as_samples(frame.assign(kind=Y), "kind", columns=["b"]).features.shape == (4, 1)
    pairs = TensorDataset(torch.tensor(X), torch.tensor(Y))
    assert as_samples(pairs).as_read.tolist() == X.tolist()
    for data in (X, X.tolist(), torch.tensor(X), frame, frame["a"]):
        with pytest.raises(UsageError, match="labels=None: must be given: one label per sample"):
            as_samples(data)


def test_labels_of_text(files: Path) -> None:
    """They are never passed over: a file or an array for an array, a column for a table."""
    other = np.array(["p", "q", "q", "q"])
    np.save("other.npy", other)
    for given in (other, other.tolist(), "other.npy", Path("other.npy")):
        samples = as_samples("features.npy", given)
        assert (samples.classes, samples.labels.tolist()) == (("p", "q"), [0, 1, 1, 1])
        assert samples.notes == ()
    beside = ("labels: from labels.npy beside features.npy",)
    assert as_samples("features.npy").notes == open_samples("features.npy").notes == beside
    assert as_samples("table.csv", "kind").labels.tolist() == Y.tolist()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=Y)
    assert as_samples(frame, label="kind").labels.tolist() == Y.tolist()
    with pytest.raises(UsageError, match="labels='3 labels': must be 4"):
        as_samples("features.npy", other[:3])


def test_a_column_called_label_needs_no_name(files: Path) -> None:
    frame = pd.DataFrame(X, columns=["f0", "f1", "f2"]).assign(label=["a", "07", "07", "a"])
    for name, write in (("own.csv", frame.to_csv), ("own.parquet", frame.to_parquet)):
        write(name, index=False)  # type: ignore[operator]
        samples = open_samples(name)
        assert samples.classes[samples.labels[1]] == "07" and samples.features.shape == (4, 3)
        assert samples.notes == (f"labels: column 'label' of {name}",)
        assert open_samples(name, label="label").notes == ()
    with pytest.raises(UsageError, match=r"label=None: table.parquet: name the column that has"):
        open_samples("table.parquet")


class Columns:
    """Stands for a Hugging Face set."""

    column_names = ["x", "label"]


@pytest.mark.parametrize(
    ("data", "labels", "options", "message"),
    [
        ("table.csv", Y, {}, "labels='ndarray': does not fit tables, which take label, col"),
        ("table.csv", "kind", {"label": "kind"}, "label='kind': give either label or labels"),
        ("set.npz", Y, {}, "labels='ndarray': does not fit .npz files, which take split"),
        ("digits", Y, {}, "labels='ndarray': does not fit images, which take split, size"),
        ("digits", "kind", {}, "labels='kind': does not fit images"),
        ("hf:x", Y, {}, "labels='ndarray': does not fit Hugging Face sets, which take split, lab"),
        ("digits", None, {"classes": ["a"]}, "classes='list': does not fit files and names, which"),
        (Columns(), Y, {}, "labels='ndarray': does not fit Hugging Face sets, name the column"),
        (Columns(), None, {"split": "test"}, "split='test': does not fit Hugging Face sets, which"),
        (Columns(), "x", {"label": "x"}, "label='x': give either label or labels"),
        ("samples", Y, {}, "labels='ndarray': does not fit samples that are made already$"),
        ("samples", None, {"size": 3}, "size=3: does not fit samples that are made already$"),
        (X, Y, {"standardize": 2}, "standardize=2: must be True, False or None"),
        ("samples", None, {"standardize": True}, "standardize=True: does not fit samples that are"),
        (X, Y, {"label": "kind"}, "label='kind': does not fit arrays"),
        (pd.DataFrame(X), "0", {"size": 3}, "size=3: does not fit tables, which take columns, na"),
        (TensorDataset(torch.ones(2, 2)), None, {"size": 3}, "size=3: does not fit data sets of p"),
        (X, Y, {"nmaes": list("abcd")}, "unknown option 'nmaes'; did you mean 'names'"),
        ("digits", None, {"spilt": "test"}, "unknown option 'spilt'; did you mean 'split'"),
        ("samples", None, {"X": X}, "unknown option 'X'"),
    ],
)
def test_nothing_that_is_given_is_passed_over(
    files: Path, data: object, labels: object, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        as_samples(
            as_samples(X, Y) if isinstance(data, str) and data == "samples" else data,
            labels,
            **options,
        )
    assert "\n" not in str(raised.value)


def test_options_without_a_value_are_not_given() -> None:
    samples = as_samples(X, Y, standardize=False, split=None)
    assert as_samples(samples, size=None, skip_bad=False) is samples
