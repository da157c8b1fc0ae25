"""The precision of matrix products is set for a block and put back, whatever happens inside."""

from __future__ import annotations

import pytest
import torch

from rarefy.core.errors import UsageError
from rarefy.core.precision import PRECISIONS, check_precision, matrix_products

CPU, CUDA = torch.device("cpu"), torch.device("cuda")  # a device's name needs no device
now = torch.get_float32_matmul_precision


@pytest.mark.parametrize("word", list(PRECISIONS))
def test_known_words_are_taken(word: str) -> None:
    check_precision(word)


@pytest.mark.parametrize("device", [CPU, CUDA])
def test_an_unknown_word_is_named_before_anything_is_done(device: torch.device) -> None:
    before = now()
    message = "^precision='bf16': must be one of float32, tf32$"
    with pytest.raises(UsageError, match=message), matrix_products("bf16", device):
        pytest.fail("the block must not be entered")
    assert now() == before


@pytest.mark.parametrize(("word", "expected"), [("float32", "highest"), ("tf32", "high")])
def test_a_gpu_multiplies_as_told_inside_the_block_only(word: str, expected: str) -> None:
    before = now()
    with matrix_products(word, CUDA):
        assert now() == expected
    assert now() == before


def test_blocks_may_be_nested() -> None:
    before = now()
    with matrix_products("tf32", CUDA):
        with matrix_products("float32", CUDA):
            assert now() == "highest"
        assert now() == "high"
    assert now() == before


def test_an_error_inside_does_not_leave_the_precision_changed() -> None:
    before = now()
    with pytest.raises(ZeroDivisionError), matrix_products("tf32", CUDA):
        raise ZeroDivisionError
    assert now() == before


def test_a_cpu_is_left_alone() -> None:
    before = now()
    with matrix_products("tf32", CPU):
        assert now() == before
    assert now() == before
