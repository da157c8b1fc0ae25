"""Pair similarity and the regression head against plain numpy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws, key
from rarefy.measure.downstream import (
    ACTIVE_SAMPLES,
    ErrorMoments,
    HeadMoments,
    LinearHead,
    MaskedMean,
    along,
    pair_cosines,
)

EXACT = 1e-9


def draws(runs: int = 3, name: str = "downstream") -> Draws:
    return Draws([key(name, run) for run in range(runs)], dtype=torch.float64)


def problem(runs: int = 3, n: int = 60, m: int = 7, targets: int = 4) -> tuple[Tensor, Tensor]:
    """Embeddings that carry the targets, with neurons of very different size and an offset."""
    made = draws(runs)
    t = made.normal("targets", (n, targets))
    mixing = made.normal("mixing", (targets, m))
    sizes = torch.logspace(-4, 3, m, dtype=torch.float64)
    f = (t @ mixing + 0.5 * made.normal("noise", (n, m)) + 2.0) * sizes
    return f, t + 1.5


def fitted(f: Tensor, t: Tensor, ridge: float = 0.0) -> LinearHead:
    moments = HeadMoments()
    moments.add(f, t)
    return moments.solve(ridge)


# --------------------------------------------------------------------------------------- similarity


def test_cosines_are_those_of_numpy() -> None:
    f_x, f_y = (draws().normal(name, (20, 5)) for name in ("x", "y"))
    cosine, defined = pair_cosines(f_x, f_y)
    assert defined.all() and cosine.shape == (3, 20)
    for run in range(3):
        for x, y, found in zip(f_x[run].numpy(), f_y[run].numpy(), cosine[run], strict=True):
            expected = x @ y / np.linalg.norm(x) / np.linalg.norm(y)
            assert float(found) == pytest.approx(expected, abs=1e-12)


def test_a_pair_with_a_zero_embedding_counts_0_and_is_told() -> None:
    f_x = torch.tensor([[[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [3e-30, 0.0]]])
    f_y = torch.tensor([[[2.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1e20, 1e20]]])
    cosine, defined = pair_cosines(f_x, f_y)
    assert defined.tolist() == [[True, False, False, True]]
    torch.testing.assert_close(cosine, torch.tensor([[1.0, 0.0, 0.0, 0.5**0.5]]))


def test_cosines_do_not_depend_on_size_nor_on_a_common_sign() -> None:
    f_x, f_y = (draws().normal(name, (20, 5)) for name in ("x", "y"))
    torch.testing.assert_close(pair_cosines(-3e5 * f_x, -1e-7 * f_y)[0], pair_cosines(f_x, f_y)[0])


def test_a_masked_mean_in_chunks_is_the_mean_of_what_was_counted() -> None:
    values = draws().normal("values", (30,))
    counted = values > 0.2
    counted[1] = False
    mean = MaskedMean()
    for part in (slice(0, 7), slice(7, 30)):
        mean.add(values[:, part], counted[:, part])
    assert float(mean.value[0]) == pytest.approx(float(values[0][counted[0]].mean()))
    assert torch.isnan(mean.value[1])  # nothing counted: no mean
    everything = MaskedMean()
    everything.add(values)
    torch.testing.assert_close(everything.value, values.mean(dim=1))


# --------------------------------------------------------------------------------------- regression


def test_the_head_is_least_squares_with_an_intercept() -> None:
    f, t = problem()
    head = fitted(f, t)
    for run in range(3):
        design = np.column_stack([f[run].numpy(), np.ones(f.shape[1])])
        expected = np.linalg.lstsq(design, t[run].numpy(), rcond=None)[0]
        found = head.predict(f)[run].numpy()
        np.testing.assert_allclose(found, design @ expected, atol=1e-7)
        np.testing.assert_allclose(head.coefficients[run].numpy(), expected[:-1], rtol=1e-6)
        np.testing.assert_allclose(head.intercept[run].numpy(), expected[-1], atol=1e-6)


def test_silent_constant_and_repeated_neurons_change_no_prediction() -> None:
    """What numpy's lstsq says of a design without full rank, on training and on fresh samples."""
    f, t = problem(n=80)
    silent = torch.zeros_like(f[:, :, :1])
    doubled = torch.cat([f, silent, silent + 7.0, -3 * f[:, :, 2:3]], dim=2)
    head, plain = fitted(doubled[:, :50], t[:, :50]), fitted(f[:, :50], t[:, :50])
    assert torch.equal(head.coefficients[:, 7], torch.zeros_like(head.coefficients[:, 7]))
    torch.testing.assert_close(head.predict(doubled), plain.predict(f), rtol=0, atol=1e-7)
    design = np.column_stack([doubled[0, :50].numpy(), np.ones(50)])
    solution = np.linalg.lstsq(design, t[0, :50].numpy(), rcond=None)[0]
    fresh = np.column_stack([doubled[0, 50:].numpy(), np.ones(30)])
    np.testing.assert_allclose(head.predict(doubled)[0, 50:].numpy(), fresh @ solution, atol=1e-6)


