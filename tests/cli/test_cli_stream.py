"""``rarefy influence --stream`` through its real entry point."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rarefy.cli import main
from rarefy.tools.influence.writing import read_table


def test_a_memory_map_is_scored_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    np.save("x.npy", random.standard_normal((300, 4)))
    np.save("y.npy", random.integers(0, 12, 300))
    typed = ["influence", "x.npy", "--labels", "y.npy"]
    assert main([*typed, "--stream", "--max-seconds", "1e-9"]) == 3
    assert "note: stopped while scoring: the same call goes on from" in capsys.readouterr().err
    assert main([*typed, "--stream"]) == 0
    told = capsys.readouterr()
    assert "300 samples, 12 classes; the 10 largest" in told.out
    left_out = "ids, copies, neighbours, the label check, triage and the page"
    assert f"note: in pieces, so without {left_out}" in told.err
    (path,) = Path("runs").glob("influence-x-*/scores.parquet")
    assert f"table: {path}" in told.out
    found = read_table(path)
    assert main([*typed, "--no-gallery", "--no-check-labels", "--out", "whole"]) == 0
    whole = read_table(Path("whole/scores.parquet"))
    assert np.allclose(found["influence"], whole["influence"], rtol=1e-10, atol=1e-12)
    assert np.array_equal(found["percentile"], whole["percentile"])
    capsys.readouterr()
    assert main([*typed, "--stream", "--json", "--no-standardize", "--out", "plain"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["samples"] == 300 and len(said["classes"]) == 12
    highest = said["classes"][0]["highest"]
    plain = read_table(Path("plain/scores.parquet"))
    assert highest == plain[plain["label"] == "0"]["influence"].idxmax()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--csv"], "--csv=True: does not fit --stream"),
        (["--neighbours", "5"], "--neighbours=5: does not fit --stream"),
        (["--no-check-labels"], "--check-labels=False: does not fit --stream"),
        (["--embed", "a:b"], "--embed='a:b': does not fit --stream"),
        (["--size", "8"], "--size=8: does not fit --stream"),
        (["--memory", "0"], "--memory=0.0: must be above 0 (GB) and below 1e9"),
        (["--memory", "0.001"], "--memory=1000000: must be at least 16 MiB"),
    ],
)
def test_what_does_not_fit_is_refused(
    more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["influence", "digits", "--stream", *more]) == 2
    assert message in capsys.readouterr().err
