"""Training by inner products (dual) is training by weights (primal), on the same drawn vectors.

In float64 every number agrees to 1e-9 of the largest of its kind: both forms add up the same terms
in another order, 60 steps of rounding at 1e-16 amplified by what training amplifies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import torch
from projected import projected_coefficients
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.data.class_noise import ClassNoise
from rarefy.data.noise_spectrum import special_spectrum, spectrum_for
from rarefy.data.patches import PatchSamples, labels_by_size
from rarefy.data.signal_noise import SignalNoise
from rarefy.measure.coefficients import accumulated_coefficients
from rarefy.measure.generalisation import scores_of
from rarefy.nets.patch_cnn import initial_filters, output_scale, responses
from rarefy.train.descent import State, Trajectory, descend
from rarefy.train.forms import by_responses, check_form, train_unpruned
from rarefy.train.gram_classifier import GramClassifier, is_cheaper, start_of
from rarefy.train.optimisers import Sgd
from rarefy.train.patch_classifier import PatchClassifier

RUNS, M, D, STEPS = 3, 5, 40, 60
SIZES = torch.tensor([[3, 9, 5]])
LABELS = labels_by_size(SIZES)
READS = [0, 1, 7, STEPS]
WIDE = Context(dtype=torch.float64)
NEAR = 1e-9

World = tuple[PatchSamples, PatchSamples, Tensor]
"""Training samples, fresh ones, initial filters."""


def draws(runs: int = RUNS) -> Draws:
    return Draws(range(20, 20 + runs), dtype=torch.float64)


def signal_noise(shared: bool) -> World:
    """002 with unequal classes: labels of their own, noise as it is drawn."""
    those = draws(1 if shared else RUNS)
    one = torch.ones(RUNS, dtype=torch.float64)
    data = SignalNoise(3, D, 1.5 * one, torch.tensor([0.1, 0.3, 0.6], dtype=torch.float64))
    samples = data.sample(those, LABELS.shape[1])
    samples = dataclasses.replace(samples, labels=LABELS.expand(len(those), -1))
    return samples, data.sample(those, 50, "test"), _start(those)


def class_noise(shared: bool, homogeneous: bool) -> World:
    """003 with unequal classes."""
    those = draws(1 if shared else RUNS)
    spectrum = special_spectrum(0.5, D, 3, 0.5)
    if not homogeneous:
        spectrum = spectrum_for(torch.tensor([3.5, 5.0, 40.0]), D, 3)
    strength = torch.tensor([[0.1, 1.0, 2.0]] * RUNS, dtype=torch.float64)
    data = ClassNoise(spectrum.table(), strength)
    fresh = data.sample(those, (torch.arange(50) % 3)[None], "test")
    return data.sample(those, LABELS), fresh, _start(those)


def _start(those: Draws) -> Tensor:
    return (0.1 * initial_filters(those, 3, M, D)).expand(RUNS, -1, -1, -1).clone()


WORLDS: dict[str, Callable[[bool], World]] = {
    "002": signal_noise,
    "003 one kind of noise": lambda shared: class_noise(shared, True),
    "003 special directions": lambda shared: class_noise(shared, False),
}


def trained(world: World, scale: float, form: str, steps: int = STEPS) -> Trajectory:
    samples, _, start = world
    lr = torch.tensor([0.1, 0.3, 0.6], dtype=torch.float64)[: len(start)] / (M * scale**2)

    def look(state: State) -> Tensor:
        return responses(state.parameters["filters"], samples.patches())

    return train_unpruned(
        samples,
        start,
        scale,
        lr,
        steps,
        WIDE,
        form=form,
        trackers={"responses": look, "loss": lambda state: state.loss},
        record=[read for read in READS if read <= steps],
        coefficients=True,
    )


def close(first: Tensor, second: Tensor) -> None:
    torch.testing.assert_close(first, second, rtol=0, atol=NEAR * float(second.abs().max()))


@pytest.mark.parametrize("combine", ["mean", "sum"])
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "apart"])
@pytest.mark.parametrize("name", WORLDS)
def test_both_forms_give_the_same_numbers(name: str, shared: bool, combine: str) -> None:
    world, scale = WORLDS[name](shared), output_scale(combine, M)
    samples, fresh, start = world
    assert samples.class_sizes()[0].tolist() == [3, 9, 5]
    primal, dual = (trained(world, scale, form) for form in ("primal", "dual"))
    # responses to every patch at every read, and so which filters are active on which patch
    seen, wanted = dual.records["responses"], primal.records["responses"]
    close(seen, wanted)
    certain = wanted.abs() > NEAR * wanted.abs().max()
    assert torch.equal((seen > 0) & certain, (wanted > 0) & certain)
    assert certain.double().mean() > 0.999
    moved = (wanted[:, 0] > 0) != (wanted[:, -1] > 0)
    assert moved.any()  # training has changed who is active: there was something to get wrong
    close(dual.records["loss"][:, 1:], primal.records["loss"][:, 1:])
    filters = [found.parameters["filters"] for found in (dual, primal)]
    close(*filters)
    # gamma and rho, accumulated in both forms, and read off the weights alone
    held = [
        accumulated_coefficients(found.parameters["coefficients"], samples)
        for found in (dual, primal)
    ]
    read_off = projected_coefficients(start, filters[1], samples)
    for part in ("gamma", "rho"):
        close(getattr(held[0], part), getattr(held[1], part))
        close(getattr(held[0], part), getattr(read_off, part))
    close(scores_of(filters[0], fresh, scale), scores_of(filters[1], fresh, scale))


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("name", WORLDS)
def test_a_run_trains_the_same_alone_and_in_a_batch(name: str, form: str) -> None:
    samples, fresh, start = WORLDS[name](False)
    together = trained((samples, fresh, start), 0.2, form)
    first = PatchSamples(
        *(getattr(samples, field.name)[:1] for field in dataclasses.fields(samples))
    )
    alone = trained((first, fresh, start[:1]), 0.2, form)
    for part in ("filters", "coefficients"):
        close(alone.parameters[part], together.parameters[part][:1])


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("shared", [True, False])
def test_steps_in_place_are_those_of_the_gradient(shared: bool, form: str) -> None:
    samples, _, start = signal_noise(shared)
    before, kind = start.clone(), GramClassifier if form == "dual" else PatchClassifier
    problem = kind.of(samples, 1.0)
    given = start_of(start, samples) if form == "dual" else {"filters": start}
    found = {}
    for guard in ("weights", "loss"):  # only the second may move weights where they lie
        found[guard] = descend(
            problem,
            given,
            lambda step: None,
            Sgd(torch.tensor([0.1, 0.0, 0.6], dtype=torch.float64)),
            STEPS,
            trackers={name: lambda state, name=name: state.parameters[name] for name in given},
            record=READS,
            guard=guard,
        )
    assert torch.equal(start, before)
    for name in given:
        close(found["loss"].records[name], found["weights"].records[name])
        assert not torch.equal(*found["loss"].records[name][0, :2])


def test_auto_is_the_form_that_takes_less_work() -> None:
    samples, _, _ = class_noise(True, True)  # 20 patches, 2 d = 80
    assert by_responses("auto", samples) and by_responses("dual", samples)
    assert not by_responses("primal", samples)
    data = ClassNoise(special_spectrum(0.5, 8, 2, 0.5).table(), torch.ones(1, 2))
    many = data.sample(Draws([1]), labels_by_size(torch.tensor([[10, 10]])))
    assert not by_responses("auto", many) and by_responses("dual", many)


def test_without_being_asked_for_coefficients_are_there_in_the_dual_form_alone() -> None:
    samples, _, start = class_noise(True, False)
    for form in ("primal", "dual"):
        found = train_unpruned(samples, start, 0.2, 0.1, 3, WIDE, form=form).parameters
        assert found["filters"].shape == start.shape
        assert ("coefficients" in found) == (form == "dual")
        with pytest.raises(KeyError):
            found["biases"]


def test_products_are_as_exact_as_asked_for_during_the_steps_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a GPU would be told; the first and last products stay in full."""
    told: list[str] = []
    monkeypatch.setattr(
        "rarefy.train.forms.matrix_products", lambda precision, device: _noting(told, precision)
    )
    samples, _, start = class_noise(True, False)
    train_unpruned(samples, start, 0.2, 0.1, 2, WIDE)
    assert told == []
    train_unpruned(samples, start, 0.2, 0.1, 2, WIDE, precision="tf32")
    assert told == ["in tf32", "out"]