def test_a_network_of_silent_neurons_predicts_the_mean() -> None:
    _, t = problem()
    f = torch.zeros(3, 60, 7)
    torch.testing.assert_close(fitted(f, t).predict(f), t.mean(dim=1, keepdim=True).expand_as(t))


def test_a_neuron_that_fired_once_by_a_hair_cannot_ruin_the_head() -> None:
    """Least squares would give it a coefficient of any size: here one in the ten thousands, and an
    error of the order of its square where the neuron fires properly."""
    f, t = problem(n=100)
    rare = torch.zeros_like(f[:, :, :1])
    rare[:, 3] = 6e-5
    rare[:, 70] = 1.0
    both, train, test = torch.cat([f, rare], dim=2), slice(0, 60), slice(60, 100)
    head, plain = fitted(both[:, train], t[:, train]), fitted(f[:, train], t[:, train])
    assert torch.equal(head.coefficients[:, 7], torch.zeros_like(head.coefficients[:, 7]))
    torch.testing.assert_close(head.predict(both[:, test]), plain.predict(f[:, test]))


def test_a_neuron_counts_from_20_active_samples_on_counted_over_all_chunks() -> None:
    f, t = problem()
    assert ACTIVE_SAMPLES == 20
    for active, counts in ((19, False), (20, True)):
        g = f.clone()
        g[:, active:, 2] = 0.0
        moments = HeadMoments()
        for part in (slice(0, 12), slice(12, 60)):
            moments.add(g[:, part], t[:, part])
        assert bool((moments.solve().coefficients[:, 2] != 0).all()) is counts


def test_a_ridge_is_that_of_scikit_learn_on_standardised_columns() -> None:
    f, t = problem()
    head = fitted(f, t, ridge=0.3)
    standard = (f - f.mean(dim=1, keepdim=True)) / f.std(dim=1, keepdim=True, correction=0)
    for run in range(3):
        reference = Ridge(alpha=0.3 * f.shape[1]).fit(standard[run].numpy(), t[run].numpy())
        expected = reference.predict(standard[run].numpy())
        np.testing.assert_allclose(head.predict(f)[run].numpy(), expected, atol=1e-8)


def test_chunks_and_one_run_alone_give_the_same_head() -> None:
    f, t = problem()
    together, moments = fitted(f, t), HeadMoments()
    for part in (slice(0, 13), slice(13, 60)):
        moments.add(f[:, part], t[:, part])
    for head in (moments.solve(), fitted(f[1:2], t[1:2])):
        rows = slice(None) if len(head.intercept) == 3 else slice(1, 2)
        torch.testing.assert_close(
            head.coefficients, together.coefficients[rows], rtol=EXACT, atol=EXACT
        )


def test_one_target_serves_several_embeddings_of_a_run() -> None:
    """As the reads of one network have: (run, read, sample, m) beside (run, 1, sample, t)."""
    f, t = problem()
    reads = torch.stack([f, f[:, :, [0, 0, 1, 2, 3, 4, 5]]], dim=1)
    moments = HeadMoments()
    moments.add(reads, t[:, None])
    head = moments.solve()
    torch.testing.assert_close(head.predict(reads)[:, 0], fitted(f, t).predict(f))
    assert head.coefficients.shape == (3, 2, 7, 4) and head.intercept.shape == (3, 2, 4)


def test_errors_of_a_linear_function_follow_from_those_of_the_coordinates() -> None:
    f, t = problem()
    direction = draws().normal("direction", (4,))
    direction = direction / direction.norm(dim=1, keepdim=True)
    head, errors = fitted(f[:, :40], t[:, :40]), ErrorMoments()
    for part in (slice(40, 47), slice(47, 60)):
        errors.add(head.predict(f[:, part]), t[:, part])
    target = (t * direction[:, None]).sum(dim=2, keepdim=True)
    single = fitted(f[:, :40], target[:, :40]).predict(f[:, 40:])
    expected = (single - target[:, 40:]).square().mean(dim=(1, 2))
    torch.testing.assert_close(along(errors.error, direction), expected, rtol=1e-6, atol=1e-9)
    variance = target[:, 40:, 0].var(dim=1, correction=0)
    torch.testing.assert_close(along(errors.covariance, direction), variance)
    squared = (head.predict(f) - t)[:, 40:].square().mean(dim=1)
    torch.testing.assert_close(errors.error.diagonal(dim1=1, dim2=2), squared)


@pytest.mark.parametrize(
    ("samples", "ridge", "message"),
    [
        (7, 0.0, "samples=7: must be more than the 7 neurons of the head"),
        (19, 0.0, "samples=19: must be at least 20: a neuron active on fewer has no coefficient"),
        (60, -1.0, "ridge=-1.0: must be finite and at least 0"),
        (60, float("inf"), "ridge=inf: must be finite and at least 0"),
    ],
)
def test_a_head_that_cannot_be_fitted_is_refused(samples: int, ridge: float, message: str) -> None:
    f, t = problem()
    with pytest.raises(UsageError) as caught:
        fitted(f[:, :samples], t[:, :samples], ridge)
    assert str(caught.value) == message
