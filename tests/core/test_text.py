"""Texts from outside, fit to be printed and to name files."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.text import file_name, printable


def test_bytes_that_are_no_text_are_spelled_out() -> None:
    assert printable(b"caf\xe9".decode("utf-8", "surrogateescape")) == "caf\\xe9"
    assert printable("café") == "café"


@given(st.binary())
def test_whatever_names_a_file_can_be_printed(name: bytes) -> None:
    printable(name.decode("utf-8", "surrogateescape")).encode("utf-8")


def test_file_names_keep_what_every_system_allows() -> None:
    assert file_name("module:make net/v1.0_b-2") == "module-make-net-v1.0_b-2"
