"""``rarefy.granularity``: what is compared when nothing is said, and what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import rarefy
from rarefy.core.errors import UsageError
from rarefy.data.images import ImageSet
from rarefy.tools.granularity.api import USUALLY_MADE, _labels, _usual_target

SMALL: dict[str, Any] = {
    "samples": 160,
    "network": "lenet",
    "epochs": 2,
    "seeds": 2,
    "features": "pixels",
    "device": "cpu",
}


pytestmark = pytest.mark.usefixtures("here")


def nested(images: int = 120, **levels: tuple[int, ...]) -> ImageSet:
    """``levels``: of each of the 6 classes the label at that level."""
    labels = torch.arange(images) % 6
    found = {}
    for name, mapped in levels.items():
        names = tuple(f"{name}{number}" for number in range(max(mapped) + 1))
        found[name] = (torch.tensor(mapped)[labels], names)
    pixels = torch.zeros(images, 1, 2, 2, dtype=torch.uint8)
    return ImageSet(pixels, labels, tuple("abcdef"), levels=found)


@pytest.mark.slow
def test_a_run_has_rows_advice_and_a_store_that_is_gone_on_with() -> None:
    found = rarefy.granularity("digits", **SMALL)
    assert found.finished and found.path == Path("runs/granularity-digits-parity-lenet")
    names = ["target", "once", "class", "kmeans-within:2", "random:10"]
    assert found.frame["labels"].tolist() == names and found.frame["n"].tolist() == [2] * 5
    assert (found.frame["images_shown"] > 0).all()
    told = found.experiment.parameters()
    assert (told["tune_epochs"], told["tune_rate"]) == (1, pytest.approx(0.02 / 5))
    assert found.advice.sentence.startswith("cannot tell: ") and found.advice.level is None
    assert any("144" not in one and "14 images per class" in one for one in found.advice.warnings)
    more = rarefy.granularity("digits", **{**SMALL, "seeds": 3})
    assert more.cells == more.cells_done == 15
    assert more.dataset["test_accuracy"].isel(seed=slice(2)).equals(found.dataset["test_accuracy"])


def test_the_coarsest_level_is_the_target_and_all_finer_ones_are_compared() -> None:
    images = nested(pair=(0, 0, 1, 1, 2, 2), half=(0, 0, 0, 0, 1, 1))
    assert _usual_target(images) == "half"
    usual = _labels(images, "half", None, USUALLY_MADE)
    assert usual == ("target", "once", "pair", "class", "kmeans-within:2", "random:6")
    assert _labels(images, "pair", None, ()) == ("target", "once", "class")
    # a level across the target is asked for, not taken
    across = nested(half=(0, 0, 0, 1, 1, 1), odd=(0, 1, 2, 0, 1, 2))
    assert _labels(across, "half", None, ()) == ("target", "once", "class")
    both = ("target", "once", "class", "odd")
    assert _labels(across, "half", ["class", "odd"], ()) == both


def test_a_set_whose_classes_are_the_coarsest_has_them_as_target() -> None:
    labels = torch.arange(60)
    images = nested(60)
    finer = {"sub": (labels % 12, tuple(map(str, range(12))))}
    images = ImageSet(images.images, images.labels, images.classes, levels=finer)
    assert _usual_target(images) == "class"
    # ten images per id at least
    assert _labels(images, "class", None, ["random"]) == ("target", "once", "sub", "random:6")


def test_without_a_hierarchy_it_says_how_to_give_one() -> None:
    with pytest.raises(UsageError, match=r"levels: class \(6\)\); --hierarchy FILE .* child,par"):
        _usual_target(nested())


def test_what_cannot_be_is_told_before_anything_is_written() -> None:
    across = nested(half=(0, 0, 0, 1, 1, 1), odd=(0, 1, 2, 0, 1, 2))
    with pytest.raises(UsageError, match=r"target 'half' is no ancestor of level 'odd': label 'o"):
        _labels(across, "half", ["odd"], ())
    with pytest.raises(UsageError, match="levels='half': is the target"):
        _labels(across, "half", ["half"], ())
    for words, options in {
        "unknown level 'clas'; did you mean 'class'": {"levels": ["clas"]},
        "unknown level 'party'; did you mean 'parity'": {"target": "party"},
        "unknown made labels 'kmean'": {"made": ["kmean:2"]},
        "more clusters than samples: target class 'even' has 7": {"made": ["kmeans-within:99"]},
        "more clusters than samples: there are 14\\d": {"made": ["random:145"]},
        "there is no embedding none.npy": {"features": "none.npy"},
        "features='pixel': must be target, pixels, an emb": {"features": "pixel"},
        "checkpoints=.* must rise and end with 1": {"checkpoints": (0.5,)},
    }.items():
        with pytest.raises(UsageError, match=words):
            rarefy.granularity("digits", **{**SMALL, **options})
    assert not list(Path().iterdir())


def test_an_embedding_is_clustered(tmp_path: Path) -> None:
    import numpy as np

    from rarefy.tools.image_data import on_device

    labels = on_device("digits", torch.device("cpu")).train.labels.numpy()
    # two digits of each parity apart from the others
    np.save("own.npy", np.stack([labels < 4, np.zeros(len(labels))], axis=1).astype(np.float32))
    options = {**SMALL, "seeds": 1, "features": "own.npy", "made": ["kmeans-within:2"]}
    found = rarefy.granularity("digits", levels=[], **options)
    row = found.frame.set_index("labels").loc["kmeans-within:2"]
    assert row["classes"] == 4 and row["agreement"] == 1
    assert 20 < row["smallest"] < 36  # two digits of five, of 144 images
    np.save("own.npy", np.zeros((7, 2)))
    with pytest.raises(UsageError, match="own.npy: an embedding of 7 x 2; .* 1,438 rows"):
        rarefy.granularity("digits", levels=[], out="other", **options)
    assert not Path("other").exists()
