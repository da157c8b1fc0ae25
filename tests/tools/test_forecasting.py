"""What is said before trainings start."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from rarefy.core.errors import UsageError
from rarefy.core.settings import peak_memory
from rarefy.sweep.runner import execute
from rarefy.tools import forecasting
from rarefy.tools.forecasting import START, forecast
from rarefy.tools.train_images import TrainImages

SMALL = TrainImages.at("tiny", network="small_trainings:tiny", epochs=4, seeds=3)
ASKED = ("cpu", 1, False)


def guess(monkeypatch: pytest.MonkeyPatch, found: float | str) -> None:
    monkeypatch.setattr(forecasting, "seconds_for", lambda experiment, device: found)


def test_a_training_is_really_tried(here: Path) -> None:
    threads = torch.get_num_threads()
    said = forecast(SMALL, here / "store", *ASKED)
    form = (
        r"6 trainings \(3 seeds\), 1 at once on the cpu: about ([\d.]+) s \([\d.]+ s per seed\), "
        r"([\d.]+) GB of memory; --seeds and --epochs change that"
    )
    seconds, memory = map(float, re.fullmatch(form, said).groups())  # type: ignore[union-attr]
    assert 0 <= seconds < 60 and 0.1 < memory < 20 and torch.get_num_threads() == threads
    assert not list(here.iterdir())  # nothing is written


def test_what_is_done_is_not_counted(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guess(monkeypatch, 60.0)
    assert "1 at once on the cpu: about 60 s (20 s per seed)" in forecast(
        SMALL, here / "store", *ASKED
    )
    execute(replace(SMALL, seeds=1, epochs=4), "quick", "cpu", out=here / "store")
    assert forecast(replace(SMALL, seeds=1), here / "store", *ASKED) == ""
    assert "4 trainings (3 seeds), 1 at once on the cpu: about 40 s" in forecast(
        SMALL, here / "store", *ASKED
    )
    assert "6 trainings" in forecast(SMALL, here / "store", "cpu", 1, True)
    with pytest.raises(UsageError, match="use --overwrite or another --out"):
        forecast(replace(SMALL, epochs=5), here / "store", *ASKED)


def test_several_at_once_share_the_time_and_need_more_memory(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guess(monkeypatch, 60.0)
    monkeypatch.setattr(forecasting, "peak_memory", lambda device: 10**9)
    said = forecast(SMALL, here / "store", "cpu", 4, False, extra=2.0)
    assert f"4 at once on the cpu: about {START + 30:.0f} s (10 s per seed), 4.0 GB" in said
    assert "6 at once" in forecast(SMALL, here / "store", "cpu", 20, False)


def test_nobody_knows(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guess(monkeypatch, "does not fit into memory")
    said = forecast(SMALL, here / "store", *ASKED)
    assert said.endswith("how long is not known (does not fit into memory)")


def test_memory_is_that_of_this_process() -> None:
    before = peak_memory(torch.device("cpu"))
    used = torch.ones(50_000_000)
    assert peak_memory(torch.device("cpu")) >= before > 0 and used.sum() > 0
