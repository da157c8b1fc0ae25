"""Files of features: what is read is what was written, whatever classes and files are called."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from rarefy.core.text import printable
from rarefy.data.images import ImageSet
from rarefy.tools.longtail.features_file import ENDINGS, Outputs, TrainedBackbone
from rarefy.tools.longtail.sets import Parts
from rarefy.tools.samples.opening import open_samples
from rarefy.train.image_batches import Scaling

# (no zero bytes: no file system has them, and readers of text refuse them)
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
NAMES |= st.just("caf\udce9.png")  # a byte that is no text


def backbone(classes: tuple[str, str], files: tuple[str, ...], copies: int = 0) -> TrainedBackbone:
    """Pixels as features, 4 training images (two of them seen) and 2 test images, of which
    ``copies`` have the pixels of the first that was seen."""
    draws = torch.Generator().manual_seed(1)
    images = torch.randint(0, 256, (6, 1, 4, 4), generator=draws, dtype=torch.uint8)
    images[4 : 4 + copies] = images[0]
    labels = torch.tensor([0, 1, 0, 1, 0, 1])
    train = ImageSet(images[:4], labels[:4], classes, files[:4])
    test = ImageSet(images[4:], labels[4:], classes, files[4:])
    parts = Parts(
        train.take([0, 1]), train, labels[:4] > 1, test, (0, 1), (1, 1), None, (0.5,), (0.2,)
    )
    scaling = Scaling(parts.mean, parts.std)
    return TrainedBackbone(nn.Flatten(), parts, scaling, "flat", "simclr", True)


@given(
    st.lists(NAMES.filter(lambda name: name.strip()), min_size=2, max_size=2, unique_by=printable),
    st.lists(NAMES, min_size=6, max_size=6),
    st.sampled_from(ENDINGS),
)
def test_what_is_read_is_what_was_written(
    classes: list[str], files: list[str], ending: str
) -> None:
    one = backbone((classes[0], classes[1]), tuple(files))
    table = one.table()
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"out{ending}"
        assert Outputs(path).write(one, "test") == {"features": str(path)}
        label = {} if ending == ".npz" else {"label": "label", "names": "id"}
        found = open_samples(path, standardize=False, **label)
    expected = table.filter(regex=r"^f\d+$").to_numpy()
    assert np.array_equal(found.features.astype(np.float32), expected)
    read = [found.classes[each] for each in found.labels]
    if ending == ".csv":  # (what could be a formula has an apostrophe before it)
        read = [text if text in classes else text.removeprefix("'") for text in read]
    assert read == table["label"].tolist() == [printable(classes[each % 2]) for each in range(6)]
    if ending == ".parquet":
        assert found.files == tuple(map(printable, files))


def test_a_copy_of_what_was_seen_was_seen() -> None:
    names = ("one", "two"), tuple("abcdef")
    seen = ["seen", "seen", "unseen", "unseen"]
    assert backbone(*names).table()["pretraining"].tolist() == [*seen, "unseen", "unseen"]
    assert backbone(*names, copies=1).table()["pretraining"].tolist() == [*seen, "seen", "unseen"]
