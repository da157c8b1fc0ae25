"""``rarefy advise`` through its real entry point."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from rarefy import cli
from rarefy.tools import sparse_training as tool

FAST = ["advise", "digits", "--network", "lenet", "--batches", "6", "--batch", "64"]


def test_it_prints_a_row_a_layer_and_what_it_is_worth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "advice.png"
    assert cli.main([*FAST, "--plot", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "signal/noise" in said and "all" in said and "not predicted" in " ".join(said.split())
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_json_has_the_range_and_the_caveat(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*FAST, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0 < found["low"] <= 1 and found["probed"] == 6 * 64 and found["note"]


def test_without_noise_json_has_no_infinite_ratio(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tool.advised_for

    def noiseless(*args: Any) -> Any:
        advice = real(*args)
        network = dataclasses.replace(advice.network, noise=0 * advice.network.noise)
        return dataclasses.replace(advice, network=network)

    monkeypatch.setattr(tool, "advised_for", noiseless)
    assert cli.main([*FAST, "--json"]) == 0
    said = capsys.readouterr().out
    assert "Infinity" not in said and json.loads(said)["signal_to_noise"] is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--batches", "3"], "batches=3: must be at least 4"),
        (["--batch", "1"], "batch=1: must be at least 2"),
        (["--noise", "-1"], "noise=-1.0: must be finite and at least 0"),
        (["--network", "lenett"], "did you mean 'lenet'?"),
        (["--plot", "advice.jpg"], "plot='advice.jpg': must end in .png"),
    ],
)
def test_wrong_use_is_one_line(
    wrong: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*FAST, *wrong]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
