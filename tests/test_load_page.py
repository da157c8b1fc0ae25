"""docs/load.md is made from the committed numbers of the benchmark and of the soak."""

from __future__ import annotations

from pages import DOCS, load


def test_the_page_is_made_from_what_was_measured() -> None:
    assert (DOCS / "load.md").read_text("utf-8") == load.page(), "run: python docs/make.py load"


def test_a_batch_that_keeps_the_parent_half_busy() -> None:
    # 1,000 workers, 4 s per cell: a cell may cost 2 ms, of which it takes 1 itself
    assert load._smallest(batch=0.032, cell=0.001, seconds=4.0) == "32"
    assert load._smallest(batch=0.032, cell=0.001, seconds=2.0) == "none is enough"
