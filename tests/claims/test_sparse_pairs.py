"""Accuracies are paired as they should be, spread is that of seeds, nobody judges its choice."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from sparse_results import made

from rarefy.core.errors import UsageError
from rarefy.measure.estimates import mean_interval
from rarefy.studies import get_study
from rarefy.studies.sparse.keep_curve.claims import held_out_best
from rarefy.studies.sparse.noise_grid.claims import GUESS
from rarefy.studies.sparse.pairs import FEWEST, band_gain, cautious, comparisons
from rarefy.studies.sparse.published import CNN_ON_CIFAR100
from rarefy.studies.sparse.readings import PLACES, Paired, at_test_noise, placed, without_noise
from rarefy.tools.image_data import on_device

SEEDS = 6
NOISE = (0.0, 0.2, 0.5, 5.0, 8.0)
SparseCifar100Noise = get_study("sparse-cifar100-noise")
CIFAR: Any = SparseCifar100Noise.at(
    "paper",
    noise=NOISE,
    test_noise=NOISE,
    keep=(1.0, 0.8, 0.3, 0.1),
    update=("project",),
    seeds=SEEDS,
)


def published_like(noise: float, test_noise: float, keep: float) -> float:
    level = max(noise, test_noise)
    if keep < 0.2:
        return 1.0 if level == 5 else -2.0 if level > 5 else -0.5
    return 1.0 if level <= 0.5 else 0.0


def test_there_is_always_a_dense_network_to_pair_with() -> None:
    with pytest.raises(UsageError, match=r"keep=\(0.5, 0.1\): must have 1, the dense network"):
        SparseCifar100Noise.at("paper", keep=(0.5, 0.1))
    assert SparseCifar100Noise.at("paper", keep=(0.5, 1.0)).parameters()["keep"] == (0.5, 1.0)


def test_halves_are_paired_as_the_whole_is() -> None:
    data = made(CIFAR, lambda noise, test, keep: 10 * test, spread=0.0, luck=lucky)
    part = data.isel(update=0, noise_resampling=0, noise=1)
    for half, more in enumerate((2.0, -1.0)):
        paired = at_test_noise(part, 0.21, half)  # the nearest is 0.2
        np.testing.assert_allclose(paired.levels, [0.2])
        np.testing.assert_allclose(paired.keeps, [1.0, 0.8, 0.3, 0.1])
        np.testing.assert_allclose(paired.difference(0.3)[:, 0], 2 + more, atol=1e-9)
        np.testing.assert_allclose(paired.difference(0.8)[:, 0], 2, atol=1e-9)
    np.testing.assert_allclose(at_test_noise(part, 0.2).difference(0.3)[:, 0], 2.5, atol=1e-9)


def lucky(half: int, keep: float) -> float:
    return (2.0, -1.0)[half] if keep == 0.3 else 0.0


def test_places_pick_the_diagonal_the_first_column_and_the_first_row() -> None:
    data = made(CIFAR, lambda noise, test, keep: 10 * noise + test, spread=0.0)
    one = data.isel(update=0, noise_resampling=0)
    expected = {"both": 11.0, "training": 10.0, "adapted": 10.0, "test": 1.0}
    assert expected.keys() == PLACES.keys()
    for place, slope in expected.items():
        paired = placed(one, place)
        np.testing.assert_allclose(paired.levels, NOISE)
        gains = paired.difference(0.3)
        np.testing.assert_allclose(gains, np.tile(slope * np.array(NOISE), (SEEDS, 1)), atol=1e-9)


def better_adapted(noise: float, keep: float) -> float:
    return 3 * noise if keep == 0.3 else 0.0


def test_statistics_of_clean_images_are_a_place_of_their_own() -> None:
    data = made(CIFAR, lambda noise, test, keep: -noise, spread=0.0, adapted=better_adapted)
    one = data.isel(update=0, noise_resampling=0)
    for part in (one, one.isel(noise=[3, 0, 4, 2, 1])):
        found = placed(part, "adapted")
        np.testing.assert_allclose(found.levels, NOISE)
        expected = np.tile(2 * np.array(NOISE), (SEEDS, 1))
        np.testing.assert_allclose(found.difference(0.3), expected, atol=1e-9)
        np.testing.assert_allclose(found.difference(0.8), -expected / 2, atol=1e-9)
        np.testing.assert_allclose(placed(part, "training").difference(0.3), -expected / 2)
    older = placed(one.drop_vars("clean_accuracy"), "adapted")
    assert older.difference(0.3).shape == (SEEDS, 0)  # results from before have no such place


def test_without_noise_is_asked_of_clean_statistics_where_there_are_any() -> None:
    data = made(CIFAR, lambda noise, test, keep: -noise, 0.0, luck=lucky, adapted=better_adapted)
    part = data.isel(update=0, noise_resampling=0).sel(noise=0.5)
    older = part.drop_vars("clean_accuracy")
    for half, more in ((None, 0.5), (0, 2.0), (1, -1.0)):
        found = without_noise(part, half)
        np.testing.assert_array_equal(found.levels, [0.0])
        np.testing.assert_allclose(found.keeps, [1.0, 0.8, 0.3, 0.1])
        np.testing.assert_allclose(found.difference(0.3)[:, 0], 1.0 + more, atol=1e-9)
        np.testing.assert_allclose(found.difference(0.8)[:, 0], -0.5, atol=1e-9)
        before = without_noise(older, half)
        np.testing.assert_array_equal(before.accuracy, at_test_noise(part, 0.0, half).accuracy)
        np.testing.assert_allclose(before.difference(0.3)[:, 0], -0.5 + more, atol=1e-9)


def test_the_order_of_axes_and_values_changes_nothing() -> None:
    data = made(CIFAR, published_like, spread=0.3)
    turned = data.transpose(*reversed(list(data.sizes)))
    shuffled = turned.isel(keep=[2, 0, 3, 1], noise=[4, 0, 2, 1, 3], test_noise=[1, 0, 4, 3, 2])
    assert CIFAR.verdicts(shuffled, "paper") == CIFAR.verdicts(data, "paper")


def test_pooled_spread_serves_cells_with_one_seed() -> None:
    data = made(CIFAR, published_like, spread=0.1)
    data["test_accuracy"].loc[{"noise": 0.2, "seed": slice(1, None)}] = np.nan
    found = comparisons(placed(data.isel(update=0, noise_resampling=0), "both"))
    (alone,) = [each for each in found if each.level == 0.2 and each.keep == 0.8]
    (other,) = [each for each in found if each.level == 0.5 and each.keep == 0.8]
    assert alone.apart is None and alone.apart_pooled is not None
    assert alone.pooled_half == pytest.approx(other.pooled_half * np.sqrt(SEEDS))
    # seeds share a std of 1 point that pairs do not see and independent trainings do
    assert alone.lone_half > 3 * alone.pooled_half
    assert alone.published_apart(100.0) and not alone.published_apart(1.0)


def test_a_spread_that_is_tiny_by_chance_is_not_believed() -> None:
    samples = np.array([1.0, 1.0, 1.001, np.nan])
    wide = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [np.nan, np.nan]])  # std 2 each
    own, found = mean_interval(samples), cautious(samples, wide)
    assert (found.mean, found.n) == (own.mean, 3) and own.low > 0 > found.low
    half = 4.302652729911275 * 2 / np.sqrt(3)  # Student's t with 2 degrees of freedom
    assert found.high - found.mean == pytest.approx(half) == pytest.approx(found.mean - found.low)


@pytest.mark.parametrize("alike", [np.zeros((4, 2)), np.full((4, 2), np.nan), np.zeros((4, 0))])
def test_its_own_spread_is_the_least(alike: np.ndarray) -> None:
    samples = np.array([1.0, 2.0, 4.0, 5.5])
    found, own = cautious(samples, alike), mean_interval(samples)
    np.testing.assert_allclose(found, own)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_under_three_seeds_there_is_no_interval(count: int) -> None:
    samples = np.array([1.0, 2.0, np.nan])[[*range(count), *([2] * (3 - count))]]
    found = cautious(samples, np.zeros((3, 2)))
    assert FEWEST == 3 and found.n == count
    assert np.isnan([found.low, found.high]).all() and np.isnan(found.mean) == (count == 0)


def test_no_seed_is_an_average_over_other_levels_than_the_rest() -> None:
    accuracy = np.zeros((3, 2, 2))
    accuracy[:, 0, 1], accuracy[:, 1, 1] = 1.0, 3.0
    accuracy[2, 1, 1] = np.nan
    gains, _ = band_gain(
        Paired(np.array([0.1, 0.2]), np.array([1.0, 0.5]), accuracy), 0.5, "moderate"
    )
    np.testing.assert_array_equal(gains, [2.0, 2.0, np.nan])


# -------------------------------------------------------------------------------- chosen and judged


KEEPS = np.append(1.0, np.linspace(0.9, 0.1, 9))


def on_halves(
    generator: np.random.Generator, trained: float, asked: float
) -> tuple[Paired, Paired]:
    """Ten equal keeps, five seeds: variances of luck in training, common to both halves, and of
    luck with the images of a half."""
    common = np.sqrt(trained) * generator.normal(0, 1, (5, 1, 10))
    first, second = (
        Paired(np.zeros(1), KEEPS, common + np.sqrt(asked) * generator.normal(0, 1, common.shape))
        for _ in range(2)
    )
    return first, second


@pytest.mark.parametrize("trained", [0.0, 0.5])
def test_a_seed_is_never_asked_about_its_own_choice(trained: float) -> None:
    """Choosing with the seeds and images that judge would find a gain far too often."""
    generator, total = np.random.default_rng(3), 300
    honest = naive = 0
    for _ in range(total):
        halves = on_halves(generator, trained, 1 - trained)
        honest += mean_interval(held_out_best(halves)[1]).low > 0
        whole = (halves[0].accuracy + halves[1].accuracy)[:, 0] / 2
        best = whole[:, 1:-1].mean(axis=0).argmax() + 1
        naive += mean_interval(whole[:, best] - whole[:, 0]).low > 0
    # 0.03 to 0.06 in many simulations, 0.025 if the choices were independent
    assert honest / total < 0.08 < naive / total


def test_what_one_half_chooses_the_other_judges() -> None:
    """Worked by hand: two seeds, each chosen for by the other one."""
    keeps = np.array([1.0, 0.5, 0.3, 0.1])
    first = Paired(np.zeros(1), keeps, np.array([[[50, 52, 51, 40]], [[60, 61, 64, 40.0]]]))
    second = Paired(np.zeros(1), keeps, np.array([[[50, 55, 51, 41]], [[60, 61, 66, 42.0]]]))
    words, gains, aboves = held_out_best((first, second))
    # seed 0: seed 1 prefers 0.3 on either half; seed 1: seed 0 prefers 0.5
    np.testing.assert_array_equal(gains, [(1 + 1) / 2, (1 + 1) / 2])
    np.testing.assert_array_equal(aboves, [(51 - 41 + 51 - 40) / 2, (61 - 42 + 61 - 40) / 2])
    assert words == "0.5 (2 times), 0.3 (2 times)"


def test_the_same_images_would_take_luck_for_a_gain() -> None:
    generator = np.random.default_rng(1)
    keeps, luck = np.array([1.0, 0.5, 0.3, 0.1]), np.array([0.0, 1.0, 0.0, -5.0])
    base = 50 + generator.normal(0, 0.01, (6, 1, 4))
    lucky, other = (Paired(np.zeros(1), keeps, base + luck * part) for part in (1.0, -0.2))
    words, fooled, _ = held_out_best((lucky, lucky))
    assert mean_interval(fooled).low > 0.9 and words == "0.5 (12 times)"
    assert mean_interval(held_out_best((lucky, other))[1]).high < 0


def test_one_seed_is_chosen_for_by_itself_but_on_other_images() -> None:
    keeps = np.array([1.0, 0.5, 0.3, 0.1])
    first = Paired(np.zeros(1), keeps, np.array([[[50, 55, 51, 40.0]]]))
    second = Paired(np.zeros(1), keeps, np.array([[[50, 48, 53, 40.0]]]))
    words, gains, _ = held_out_best((first, second))
    np.testing.assert_array_equal(gains, [(-2 + 1) / 2])
    assert words == "0.5 (1 times), 0.3 (1 times)"


# ---------------------------------------------------------------------------------------- constants


def test_the_published_numbers_are_those_of_the_paper() -> None:
    at = partial(CNN_ON_CIFAR100.at, "cifar100")
    assert at(0.4, 0.8) == 48.89 and at(0.4, 1.0) == 47.41
    assert CNN_ON_CIFAR100.difference("cifar100", 5.0, 0.1) == pytest.approx(1.07)
    assert np.isnan(at(0.25, 0.8)) and np.isnan(at(0.4, 0.7))
    assert np.isnan(CNN_ON_CIFAR100.at("digits", 0.5, 0.5))  # other images


def test_guessing_is_one_constant_answer() -> None:
    """Of MNIST's test images 1135 of 10,000 are ones; digits' test images come from the set."""
    assert GUESS["mnist"] == 11.35 and GUESS["cifar10"] == 10 and GUESS["cifar100"] == 1
    labels = on_device("digits", torch.device("cpu")).test.labels
    assert GUESS["digits"] >= 100 * float(torch.bincount(labels).max()) / len(labels) - 0.2
