"""Which few are picked, and what probes trained on them say."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.measure.representation.few_shot import few_shot, pick_few
from rarefy.measure.representation.linear_probe import fit_linear, strength_path


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(1, 9), st.integers(0, 99))
def test_as_many_of_each_class_as_asked_or_all_it_has(labels, per_class, seed):
    labels = torch.tensor(labels, dtype=torch.int64)
    picked = pick_few(labels, 6, per_class, seed)
    assert len(set(picked.tolist())) == len(picked)
    counts, has = (torch.bincount(each, minlength=6) for each in (labels[picked], labels))
    assert (counts == has.clamp(max=per_class)).all()
    assert (labels[picked].diff() >= 0).all()  # class by class
    more = pick_few(labels, 6, per_class + 1, seed)
    assert set(picked.tolist()) <= set(more.tolist())


def test_every_sample_of_a_class_has_the_same_chance():
    labels = torch.tensor([0] * 4 + [1] * 10)
    hits = torch.zeros(14)
    for draw in range(600):
        hits[pick_few(labels, 2, 2, seed=5, draw=draw)] += 1
    # 600 draws: standard deviations 12.2 (of 300) and 9.8 (of 120); five of them are allowed
    assert (hits[:4] - 300).abs().max() < 61 and (hits[4:] - 120).abs().max() < 49
    assert pick_few(labels, 2, 2, 5).tolist() == pick_few(labels, 2, 2, 5).tolist()


def labelled(samples: int, seed: int, skip: int = -1) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(samples) % 4
    means = 1.5 * torch.randn(4, 10, generator=torch.Generator().manual_seed(77))
    rows = means[labels] + torch.randn(samples, 10, generator=generator)
    return rows[labels != skip], labels[labels != skip]


def test_each_draw_is_a_probe_chosen_on_validation_samples():
    train, validation, test = labelled(200, 0), labelled(100, 1), labelled(400, 2)
    strengths = (0.1, 1e-3)
    found = few_shot(train, validation, test, 4, 5, draws=3, seed=9, strengths=strengths)
    assert found.by_class.shape == (3, 4) and found.picked.tolist() == [5] * 4
    assert found.converged == (True,) * 3
    for draw in range(3):
        picked = pick_few(train[1], 4, 5, 9, draw)
        few = train[0][picked], train[1][picked]
        choice, _ = strength_path(few, validation, 4, strengths)
        assert found.choices[draw] == choice
        right = fit_linear(*few, 4, choice.best).predict(test[0]) == test[1]
        # cold or warm start: one sample of the 100 of a class may change sides
        expected = torch.stack([right[test[1] == c].double().mean() for c in range(4)])
        assert (found.by_class[draw] - expected).abs().max() <= 0.011
    assert found.mean == pytest.approx(float(found.by_class.mean()))
    torch.testing.assert_close(found.mean_by_class, found.by_class.mean(dim=0))
    assert len(set(found.each)) > 1
    # the test samples have no say in the choice
    other = few_shot(train, validation, labelled(40, 3), 4, 5, draws=3, seed=9, strengths=strengths)
    assert other.choices == found.choices


def test_missing_and_rare_classes():
    features, labels = labelled(200, 0, skip=2)
    rare = (labels != 3) | (torch.arange(len(labels)) == 2)
    train = features[rare], labels[rare]
    found = few_shot(train, labelled(100, 1), labelled(400, 2), 5, 5, draws=2, strengths=(0.01,))
    assert found.picked.tolist() == [5, 5, 0, 1, 0]
    assert found.by_class[:, 2].tolist() == [0, 0]
    assert found.by_class[:, 4].isnan().all()  # nothing to test it on
    assert found.mean == pytest.approx(float(found.by_class[:, :4].mean()))


def test_errors():
    pair = labelled(20, 0)
    with pytest.raises(UsageError, match="per_class=0: must be at least 1"):
        pick_few(pair[1], 4, 0)
    with pytest.raises(UsageError, match="draws=0: must be at least 1"):
        few_shot(pair, pair, pair, 4, 1, draws=0)
    bad = pair[0] * torch.nan
    for name, given_pairs in {
        "training": ((bad, pair[1]), pair, pair),
        "validation": (pair, (bad, pair[1]), pair),
        "test": (pair, pair, (bad, pair[1])),
    }.items():
        with pytest.raises(UsageError, match=f"{name} features: 20 of 20 rows"):
            few_shot(*given_pairs, 4, 1)
