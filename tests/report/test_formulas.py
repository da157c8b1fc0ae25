"""Formulas in plain words, typeset three ways; what is not a formula stays."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.mathtext import MathTextParser

from rarefy.report.formulas import mathml, mathtext, tags
from rarefy.report.templating import typeset


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sigma_p^2 d", "σ<sub>p</sub><sup>2</sup> d"),
        ("|A_k^T A_j|_F^2", "|A<sub>k</sub><sup>T</sup> A<sub>j</sub>|<sub>F</sub><sup>2</sup>"),
        ("T n^(-1/4) >= 2", "T n<sup>−1/4</sup> ≥ 2"),
        ("d^(C_m - r^2)", "d<sup>C<sub>m</sub> − r<sup>2</sup></sup>"),
        ("mu/(sigma_p sqrt(d))", "μ/(σ<sub>p</sub> √(d))"),
        ("a K in a window, my_file.csv, the beta test of x.y", "a K in a window, my_file.csv, "
         "the β test of x.y"),
    ],
)  # fmt: skip
def test_plotly_gets_tags(text: str, shown: str) -> None:
    assert tags(text, html.escape) == shown


def test_pages_get_mathml_and_papers_their_names() -> None:
    assert mathml("<eta^2>") == (
        "&lt;<math><msup><mi>η</mi><mrow><mn>2</mn></mrow></msup></math>&gt;"
    )
    assert typeset("002 Lemma 1 (003 Fig. 2); 0.003") == (
        "The TopK paper Lemma 1 (Xu &amp; Chen Fig. 2); 0.003"
    )


@given(st.text("ab_^*()$\\{}<& sqrt12-/.ησ", max_size=30))
def test_any_text_can_be_drawn_and_is_escaped(text: str) -> None:
    MathTextParser("path").parse(mathtext(text))
    assert not re.search(r"<(?!/?m|&)", str(mathml(text)))


def test_what_is_no_formula_takes_no_time_that_grows_without_end() -> None:
    assert mathml("sqrt(" + "a*" * 2000 + "!").startswith("sqrt(")
