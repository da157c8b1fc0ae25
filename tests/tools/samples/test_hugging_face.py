"""Data sets that are read like Hugging Face's (a stand-in of the same few methods), and PyTorch's.

``datasets`` is not among the packages that this project installs: what is tested here is what
rarefy calls, and one test runs on the real thing where it is present.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, TensorDataset

from rarefy.core.errors import UsageError
from rarefy.tools.samples.hugging_face import from_hugging_face, load_hugging_face
from rarefy.tools.samples.pairs import from_pairs


class Stand:
    """Rows by slice as a dictionary of lists, columns by name: what ``datasets.Dataset`` has."""

    def __init__(self, columns: dict[str, list[Any]], names: dict[str, list[str]] | None = None):
        self.columns, self.asked = columns, []
        self.column_names = list(columns)
        self.features = {
            column: SimpleNamespace(names=(names or {})[column])
            if column in (names or {})
            else SimpleNamespace(dtype="any")
            for column in columns
        }
        self.info = SimpleNamespace(dataset_name="stand")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, rows: slice) -> dict[str, list[Any]]:
        self.asked.append(rows)
        part = {column: values[rows] for column, values in self.columns.items()}
        for values in part.values():
            if any(isinstance(value, Exception) for value in values):
                raise OSError("cannot identify image file")
        return part

    def select_columns(self, names: list[str]) -> Stand:
        assert set(names) <= set(self.columns)
        chosen = Stand({name: self.columns[name] for name in names})
        chosen.features, chosen.asked = self.features, self.asked
        return chosen


def _picture(seed: int, size: tuple[int, ...] = (8, 8, 3)) -> Image.Image:
    random = np.random.default_rng(seed)
    return Image.fromarray(random.integers(0, 256, size, dtype=np.uint8))


def test_images_with_class_names() -> None:
    pictures = [_picture(seed) for seed in range(600)]
    labels = [seed % 2 for seed in range(600)]
    stand = Stand(
        {"img": pictures, "text": ["t"] * 600, "label": labels}, {"label": ["cat", "dog", "none"]}
    )
    samples = from_hugging_face(stand)
    assert samples.features.shape == (600, 192)
    assert samples.features.dtype == np.uint8
    assert samples.classes == ("cat", "dog", "none")
    assert (samples.name, samples.image) == ("stand", (3, 8, 8))
    assert samples.images is not None
    assert (samples.images(5) == np.asarray(pictures[5])).all()
    # a look at the first row, then batches: never everything at once
    assert [rows.stop - rows.start for rows in stand.asked] == [1, 256, 256, 88]


def test_sizes_and_modes_of_images() -> None:
    grey = [_picture(1, (8, 8)), Image.fromarray(np.full((8, 8, 3), 9, dtype=np.uint8))]
    assert from_hugging_face(Stand({"image": grey, "label": [0, 1]})).image == (1, 8, 8)
    mixed = [_picture(1, (8, 8)), _picture(2), _picture(3, (9, 20, 3)), _picture(4, (8, 8, 4))]
    samples = from_hugging_face(Stand({"image": mixed, "label": [0, 1, 0, 1]}))
    assert samples.image == (3, 8, 8)
    assert from_hugging_face(Stand({"image": mixed, "label": [0, 1, 0, 1]}), size=5).image == (
        3,
        5,
        5,
    )
    large = [_picture(1, (90, 80, 3)), _picture(2)]
    assert from_hugging_face(Stand({"image": large, "label": [0, 1]})).image == (3, 32, 32)
    arrays = [np.full((3, 8, 8), 5, dtype=np.uint8), torch.zeros(1, 8, 8, dtype=torch.uint8)]
    assert from_hugging_face(Stand({"image": arrays, "label": [0, 1]})).image == (1, 8, 8)


def test_pixels_go_to_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = [_picture(1, (8, 8)), *(_picture(seed) for seed in range(2, 9))]
    stand = Stand({"image": pictures, "label": [0, 1] * 4})
    samples = from_hugging_face(stand, folder=tmp_path)
    assert isinstance(samples.features, np.memmap)
    # the grey beginning is gone
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pixels-3.json", "pixels-3.npy"]
    assert from_hugging_face(stand, folder=tmp_path).ids == from_hugging_face(stand).ids
    monkeypatch.setattr("rarefy.tools.samples.row_store.memory_limit", lambda: 1000)
    with pytest.raises(
        UsageError, match="pixels-3 of 8 samples would take 1.5 kB of memory, 1.0 kB"
    ):
        from_hugging_face(stand)


def test_images_that_cannot_be_read_are_listed() -> None:
    pictures = [_picture(0), OSError(), _picture(2), None, _picture(4)]
    stand = Stand({"image": pictures, "label": [0, 1, 1, 0, 0]})
    message = (
        r"2 of 5 images cannot be read \(counting from 0\): row 1 \(cannot identify.*\); "
        r"row 3 \(no image\); leave"
    )
    with pytest.raises(UsageError, match=message):
        from_hugging_face(stand, image="image")
    samples = from_hugging_face(stand, image="image", skip_bad=True)
    assert samples.labels.tolist() == [0, 1, 0]
    assert len(samples.left_out) == 2
    assert samples.notes == ("2 images that cannot be read were left out",)
    assert samples.images is not None
    assert (samples.images(2) == np.asarray(pictures[4])).all()


def test_numbers_and_embeddings() -> None:
    stand = Stand(
        {
            "a": [1, 2, 3],
            "e": [[1.5, 2.0], [3.0, 4.0], [5.0, 6.0]],
            "t": ["x", "y", "z"],
            "kind": ["u", "v", "u"],
        }
    )
    both = from_hugging_face(stand, label="kind")
    assert both.features.tolist() == [[1, 1.5, 2], [2, 3, 4], [3, 5, 6]]
    one = from_hugging_face(stand, "kind", columns=["e"])
    assert one.features.dtype == np.float32
    assert one.classes == ("u", "v")


def test_minus_one_is_a_label_only_where_classes_have_no_names() -> None:
    plain = Stand({"x": [1.0, 2.0, 3.0], "label": [-1, 1, 1]})
    assert from_hugging_face(plain).classes == ("-1", "1")
    named = Stand({"x": [1.0, 2.0, 3.0], "label": [-1, 1, 1]}, {"label": ["a", "b"]})
    with pytest.raises(
        UsageError, match=r"no label \(-1\) in row 0 .counting from 0.: is this a test split"
    ):
        from_hugging_face(named)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"x": [1, 2], "y": [0, 1]}, {}, "label: name its column, there is no column with class n"),
        (
            {"x": [1, 2], "label": [0, 1]},
            {"label": "labels"},
            "label='labels': no such column in the ",
        ),
        (
            {"x": [1, 2], "label": [0, 1]},
            {"columns": ["z"]},
            "columns='z': no such column.*it has x",
        ),
        ({"x": [1, 2], "label": [0, 1]}, {"image": "img"}, "image='img': no such column"),
        (
            {"x": [1, 2], "label": [0, 1]},
            {"image": "x", "columns": ["x"]},
            "give either columns or",
        ),
        (
            {"x": [1, 2], "label": [0, 1]},
            {"image": "x"},
            "an image column must hold images, not int",
        ),
        (
            {"x": [[1], [1, 2]], "label": [0, 1]},
            {},
            "columns='x': its lists must all have one length",
        ),
        ({"x": [1, None], "label": [0, 1]}, {}, "column 'x' has no value in row 1"),
        ({"x": ["a", "b"], "label": [0, 1]}, {}, "no column holds images or numbers .*: x"),
        ({"x": ["a", "b"], "label": [0, 1]}, {"columns": ["x"]}, "columns='x': must hold numbers"),
        ({"x": [], "label": []}, {}, "there are no samples"),
        ({"x": [1, 2], "label": [0, 1]}, {"size": 0}, "size=0: must be a whole number, at least 1"),
        ({"x": [1, 2], "label": [None, 1]}, {}, "no label in row 0"),
    ],
)
def test_what_is_wrong_with_a_set(
    columns: dict[str, list[Any]], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        from_hugging_face(Stand(columns), **options)


def test_other_objects() -> None:
    picture = _picture(0)
    two = Stand({"a": [picture] * 2, "b": [picture] * 2, "label": [0, 1]})
    with pytest.raises(
        UsageError, match=r"several columns hold images \(a; b\): name one as image"
    ):
        from_hugging_face(two)
    names = {"x": ["a", "b"], "y": ["a", "b"]}
    with pytest.raises(UsageError, match="there is 2 columns with class names"):
        from_hugging_face(Stand({"x": [0, 1], "y": [0, 1]}, names))
    splits = SimpleNamespace(column_names={"train": ["x"], "test": ["x"]})
    with pytest.raises(UsageError, match="dataset='splits test; train': give one of them"):
        from_hugging_face(splits)
    with pytest.raises(UsageError, match="must have rows by number, and no stream"):
        from_hugging_face(SimpleNamespace(column_names=["x"]))


def test_loading_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    module = ModuleType("datasets")

    def load_dataset(name: str, configuration: str | None, split: str) -> str:
        asked.append((name, configuration, split))
        if name == "none":
            raise ValueError("no such\ndata set")
        return "loaded"

    module.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    assert load_hugging_face("hf:owner/set@small", "test") == "loaded"
    assert load_hugging_face("hf:set") == "loaded"
    assert asked == [("owner/set", "small", "test"), ("set", None, "train")]
    with pytest.raises(UsageError, match=r"hf:none: cannot be loaded \(no such data set\)"):
        load_hugging_face("hf:none")
    with pytest.raises(UsageError, match="data='hf:': must be hf:NAME"):
        load_hugging_face("hf:")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        UsageError,
        match="hf:set: needs Hugging Face's datasets: pip install 'rarefy.hugging-face-data.'",
    ):
        load_hugging_face("hf:set")


@pytest.mark.skipif(
    importlib.util.find_spec("datasets") is None,
    reason="datasets is not installed: the stand-in above has the methods that are used",
)
def test_the_real_thing() -> None:
    import datasets

    features = datasets.Features(
        {"img": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    )
    rows = {"img": [_picture(seed) for seed in range(4)], "label": [0, 1, 1, 0]}
    samples = from_hugging_face(datasets.Dataset.from_dict(rows, features=features))
    assert samples.classes == ("cat", "dog")
    assert samples.image == (3, 8, 8)


# ---------------------------------------------------------------------------------- PyTorch's pairs


class Pairs(Dataset[Any]):
    def __init__(self, items: list[Any], classes: Any = None) -> None:
        self.items = items
        if classes is not None:
            self.classes = classes

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


def test_pairs_of_tensors(tmp_path: Path) -> None:
    images = torch.randint(0, 256, (6, 3, 4, 4), dtype=torch.uint8)
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    samples = from_pairs(TensorDataset(images, labels))
    assert (samples.features == images.flatten(1).numpy()).all()
    assert samples.name == "TensorDataset"
    assert samples.image == (3, 4, 4)
    stored = from_pairs(TensorDataset(images, labels), folder=tmp_path)
    assert isinstance(stored.features, np.memmap)
    assert stored.ids == samples.ids


def test_pairs_of_pictures_rows_numbers_and_names() -> None:
    pictures = from_pairs(Pairs([(_picture(seed), seed % 2) for seed in range(4)], ["cat", "dog"]))
    assert pictures.classes == ("cat", "dog")
    assert pictures.channels_last
    named = from_pairs(Pairs([([1.0, 2.0], "b", "more"), ((3.0, 4.0), "a", "more")]))
    assert named.classes == ("a", "b")
    single = from_pairs(Pairs([(1.0, 0), (2.0, np.int64(1))]))
    assert single.features.shape == (2, 1)
    assert from_pairs(Pairs([(1.0, 0), (2.0, 9)], ["a", "b"])).classes == ("0", "9")


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (Pairs([]), "there are no samples"),
        (Pairs([1, 2]), "dataset='item 0 is of type int': items must be pairs"),
        (
            Pairs([(torch.zeros(2), 0), (torch.zeros(3), 1)]),
            r"sample 1 has the shape \(3,\), the first",
        ),
        (Pairs([("text", 0), ("more", 1)]), "x of item 0: <U4': x must be numbers"),
        (Pairs([(1.0, torch.zeros(2))]), r"y of item 0: shape \(2,\)': y must be one label"),
        (iter([]), "dataset='list_iterator': must have a length"),
    ],
)
def test_bad_pairs(dataset: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        from_pairs(dataset)