class _noting:
    def __init__(self, told: list[str], precision: str) -> None:
        self.told, self.precision = told, precision

    def __enter__(self) -> None:
        self.told.append(f"in {self.precision}")

    def __exit__(self, *error: object) -> None:
        self.told.append("out")


def test_an_unknown_form_is_named() -> None:
    message = "form='gram': must be one of auto, primal, dual"
    samples, _, start = class_noise(True, True)
    for call in (
        lambda: check_form("gram"),
        lambda: train_unpruned(samples, start, 0.2, 0.1, 1, WIDE, form="gram"),
    ):
        with pytest.raises(UsageError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


# ---------------------------------------------------------------------------------------- the parts


def test_the_loss_of_responses_is_that_of_the_filters() -> None:
    samples, _, start = class_noise(True, False)
    by_weights = PatchClassifier.of(samples, 0.25).loss({"filters": start})
    by_gram = GramClassifier.of(samples, 0.25).loss(start_of(start, samples))
    torch.testing.assert_close(by_gram, by_weights, rtol=1e-12, atol=0)


def test_which_form_is_cheaper() -> None:
    one = torch.ones(1)
    data = SignalNoise(2, 8, one, one)
    assert is_cheaper(data.sample(Draws([1]), 13))  # 15 patches, 2 d = 16
    assert not is_cheaper(data.sample(Draws([1]), 14))


@pytest.mark.parametrize("shared", [True, False])
def test_the_smaller_product_is_taken_only_where_it_is_the_same(shared: bool) -> None:
    samples, _, start = signal_noise(shared)
    given = start_of(start, samples)
    short = GramClassifier.of(samples, 1.0)
    assert short.noise_apart
    found, expected = ({name: v.clone() for name, v in given.items()} for _ in range(2))
    short.step(found, 0.5)
    dataclasses.replace(short, noise_apart=False).step(expected, 0.5)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
    assert not torch.equal(found["responses"], given["responses"])
    changed = dataclasses.replace(samples, noise=samples.noise + 1e-9)
    assert not GramClassifier.of(changed, 1.0).noise_apart
