"""``rarefy advise`` through its real entry point."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rarefy import cli

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
