"""Samples and filters without vectors train and test like those with vectors, in law.

Whatever training does is a function of inner products, so agreement is looked for in what comes out
at the end: losses, errors, coefficients, responses. Draws differ, so laws are compared, over seeds.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from same_law import assert_same_law
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.data.class_noise import ClassNoise
from rarefy.data.gram_samples import check_gaussian, gram_class_noise, gram_signal_noise
from rarefy.data.noise_spectrum import Spectrum, special_spectrum, spectrum_for
from rarefy.data.patches import PatchSamples, labels_by_size
from rarefy.data.signal_noise import SignalNoise
from rarefy.measure.coefficients import accumulated_coefficients
from rarefy.measure.generalisation import generalisation
from rarefy.measure.noise_neurons import own_responses
from rarefy.nets.patch_cnn import initial_filters
from rarefy.train.forms import train_unpruned

RUNS, M, STEPS = 400, 4, 40
SIZES = (3, 9, 5)
F64 = torch.float64
WIDE = Context(dtype=F64)


def draws(first: int, runs: int = RUNS) -> Draws:
    return Draws(range(first, first + runs), dtype=F64)


def outcome(
    samples: PatchSamples,
    initial: Tensor,
    fresh: Callable[[int, int], PatchSamples],
    form: str,
    lr: float,
) -> dict[str, Tensor]:
    """What a training shows, one number per run."""
    last = train_unpruned(
        samples,
        initial,
        1 / M,
        lr,
        STEPS,
        WIDE,
        form=form,
        trackers={"loss": lambda state: state.loss},
        coefficients=True,
    )
    filters = last.parameters["filters"]
    held = accumulated_coefficients(last.parameters["coefficients"], samples)
    test = generalisation(filters, fresh, 120, 1 / M)
    own = own_responses(filters, samples)
    classes = samples.classes
    special = filters[..., classes : 2 * classes]
    return {
        "training loss": last.records["loss"][:, -1],
        "test loss": test.loss,
        "test error": test.error,
        "error of the first class": test.class_error[:, 0],
        "largest gamma": held.gamma.amax(dim=(1, 2, 3)),
        "mean rho": held.rho.mean(dim=(1, 2, 3)),
        "largest rho": held.rho.amax(dim=(1, 2, 3)),
        "own responses": own.mean(dim=(1, 2)),
        "largest own response": own.amax(dim=(1, 2)),
        "least own response": own.amin(dim=(1, 2)),
        "initial responses": own_responses(initial, samples).std(dim=(1, 2)),
        "length of initial filters": initial.flatten(1).norm(dim=1),
        "length of filters": filters.flatten(1).norm(dim=1),
        "along special directions": special.abs().amax(dim=(1, 2, 3)),
    }


def agree(found: dict[str, Tensor], expected: dict[str, Tensor], *without: str) -> None:
    for name, values in found.items():
        if name not in without:
            assert_same_law(values, expected[name], name)


# ------------------------------------------------------------------------------------ class noise


def uneven(d: int) -> Spectrum:
    """Two kinds of noise besides the special directions: the last class has none of the first."""
    noise = special_spectrum(torch.tensor([[2.0, 1.0, 3.0]]), d, 3, 0.6)
    values = torch.cat([noise.eigenvalues, noise.eigenvalues[..., -1:]], dim=2)
    values[:, -1, 6] = 0
    return Spectrum(values, torch.tensor([[1.0] * 6 + [(d - 6) // 3, d - 6 - (d - 6) // 3]]))


SPECTRA: dict[str, Callable[[int], Spectrum]] = {
    "one kind": lambda d: special_spectrum(0.6, d, 3, 0.6),
    "special directions": lambda d: spectrum_for(5.0, d, 3, 0.6),
    "two kinds": uneven,
}


@pytest.mark.quick("special directions-fewer than samples", "two kinds-regular")
@pytest.mark.parametrize("d", [60, 24, 8], ids=["regular", "singular", "fewer than samples"])
@pytest.mark.parametrize("kind", SPECTRA)
def test_class_noise_trains_and_tests_like_plain_vectors_in_law(kind: str, d: int) -> None:
    """n = 17 samples of unequal classes and K m = 12 filters: more than d, or fewer."""
    spectrum = SPECTRA[kind](d)
    labels = labels_by_size(torch.tensor([SIZES]))
    strength = torch.tensor([[0.5, 1.0, 1.5]], dtype=F64).expand(RUNS, -1)
    lr = 60.0 / d
    world = gram_class_noise(draws(0), labels, M, spectrum, strength)
    assert world.samples.noise.shape == (RUNS, 17, 6 + (len(spectrum.count[0]) - 6) * (17 + 12))
    other = draws(0)

    def fresh(data: ClassNoise, those: Draws) -> Callable[[int, int], PatchSamples]:
        test = (torch.arange(120) % 3)[None]
        return lambda count, chunk: data.sample(those, test[:, :count], "test", chunk)

    found = outcome(world.samples, 0.2 * world.filters, fresh(world.data, other), "dual", lr)
    plain = draws(10**6)
    data = ClassNoise(spectrum.table(), strength)
    start = 0.2 * initial_filters(plain, 3, M, d)
    expected = outcome(data.sample(plain, labels), start, fresh(data, plain), "primal", lr)
    agree(found, expected)


def test_silent_directions_are_left_out_and_change_nothing_else() -> None:
    """Filters are shorter by what no sample ever shows of them."""
    spectrum = special_spectrum(2.0, 80, 3, 0.6, rank=20)
    assert spectrum.silent.tolist() == [80 - 23]
    labels = labels_by_size(torch.tensor([SIZES]))
    strength = torch.ones(RUNS, 3, dtype=F64)
    world = gram_class_noise(draws(0), labels, M, spectrum, strength)
    test = (torch.arange(120) % 3)[None]
    found = outcome(
        world.samples,
        0.2 * world.filters,
        lambda count, chunk: world.data.sample(draws(0), test, "test", chunk),
        "dual",
        2.0,
    )
    plain, data = draws(10**6), ClassNoise(spectrum.table(), strength)
    expected = outcome(
        data.sample(plain, labels),
        0.2 * initial_filters(plain, 3, M, 80),
        lambda count, chunk: data.sample(plain, test, "test", chunk),
        "primal",
        2.0,
    )
    agree(found, expected, "length of filters", "length of initial filters")


def test_a_run_draws_the_same_alone_and_in_any_batch() -> None:
    """Whatever the others' eigenvalues and counts are, kinds without directions included."""
    labels, strength = labels_by_size(torch.tensor([SIZES])), torch.ones(3, 3, dtype=F64)
    values = torch.cat([uneven(30).eigenvalues] * 3)
    values[1, :, 6] = 0
    count = torch.tensor([[1.0] * 6 + own for own in ([9.0, 15.0], [24.0, 0.0], [1.0, 1e9])])
    together = gram_class_noise(draws(5, 3), labels, M, Spectrum(values, count), strength)
    for run in range(3):
        rows = slice(run, run + 1)
        alone = gram_class_noise(
            draws(5 + run, 1), labels, M, Spectrum(values[rows], count[rows]), strength[rows]
        )
        assert torch.equal(alone.filters[0], together.filters[run])
        assert torch.equal(alone.samples.noise[0], together.samples.noise[run])
        assert torch.equal(alone.data.eigenvalues[0], together.data.eigenvalues[run])


