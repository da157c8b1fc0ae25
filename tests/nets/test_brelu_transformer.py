"""The network of eq. (4) against the same formulas written out sample by sample."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_contrastive import naive_brelu, naive_mixed_tokens, random_attention
from torch import Tensor

from rarefy.nets.brelu_transformer import (
    Attention,
    brelu,
    brelu_derivative,
    encode,
    mix_tokens,
    mixed_latents,
    preactivations,
)

EXACT = 1e-12
"""float64: sums of a few dozen terms of order one"""
D1 = 5


def normals(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


# -------------------------------------------------------------------------------------------- BReLU


@settings(deadline=None, max_examples=25)
@given(st.floats(-10, 10), st.floats(0, 10))
def test_brelu_is_zero_up_to_the_threshold_and_shifted_beyond_it(s: float, b: float) -> None:
    value, threshold = torch.tensor(s, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
    assert float(brelu(value, threshold)) == naive_brelu(s, b)
    assert float(brelu(-value, threshold)) == -naive_brelu(s, b)  # odd


def test_without_a_bias_a_neuron_is_linear() -> None:
    s = normals(100)
    assert torch.equal(brelu(s, torch.zeros(())), s)


def test_the_derivative_is_autograds() -> None:
    s, b = normals(200).requires_grad_(), normals(200, seed=1).abs()
    (slope,) = torch.autograd.grad(brelu(s, b).sum(), s)
    found = brelu_derivative(s.detach(), b)
    assert torch.equal(found, slope)
    assert 0 < found.mean() < 1


def test_on_the_threshold_the_derivative_is_zero_as_autograd_has_it() -> None:
    s, b = torch.tensor([1.0, -1.0, 0.0], requires_grad=True), torch.tensor([1.0, 1.0, 0.0])
    (slope,) = torch.autograd.grad(brelu(s, b).sum(), s)
    assert brelu_derivative(s.detach(), b).tolist() == slope.tolist() == [0.0, 0.0, 0.0]


# ---------------------------------------------------------------------------------------- attention


@settings(deadline=None, max_examples=20)
@given(
    tokens=st.integers(1, 7),
    seed=st.integers(0, 100),
    scale=st.floats(-3, 3),
    identity=st.booleans(),
)
def test_attention_weights_are_positive_and_sum_to_one(
    tokens: int, seed: int, scale: float, identity: bool
) -> None:
    attention = Attention(scale=scale) if identity else random_attention(D1, scale=scale)
    weights = attention.weights(normals(2, 3, tokens, D1, seed=seed))
    assert weights.shape == (2, 3, tokens, tokens) and (weights > 0).all()
    torch.testing.assert_close(
        weights.sum(dim=-1), torch.ones(2, 3, tokens, dtype=torch.float64), rtol=0, atol=EXACT
    )


@pytest.mark.parametrize("tokens", [1, 2, 4, 5])
def test_scale_zero_is_the_plain_mean_over_tokens(tokens: int) -> None:
    weights = Attention(scale=0.0).weights(normals(2, 3, tokens, D1))
    assert torch.equal(weights, torch.full_like(weights, 1 / tokens))


def test_attention_of_the_paper_has_no_hidden_scale() -> None:
    x = normals(1, 1, 2, D1)
    first, second = x[0, 0]
    expected = torch.softmax(torch.stack([first @ first, first @ second]), dim=0)
    torch.testing.assert_close(Attention().weights(x)[0, 0, 0], expected, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("tokens", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("kind", ["identity", "shared", "own", "only query", "only value"])
def test_few_and_many_tokens_give_the_softmax_written_as_einsum(tokens: int, kind: str) -> None:
    """L <= 4 is summed in loops, L > 4 multiplied as matrices: one formula for both."""
    runs = 3
    full = random_attention(D1, runs if kind == "own" else None)
    attention = {
        "identity": Attention(scale=0.7),
        "only query": Attention(query=full.query),
        "only value": Attention(value=full.value),
    }.get(kind, full)
    x, w = normals(runs, 4, tokens, D1), normals(runs, 6, D1, seed=1)

    def applied(matrix: Tensor | None) -> Tensor:
        if matrix is None:
            return x
        return torch.einsum("kab,ksrb->ksra", matrix.expand(runs, D1, D1), x)

    scores = torch.einsum("ksra,ksta->ksrt", applied(attention.query), applied(attention.key))
    weights = torch.softmax(attention.scale * scores, dim=-1)
    found = attention.weights(x)
    torch.testing.assert_close(found, weights, rtol=EXACT, atol=EXACT)
    expected = torch.einsum("kma,ksrt,ksta->ksrm", w, weights, applied(attention.value))
    pre = preactivations(w, found, attention.values(x))
    torch.testing.assert_close(pre, expected, rtol=EXACT, atol=EXACT)
    numbers = normals(runs, 4, tokens, 6, seed=2)
    mixed = torch.einsum("ksrt,kstm->ksrm", weights, numbers)
    torch.testing.assert_close(mix_tokens(weights, numbers), mixed, rtol=EXACT, atol=EXACT)


def test_a_matrix_for_each_run_is_used_in_its_own_run() -> None:
    attention = random_attention(D1, runs=2)
    x = normals(1, 3, 2, D1).expand(2, -1, -1, -1)
    both = attention.weights(x)
    assert not torch.allclose(both[0], both[1])
    for run in range(2):
        assert attention.query is not None and attention.key is not None
        alone = Attention(attention.query[run], attention.key[run])
        torch.testing.assert_close(alone.weights(x[:1])[0], both[run], rtol=EXACT, atol=EXACT)


# ---------------------------------------------------------------------------------------- the whole


@pytest.mark.parametrize("tokens", [1, 3, 5])
@pytest.mark.parametrize("kind", ["identity", "shared", "own"])
def test_encode_is_equation_4_written_in_loops(tokens: int, kind: str) -> None:
    runs, samples, neurons = 2, 3, 4
    x = normals(runs, samples, tokens, D1)
    w = normals(runs, neurons, D1, seed=1)
    b = normals(runs, neurons, seed=2).abs() * 0.5
    attention = {
        "identity": Attention(),
        "shared": random_attention(D1),
        "own": random_attention(D1, runs),
    }[kind]
    found = encode(w, b, x, attention)
    assert found.shape == (runs, samples, neurons)
    silent = 0
    for run in range(runs):
        for sample in range(samples):
            mixed = naive_mixed_tokens(x[run, sample], attention, run)
            for neuron in range(neurons):
                parts = [
                    naive_brelu(float(w[run, neuron] @ z), float(b[run, neuron])) for z in mixed
                ]
                silent += parts.count(0.0)
                assert float(found[run, sample, neuron]) == pytest.approx(sum(parts), abs=EXACT)
    assert silent > 0  # the threshold played a part


def test_encode_in_float32_is_that_of_float64_rounded() -> None:
    x, w, b = normals(2, 5, 3, D1), normals(2, 4, D1, seed=1), normals(2, 4, seed=2).abs()
    double = encode(w, b, x, Attention())
    single = encode(w.float(), b.float(), x.float(), Attention())
    torch.testing.assert_close(single.double(), double, rtol=1e-5, atol=1e-5)


def test_mixed_latents_are_what_a_neuron_along_a_feature_sees() -> None:
    """With orthonormal features and no noise, <M_j, summed mixed token> is the mixed latent."""
    atoms = torch.linalg.qr(normals(1, D1, 3)).Q
    latents = torch.randint(
        -1, 2, (1, 6, 2, 3), generator=torch.Generator().manual_seed(3), dtype=torch.int64
    ).double()
    x = latents @ atoms.transpose(1, 2)[:, None]
    seen = encode(atoms.transpose(1, 2), torch.zeros(1, 3, dtype=torch.float64), x, Attention())
    torch.testing.assert_close(mixed_latents(x, latents, Attention()), seen, rtol=EXACT, atol=EXACT)
    plain = mixed_latents(x, latents, Attention(scale=0.0))
    torch.testing.assert_close(plain, latents.sum(dim=2), rtol=EXACT, atol=EXACT)