def test_sets_drawn_out_of_one_have_the_same_axes() -> None:
    strength, spectrum = torch.ones(2, 3, dtype=F64), special_spectrum(2.0, 10**9, 3)
    small, large = (
        gram_class_noise(
            draws(3, 2), labels_by_size(torch.tensor([[2, 2, last]])), M, spectrum, strength, 20
        )
        for last in (4, 16)
    )
    assert torch.equal(small.filters, large.filters)
    assert torch.equal(small.samples.noise, large.samples.noise[:, :8])
    assert torch.equal(small.data.eigenvalues, large.data.eigenvalues)


def test_lengths_and_angles_in_a_billion_of_directions() -> None:
    """|xi|^2 is tr(A^T A) within 1/sqrt(d), a cosine of two vectors 1/sqrt(d): so are theirs."""
    d, labels = 10**9, labels_by_size(torch.tensor([SIZES]))
    spectrum = spectrum_for(torch.tensor([1.0, 5.0]), d, 3)
    world = gram_class_noise(draws(0, 2), labels, M, spectrum, torch.ones(2, 3, dtype=F64))
    length = world.samples.noise.square().sum(dim=2)
    expected = spectrum.trace()[:, labels[0]]
    assert ((length / expected - 1).abs() < 6 * (2 / d) ** 0.5 + 1e-4).all()  # special: 1e-4
    filters = world.filters.flatten(1, 2)
    assert ((filters.square().sum(dim=2) / d - 1).abs() < 6 * (2 / d) ** 0.5).all()
    unit = torch.cat([world.samples.noise, filters], dim=1)
    unit = unit / unit.norm(dim=2, keepdim=True)
    cosine = unit @ unit.transpose(1, 2) - torch.eye(unit.shape[1], dtype=F64)
    assert cosine[0].abs().max() < 6 / d**0.5


# ----------------------------------------------------------------------------------- signal, noise


@pytest.mark.quick("singular")
@pytest.mark.parametrize("d", [60, 12, 5], ids=["regular", "singular", "fewer than samples"])
def test_signal_noise_trains_and_tests_like_plain_vectors_in_law(d: int) -> None:
    """002: n = 8 samples, T = 2 classes, m = 4 filters each."""
    n, classes = 8, 2
    ones = torch.ones(RUNS, dtype=F64)
    mu, sigma = 1.0 * ones, (2 / d**0.5) * ones
    world = gram_signal_noise(draws(0), n, (classes, M), d * ones, mu, sigma)
    found = outcome(
        world.samples,
        0.1 * world.filters,
        lambda count, chunk: world.data.sample(draws(0), count, "test", chunk),
        "dual",
        2.0,
    )
    plain, data = draws(10**6), SignalNoise(classes, d, mu, sigma)
    expected = outcome(
        data.sample(plain, n),
        0.1 * initial_filters(plain, classes, M, d),
        lambda count, chunk: data.sample(plain, count, "test", chunk),
        "primal",
        2.0,
    )
    # what comes after the signals is an axis like the others here, and turned ones differ
    agree(found, expected, "along special directions")


# ------------------------------------------------------------------------------------------- errors


def test_too_little_room_is_refused() -> None:
    labels, strength = labels_by_size(torch.tensor([[2, 2]])), torch.ones(1, 2)
    with pytest.raises(UsageError, match="room=3: must be at least the number of samples, 4"):
        gram_class_noise(draws(0, 1), labels, M, special_spectrum(1.0, 9, 2), strength, 3)


@pytest.mark.parametrize(
    ("law", "initialisation", "message"),
    [
        ("uniform", "gaussian", "law='uniform': without vectors only gaussian: .*--form primal"),
        ("gaussian", "default", "initialisation='default': without vectors only gaussian: .*prim"),
    ],
)
def test_what_cannot_be_turned_is_named(law: str, initialisation: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        check_gaussian(law, initialisation)
    assert "\n" not in str(caught.value)
    check_gaussian("gaussian", "gaussian")
